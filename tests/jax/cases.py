"""The cases of `tests.derivatives` as functions of JAX, and checks of a divergence in scale."""

import math
from typing import Any

import jax
import mpmath
import numpy as np

import logunif_kl as lk
import logunif_kl.jax as lj
from logunif_kl._convention import additive_constant
from tests import derivatives
from tests.derivatives import MU


class Case(derivatives.Case):
    """A function of `logunif_kl.jax`."""

    @property
    def function(self) -> Any:
        return getattr(lj, self.name)


CASES = derivatives.cases(Case)


# -KL loses nothing by the unit of w: sigma over so many powers of e, the ratio to mu over e^+-14.
SCALES = {"float32": 35.0, "float64": 300.0}
# The worst of `error_over_scales` found, in ulp, over two seeds: 3.93 and 4.0.
SCALES_ULP = {"float32": 4.0, "float64": 4.0}


def error_over_scales(divergence: Any, dtype: str, options: dict[str, float]) -> float:
    """Return the worst error of KL(N(loc, scale^2) || C/|w|), beyond that of adding the constant.

    In units in the last place of KL without its constant.
    """
    rng = np.random.default_rng(17)
    scale = np.exp(rng.uniform(-SCALES[dtype], SCALES[dtype], 4000)).astype(dtype)
    loc = (scale * np.exp(rng.uniform(-14, 14, 4000))).astype(dtype)
    # The reported loss of digits was here.
    scale[:500] = np.exp(rng.uniform(-12, -1, 500))
    loc[:500] = scale[:500] * rng.uniform(0.1, 10, 500)
    constant = additive_constant(**options)
    with mpmath.workdps(30):
        exact = [
            2 * mpmath.log(mpmath.mpf(s) / mpmath.mpf(m))
            for m, s in zip(loc.tolist(), scale.tolist(), strict=True)
        ]
        log_alpha = np.array(exact, "float64")
        rest = np.array([e - x for e, x in zip(exact, log_alpha.tolist(), strict=True)], "float64")
    truth = -(lk.neg_kl(log_alpha) + lk.neg_kl_grad(log_alpha) * rest)
    spacing = np.spacing(truth.astype(dtype)).astype("float64")
    adding = 0.0
    if constant:
        adding = np.spacing(np.asarray(abs(constant), dtype)).astype("float64")
        adding = adding + np.spacing(np.abs(truth - constant).astype(dtype)).astype("float64")
    worst = 0.0
    for function in (divergence, jax.jit(divergence)):
        got = np.asarray(function(loc, scale))
        assert got.dtype == dtype
        error = np.abs(got.astype("float64") - (truth - constant))
        worst = max(worst, float((np.maximum(error - adding, 0.0) / spacing).max()))
    return worst


SCALE = np.array([0.5, 2.0, 1.0, 0.625, 0.75, 0.375, 0.125])


def assert_derivatives_of_all_orders(divergence: Any) -> None:
    """Check those of KL(N(loc, scale^2) || C/|w|), up to the third, in float64."""

    def truth(orders: tuple[int, int]) -> list[float]:
        def exact(loc: Any, scale: Any) -> Any:
            return -derivatives.neg_kl_normal(loc, 2 * mpmath.log(scale))

        step = mpmath.mpf(10) ** -20
        with mpmath.workdps(100):
            return [
                float(mpmath.diff(exact, tuple(map(mpmath.mpf, p)), orders, h=step, relative=False))
                for p in zip(MU.tolist(), SCALE.tolist(), strict=True)
            ]

    with jax.enable_x64(True):
        level = {(0, 0): divergence}
        for _ in range(3):
            level = {
                orders: function
                for (i, j), before in level.items()
                for orders, function in (
                    ((i + 1, j), jax.grad(before, 0)),
                    ((i, j + 1), jax.jacfwd(before, 1)),
                )
            }
            for orders, function in level.items():
                got = jax.jit(jax.vmap(function))(MU, SCALE)
                assert got.dtype == "float64"
                # Terms of the size of 1/loc^i 1/scale^j cancel where it has a zero.
                size = np.abs(MU) ** -orders[0] * SCALE ** -orders[1]
                exact = np.array(truth(orders))
                error = np.abs(got - exact) / np.maximum(np.abs(exact), size)
                assert error.max() <= {1: 2e-16, 2: 8e-16, 3: 2e-14}[sum(orders)], orders
        # At loc = 0, where KL = loc^2/(2 scale^2) - ..., less the constant.
        second = jax.hessian(divergence)(0.0, 0.125)
        assert math.isclose(second, 64.0, rel_tol=2.0**-52)
        third = jax.jacfwd(jax.hessian(divergence), 1)(0.0, 0.125)
        assert math.isclose(third, -1024.0, rel_tol=2.0**-52)
