"""The packaging tests build the package, so they need its source tree around them."""

from pathlib import Path

import pytest

from validation.paths import ROOT
from validation.tools.elsewhere import copy_source, copy_tests


@pytest.fixture(scope="session")
def tree() -> Path:
    """The source tree; skip the test if the tests run elsewhere."""
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests are running away from the source tree")
    return ROOT


@pytest.fixture
def source(tree: Path, tmp_path: Path) -> Path:
    """A clean copy of the source tree."""
    return copy_source(tmp_path / "source")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory with the tests and without the package."""
    return copy_tests(tmp_path / "elsewhere")
