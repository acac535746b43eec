"""What the tests of JAX share."""

import json
import os
from importlib.util import find_spec

import pytest

from tests.child import output

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = ["libraries.py"]
if not find_spec("jax"):
    collect_ignore += ["cases.py", "sharded.py", "nn/layers.py", "nn/sharded.py"]

# From how many elements on C is called. test_custom_call runs other tests again, with 1 and a large
# number.
LEAST = os.environ.get("LOGUNIF_KL_TESTS_CALL_FROM")


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str, library: str = "jax") -> None:
        record_property("capability", f"{function}:{library}:{transform}")

    return record


@pytest.fixture
def on_eight_devices():
    """Run a module where the host counts as eight devices; return what it prints as JSON."""

    def run(module: str, *flags: str) -> dict:
        flags = ("--xla_force_host_platform_device_count=8", *flags)
        env = {**os.environ, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
        return json.loads(output(f"from {module} import main; main()", env=env))

    return run


@pytest.fixture(autouse=LEAST is not None)
def _call_from(monkeypatch):
    from logunif_kl.jax import _custom_call

    monkeypatch.setattr(_custom_call, "LEAST_ELEMENTS", int(LEAST))
