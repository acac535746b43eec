"""What the tests of the layers share."""

from importlib.util import find_spec

import pytest

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("torch") else ["cases.py", "distributed.py"]


@pytest.fixture(params=[True, False], ids=["fused", "plain"])
def fused(request, monkeypatch):
    """Both forms of the local estimator: the one that is chosen, and the plain operations."""
    from logunif_kl.nn.torch.noise import local

    if not request.param:
        monkeypatch.setattr(local, "_fusible", lambda *given: False)
    return request.param
