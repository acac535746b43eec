"""What the tests of TensorFlow share."""

import os

import pytest

# Its start says on the standard error what the processor can do.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str) -> None:
        record_property("capability", f"{function}:tensorflow:{transform}")

    return record
