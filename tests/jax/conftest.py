"""What the tests of JAX share."""

import os
from importlib.util import find_spec

import pytest

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("jax") else ["cases.py", "sharded.py"]

# From how many elements on C is called: test_calls runs the other tests again, always or never.
LEAST = os.environ.get("LOGUNIF_KL_TESTS_CALL_FROM")


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str, library: str = "jax") -> None:
        record_property("capability", f"{function}:{library}:{transform}")

    return record


@pytest.fixture(autouse=LEAST is not None)
def _call_from(monkeypatch):
    from logunif_kl.jax import _calls

    monkeypatch.setattr(_calls, "LEAST_ELEMENTS", int(LEAST))
