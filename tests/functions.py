"""The six functions over arrays of a framework: the tests that the frameworks share."""

import math
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

import logunif_kl as lk
from tests.child import output

NAMES = ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl", "neg_kl_normal", "kl_normal")
VALUES = ("neg_kl", "kl", "neg_kl_normal", "kl_normal")
X = np.linspace(-5, 5, 41)


def arguments_of(name: str) -> tuple[np.ndarray, ...]:
    return (X, 0.5 * X) if "normal" in name else (X,)


class Temperature(float):
    """A subclass of float."""


class Functions:
    """A subclass names its framework, and makes arrays of it."""

    module: Any
    """With the six functions."""

    compiled: Any
    """Compiles a function."""

    unbroadcastable: type[Exception] = ValueError
    """The type of error where shapes do not broadcast."""

    numpy_scalars_promote = False
    """Whether a NumPy scalar has a say in the type of the result."""

    missing: dict[str, tuple[str, str, str]]
    """A library -> the module that needs it, what the library is called, what to install."""

    refused: list[tuple[Any, str]]
    """What makes an argument that is refused, and the words after the argument's name."""

    other: Any = 0.5
    """What stands next to it."""

    programs: tuple[Any, ...] = ()
    """Further ways to compile a function."""

    def array(self, x: Any, dtype: str = "float32") -> Any:
        """Return an array of the framework."""
        raise NotImplementedError

    def double(self) -> Any:
        """Return a context in which float64 stays float64."""
        return nullcontext()

    @pytest.mark.parametrize("options", [{}, {"zero_at": 1.0}, {"zero_at": 0.03}, {"log_c": 0.7}])
    @pytest.mark.parametrize("name", VALUES)
    def test_constant_and_reduction(self, name, options):
        arguments = arguments_of(name)
        truth = getattr(lk, name)(*arguments, **options)
        for reduction, reduced in (("none", truth), ("sum", truth.sum()), ("mean", truth.mean())):
            with self.double():
                given = [self.array(x, "float64") for x in arguments]
                got = getattr(self.module, name)(*given, **options, reduction=reduction)
                np.testing.assert_allclose(got, reduced, rtol=1e-14, atol=1e-15)

    @pytest.mark.parametrize("name", NAMES)
    def test_logunif_kl_finds_the_module(self, name):
        given = [self.array(x) for x in arguments_of(name)]
        choices = [{}]
        if name in VALUES:
            choices += [{"zero_at": 1.0}, {"log_c": 1.0, "reduction": "sum"}]
        for options in choices:
            public, ours = (partial(getattr(m, name), **options) for m in (lk, self.module))
            assert type(public(*given)) is type(given[0])
            np.testing.assert_array_equal(public(*given), ours(*given))
            got, wanted = (self.compiled(function)(*given) for function in (public, ours))
            np.testing.assert_array_equal(got, wanted)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_limits(self, dtype):
        """Those of NumPy, whose ufuncs are tested against the limits by hand.

        If the KL is zero, -KL is -0.0 and KL is 0.0.
        """
        ends = (np.array([-np.inf, -3e38, -1e30, 1e4, 1e30, 3e38, np.inf, np.nan], dtype),)
        pairs = np.array([*((0, s) for s in (-200, np.inf, -np.inf)), (1, np.inf), (1, -np.inf)])
        more = [(-0.0, 1e4), (np.inf, 0), (np.inf, np.inf), (np.nan, 0)]
        pairs = tuple(np.concatenate([pairs, more]).astype(dtype).T)
        with self.double():
            for name in NAMES:
                arguments = pairs if "normal" in name else ends
                given = [self.array(x, dtype) for x in arguments]
                truth = getattr(lk, name)(*arguments)
                for compiled in (lambda f: f, self.compiled, *self.programs):
                    got = compiled(getattr(self.module, name))(*given)
                    np.testing.assert_array_equal(got, truth)
                    if name in VALUES:
                        zero = truth == 0.0
                        signs = np.signbit(np.asarray(got)[zero])
                        np.testing.assert_array_equal(signs, np.signbit(truth[zero]))

    def test_no_elements(self):
        empty = self.array(np.zeros((0, 3)))
        assert self.module.neg_kl(empty).shape == (0, 3)
        assert self.module.neg_kl(empty, reduction="sum", log_c=1.0) == 0.0
        assert math.isnan(self.module.kl_normal(empty, 0.0, reduction="mean"))

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_scalars_count_as_numbers(self, dtype):
        with self.double():
            mu = self.array([0.5, -2.0], dtype)
            truth = lk.neg_kl_normal(mu, self.array(-8.0, dtype))
            for scalar in (
                np.float16(-8),
                np.float32(-8),
                np.float64(-8),
                np.int64(-8),
                -8.0,
                -8,
                Temperature(-8),
            ):
                got = lk.neg_kl_normal(mu, scalar)
                wanted = dtype
                if self.numpy_scalars_promote and isinstance(scalar, np.floating):
                    wanted = np.result_type(dtype, scalar.dtype).name
                kind = self.array(0.0, wanted).dtype
                assert got.dtype == lk.kl_normal(scalar, mu).dtype == kind
                np.testing.assert_allclose(got, truth, rtol=1e-3 if dtype == "float16" else 3e-7)
                program = self.compiled(lambda m: lk.neg_kl_normal(m, scalar))  # noqa: B023
                np.testing.assert_allclose(program(mu), got, rtol=3e-7)

    @pytest.mark.parametrize("given", ["max", None, 1])
    def test_an_unknown_reduction(self, given):
        message = (
            f"^reduction must be 'none', 'sum' or 'mean', but {given!r} was given: "
            "pass one of these$"
        )
        for name in VALUES:
            arguments = [self.array(x) for x in arguments_of(name)]
            with pytest.raises(ValueError, match=message):
                getattr(self.module, name)(*arguments, reduction=given)

    def test_both_constants(self):
        with pytest.raises(ValueError, match=r"zero_at=1.0 and log_c=0.0 were both given, and "):
            lk.neg_kl(self.array([0.0]), zero_at=1.0, log_c=0.0)
        with pytest.raises(ValueError, match="zero_at must be a positive alpha"):
            self.module.kl_normal(self.array([0.0]), 0.0, zero_at=-1.0)

    def test_shapes_that_do_not_broadcast(self):
        message = (
            r"^mu of shape \(3,\) and log_sigma2 of shape \(2,\) do not broadcast: each "
            r"pair of lengths must be equal or include a 1$"
        )
        with pytest.raises(self.unbroadcastable, match=message):
            lk.kl_normal(self.array(np.ones(3)), self.array(np.ones(2)))

    def calls(self, module):
        """Return functions of one argument, with its name: the last four are of two."""
        other = self.other
        one = [getattr(module, name) for name in ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl")]
        two = module.neg_kl_normal, module.kl_normal
        return [
            *(("log_alpha", f) for f in one),
            *(("mu", lambda x, f=f: f(x, other)) for f in two),
            *(("log_sigma2", lambda x, f=f: f(other, x)) for f in two),
        ]

    def test_refusals(self):
        """By each function, of each argument."""
        for make, message in self.refused:
            for name, call in self.calls(self.module):
                with pytest.raises(TypeError, match=f"^{name} {message}"):
                    call(make())

    def test_arrays_of_other_libraries(self):
        """`logunif_kl` would have to choose."""
        ours = self.array(np.ones(2))
        for other in (np.ones(2), np.array(1.0), [1.0, 2.0]):
            for pair in ((ours, other), (other, ours)):
                with pytest.raises(TypeError, match="were given together: convert one, so that"):
                    lk.neg_kl_normal(*pair)

    def test_an_integer_beyond_every_float(self):
        with pytest.raises(ValueError, match=r"^log_sigma2 is an integer of 1329 bits, too large"):
            lk.neg_kl_normal(self.array([1.0]), 10**400)

    def test_a_library_is_not_installed(self):
        for library, (module, name, remedy) in self.missing.items():
            code = f"""
import sys
class Absent:
    def find_spec(self, name, *rest):
        if name == {library!r}:
            raise ModuleNotFoundError("No module named " + name, name=name)
sys.meta_path.insert(0, Absent())
try:
    import {module}
except ImportError as error:
    print(error)
"""
            message = f"{module} needs {name}, which is not installed: pip install {remedy}"
            assert output(code).strip() == message
