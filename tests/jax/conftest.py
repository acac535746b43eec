"""What the tests of JAX share."""

from importlib.util import find_spec

import pytest

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("jax") else ["cases.py", "sharded.py"]


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str, library: str = "jax") -> None:
        record_property("capability", f"{function}:{library}:{transform}")

    return record
