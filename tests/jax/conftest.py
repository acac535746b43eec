"""What the tests of JAX share."""

import pytest


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str) -> None:
        record_property("capability", f"{function}:jax:{transform}")

    return record
