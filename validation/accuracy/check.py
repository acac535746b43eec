"""Compare the truth that errors are measured against with rigorous balls."""

import mpmath
import numpy as np

from logunif_kl import reference

from .doubledouble import Array
from .functions import FUNCTIONS
from .series import hess_zero
from .truth import truth

_BALLS = {
    "kl_gap": reference.enclosure_gap,
    "kl_gap_grad": reference.enclosure_gap_grad,
    "kl_gap_hess": reference.enclosure_gap_hess,
    "neg_kl": reference.enclosure,
    "neg_kl_grad": reference.enclosure_grad,
    "neg_kl_hess": reference.enclosure_hess,
}
_BITS = 128


def _centre(ball: object) -> mpmath.mpf:
    man, exp = ball.mid().man_exp()  # type: ignore[attr-defined]
    return mpmath.mpf(int(man)) * mpmath.mpf(2) ** int(exp)


def exact(name: str, *args: float) -> mpmath.mpf:
    """Return the function at one point to 128 bits, the centre of a ball."""
    if name in _BALLS:
        return _centre(_BALLS[name](args[0], bits=_BITS))
    mu, log_sigma2 = map(mpmath.mpf, args)
    u = mu**2 * mpmath.exp(-log_sigma2) / 2
    if name == "neg_kl_normal":
        return -_centre(reference.enclosure_gap(u, bits=_BITS))
    grad = u * _centre(reference.enclosure_gap_grad(u, bits=_BITS))
    return -2 * grad / mu if name == "neg_kl_normal.dmu" else grad


def points(name: str, rng: np.random.Generator, count: int) -> list[Array]:
    domain = FUNCTIONS[name].domain
    if domain == "u":
        joins = np.ldexp(1.0, np.array([-7, -6, 0, 6, 7]))
        low = np.exp2(rng.uniform(-1074, 1024, count // 4))
        return [np.concatenate([low, np.exp2(rng.uniform(-12, 12, count - count // 4)), joins])]
    if domain == "x":
        zero = hess_zero()[0]
        by_zero = zero + np.array([0.0, 1, -1, 2, -2, 1e8, -1e8, 1e14, -1e14]) * 2.0**-52
        joins = np.array([-8.0, 8.0, zero - 1 / 32, zero + 1 / 32, 0.0])
        near = [joins, np.nextafter(joins, np.inf), np.nextafter(joins, -np.inf), by_zero]
        wide = rng.uniform(-1000, 1000, count // 4)
        return [np.concatenate([wide, rng.uniform(-15, 15, count - count // 4), *near])]
    mu = np.exp2(rng.uniform(-1074, 1023, count)) * rng.choice((-1.0, 1.0), count)
    mu[: count // 2] = np.exp2(rng.uniform(-20, 20, count // 2))
    x = rng.uniform(-60, 60, count)
    x[::8] = rng.uniform(-3000, 3000, len(x[::8]))
    return [mu, x + 2 * np.log(np.abs(mu))]


def worst_relative_error(
    name: str, rng: np.random.Generator, count: int
) -> tuple[float, list[float]]:
    args = points(name, rng, count)
    found = truth(name, *args)
    worst, where = 0.0, [float("nan")]
    with mpmath.workprec(_BITS + 32):
        for i in range(len(args[0])):
            point = [float(a[i]) for a in args]
            value = mpmath.mpf(found.hi[i]) + mpmath.mpf(found.lo[i])
            value *= mpmath.mpf(2) ** int(found.scale[i])
            relative = float(abs(value / exact(name, *point) - 1))
            if not relative <= worst:
                worst, where = relative, point
    return worst, where
