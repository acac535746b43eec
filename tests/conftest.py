"""Fixtures of array libraries: three in turn (`xp`), and each that need not be installed."""

import io
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from logunif_kl.methods import _progress

# A shared machine can be slow, so Hypothesis sets no deadline.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# ``--hypothesis-profile thorough`` is for the tests of shapes.
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=10_000)


class Library(NamedTuple):
    """An array library, with conversions from NumPy and back."""

    name: str
    xp: Any
    array: Callable[..., Any]

    def numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)


def _numpy() -> Library:
    return Library("numpy", np, lambda values, dtype="float64": np.array(values, dtype=dtype))


def _read_only() -> Library:
    def array(values: Any, dtype: str = "float64") -> np.ndarray:
        made = np.array(values, dtype=dtype)
        made.flags.writeable = False
        return made

    return Library("numpy-read-only", np, array)


def _strict() -> Library:
    strict = pytest.importorskip("array_api_strict")

    def array(values: Any, dtype: str = "float64") -> Any:
        return strict.asarray(np.array(values, dtype=dtype))

    return Library("array-api-strict", strict, array)


@pytest.fixture(params=[_numpy, _read_only, _strict], ids=["numpy", "read-only", "strict"])
def xp(request: pytest.FixtureRequest) -> Library:
    """Every array library in turn."""
    return request.param()


def _optional(name: str) -> Any:
    """Make a fixture that imports a library, and skips the test where it is not installed."""
    return pytest.fixture(lambda: pytest.importorskip(name))


da, xr, pd, pl = map(_optional, ("dask.array", "xarray", "pandas", "polars"))


@pytest.fixture
def pyplot():
    """matplotlib's pyplot without figures, before and after a test."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make a terminal of standard error, where progress bars appear at once."""
    pytest.importorskip("rich")

    def start():
        # Not before the test begins, because pytest sets standard error then.
        monkeypatch.setattr(_progress, "PATIENCE", -1.0)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return start


@pytest.fixture
def no_warnings_of_numpy():
    """Make every floating-point warning of NumPy an error."""
    with np.errstate(all="raise"):
        yield
