"""What the tests of TensorFlow share."""

import os
from importlib.util import find_spec

import pytest

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("tensorflow") else ["cases.py"]

# Its start says on the standard error what the processor can do.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str) -> None:
        record_property("capability", f"{function}:tensorflow:{transform}")

    return record
