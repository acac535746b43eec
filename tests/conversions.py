"""The conversions of `logunif_kl.log_alpha` for tensors: the tests of every framework."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import logunif_kl as lk
from tests.ulp import error

INF = math.inf
# For each function: the truth and its derivative in mpmath, and the arguments to try.
CASES = {
    "from_dropout_rate": (
        lambda p: mpmath.log(p / (1 - p)),
        lambda p: 1 / (p * (1 - p)),
        (1e-30, 0.1, 0.2499, 0.25, 0.3, 0.49, 0.501, 0.6, 0.75, 0.7501, 0.9, 0.999),
    ),
    "to_dropout_rate": (
        lambda x: 1 / (1 + mpmath.exp(-x)),
        lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2,
        (-80.0, -10.0, -1.0, -1e-6, 0.0, 1e-6, 0.5, 3.0, 20.0, 80.0),
    ),
    "from_alpha": (mpmath.log, lambda a: 1 / a, (1e-30, 0.3, 0.999, 1.001, 3.0, 1e30)),
    "to_alpha": (mpmath.exp, mpmath.exp, (-80.0, -1.0, 0.0, 1e-6, 1.0, 80.0)),
    "from_u": (
        lambda u: -mpmath.log(2 * u),
        lambda u: -1 / u,
        (1e-30, 0.3, 0.4999, 0.5001, 1.0, 1e30),
    ),
    "to_u": (
        lambda x: mpmath.exp(-x) / 2,
        lambda x: -mpmath.exp(-x) / 2,
        (-88.9, -88.0, -10.0, -1e-6, 0.0, 1.0, 80.0),
    ),
    "from_normal": (lambda m: -3 - 2 * mpmath.log(abs(m)), lambda m: -2 / m, (-9.0, -1e-9, 7.0)),
    "to_log_sigma2": (lambda m: 3 + 2 * mpmath.log(abs(m)), lambda m: 2 / m, (-9.0, -1e9, 7.0)),
}
# For each function: arguments, and the limits of the value and of the derivative there.
LIMITS = {
    "from_dropout_rate": [(0.0, -INF, INF), (0.5, 0.0, 4.0), (1.0, INF, INF)],
    "to_dropout_rate": [(-INF, 0.0, 0.0), (INF, 1.0, 0.0)],
    "from_alpha": [(0.0, -INF, INF), (INF, INF, 0.0)],
    "to_alpha": [(-INF, 0.0, 0.0)],
    "from_u": [(0.0, INF, -INF), (0.5, 0.0, -2.0), (INF, -INF, 0.0)],
    "to_u": [(-INF, INF, -INF), (INF, 0.0, 0.0)],
    "from_normal": [(0.0, INF, -INF)],
    "to_log_sigma2": [(0.0, -INF, INF)],
}


def function(name: str) -> Callable:
    """A conversion as a function of one argument."""
    found = getattr(lk.log_alpha, name)
    if name == "from_normal":
        return lambda mu: found(mu, -3.0)
    if name == "to_log_sigma2":
        return lambda mu: found(3.0, mu)
    return found


class Conversions:
    """The tests that the frameworks share; a subclass computes in one of them."""

    def evaluate(self, f: Callable, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values and the derivatives, as arrays of the type of `x`."""
        raise NotImplementedError

    def cast(self, x: Any, dtype: str) -> Any:
        """Return an array or a tensor as a tensor of a type."""
        raise NotImplementedError

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("name", CASES)
    def test_value_and_derivative(self, name, dtype):
        *truths, points = CASES[name]
        x = np.array(points, dtype)
        for got, truth in zip(self.evaluate(function(name), x), truths, strict=True):
            assert got.dtype == dtype
            for g, argument in zip(got, x, strict=True):
                with mpmath.workdps(60):
                    assert abs(error(float(g), truth(mpmath.mpf(float(argument))), dtype)) < 4

    @pytest.mark.parametrize("name", LIMITS)
    def test_limits(self, name):
        for at, value, slope in LIMITS[name]:
            found = self.evaluate(function(name), np.array([at], "float32"))
            np.testing.assert_array_equal(found, [[value], [slope]])

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
    @pytest.mark.parametrize("name", CASES)
    def test_half_types_are_computed_in_float32(self, name, dtype):
        x, f = self.cast(np.linspace(0.01, 0.99, 500), dtype), function(name)
        got, wanted = f(x), self.cast(f(self.cast(x, "float32")), dtype)
        assert got.dtype == wanted.dtype == x.dtype
        numbers = [np.asarray(self.cast(each, "float32")) for each in (got, wanted)]
        np.testing.assert_array_equal(*numbers)
