"""Derivatives of -KL for complex weights, by mpmath, and places where they are difficult."""

import mpmath
import numpy as np

from tests import ulp

# mu and log sigma^2: at 0, where 1/sigma^2 or |mu|^2 leaves the type, and at and between.
EDGES = {
    "float64": [
        *[(0.0, 0.0, -10000.0), (0.0, 0.0, -800.0), (0.0, 0.0, -700.0), (0.0, 0.0, 900.0)],
        *[(1e200, 5e199, 900.0), (1e200, 0.0, 0.0), (0.0, -1e200, 921.0), (1e160, 1e160, 735.0)],
        *[(1e-160, 0.0, -735.0), (1e-160, -3e-161, -735.0), (1e-200, 2e-200, 0.0)],
        *[(1e150, 2e150, 700.0), (1e-3, 1.0, -3.9), (1.0, 0.5, 0.25), (-7.0, 1.0, 0.0)],
        *[(1e-254, 1e-257, -397.0), (1e-190, 3.5e-81, -375.7), (1e-269, 1e-286, -1244.0)],
        *[(1e-260, 2e191, 1490.0), (1e-182, 2e-173, -797.6), (1e-3, 20.0, 0.1)],
    ],
    "float32": [
        *[(0.0, 0.0, -10000.0), (0.0, 0.0, -90.0), (0.0, 0.0, -85.0), (0.0, 0.0, 95.0)],
        *[(1e20, 5e19, 90.0), (1e20, 0.0, 0.0), (0.0, -1e20, 91.0), (1e17, 1e17, 79.0)],
        *[(1e-20, 0.0, -91.0), (1e-20, -3e-21, -91.0), (1e-25, 2e-25, 0.0)],
        *[(1e15, 2e15, 70.0), (1e-3, 1.0, -3.9), (1.0, 0.5, 0.25), (-7.0, 1.0, 0.0)],
        *[(1e-28, 1e-31, -47.0), (1e-16, 1e-14, -68.0), (1e-30, 2e-27, -126.0)],
        *[(1e-30, 2e20, 92.0), (1e-3, 8.0, 0.1)],
    ],
}


def scattered(dtype: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw parts of means over all normal numbers, and log sigma^2 about that of alpha = 1."""
    rng, kind = np.random.default_rng(seed), np.finfo(dtype)
    powers = rng.integers(kind.minexp, kind.maxexp, (2, count))
    digits = rng.uniform(1.0, 2.0, (2, count)) * rng.choice([-1.0, 1.0], (2, count))
    parts = np.ldexp(digits, powers)
    level = 2.0 * np.log(2.0) * powers.max(axis=0)
    width = rng.choice([5.0, 0.1 * kind.maxexp, kind.maxexp], count)
    re, im = parts.astype(dtype)
    return re, im, (level + width * rng.uniform(-1.0, 1.0, count)).astype(dtype)


def gradient(re: float, im: float, log_sigma2: float) -> tuple[mpmath.mpf, ...]:
    """Return the derivatives in re, im and log_sigma2."""
    with mpmath.workprec(160):
        re, im = mpmath.mpf(re), mpmath.mpf(im)
        square = re * re + im * im
        slope = -mpmath.expm1(-square * mpmath.exp(-mpmath.mpf(log_sigma2)))
        return -2 * re * slope / square, -2 * im * slope / square, slope


def worst_gradient(found: tuple[np.ndarray, ...], at: tuple[np.ndarray, ...], dtype: str) -> float:
    """Return the largest error in ulp of derivatives whose exact value is a normal number."""
    kind, worst = np.finfo(dtype), 0.0
    for point, *derivatives in zip(zip(*at, strict=True), *found, strict=True):
        for one, exact in zip(derivatives, gradient(*map(float, point)), strict=True):
            if float(kind.tiny) <= abs(exact) <= float(kind.max):
                worst = max(worst, abs(ulp.error(float(one), exact, dtype)))
    return worst


def hessian(re: float, im: float, log_sigma2: float) -> np.ndarray:
    """Return the matrix of second derivatives in re, im and log_sigma2, rounded to float64."""
    with mpmath.workdps(500):
        re, im, over = mpmath.mpf(re), mpmath.mpf(im), mpmath.exp(-mpmath.mpf(log_sigma2))
        u = (re * re + im * im) * over
        decay, rise = mpmath.exp(-u), -mpmath.expm1(-u)
        # The first two derivatives of -Ein
        first = -rise / u if u else mpmath.mpf(-1)
        second = (rise - u * decay) / u**2 if u else mpmath.mpf(0.5)
        both = 4 * re * im * over * over * second
        by_re, by_im = 2 * re * over * decay, 2 * im * over * decay
        rows = [
            [2 * over * first + (2 * re * over) ** 2 * second, both, by_re],
            [both, 2 * over * first + (2 * im * over) ** 2 * second, by_im],
            [by_re, by_im, -u * decay],
        ]
        return np.array([[float(each) for each in row] for row in rows])


def differs(found: np.ndarray, expected: np.ndarray, dtype: str) -> bool:
    """Whether second derivatives differ by more than one formula in the type explains.

    A derivative that is 0 beyond u = 50 may be 2e-22 of the others.
    """
    kind = np.finfo(dtype)
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype).astype(float)
    # The exponential of log sigma^2 has its rounding, of up to 100 or 1000.
    relative = 100.0 * float(kind.eps)
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    absolute = max(float(kind.tiny), 1e-20 * largest)
    return not np.allclose(found, expected, rtol=relative, atol=absolute)
