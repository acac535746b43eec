"""Calls of the public functions on shared arrays of NumPy, by name."""

from functools import partial

import numpy as np
from scipy import stats

import logunif_kl as lk
from logunif_kl import fitting, log_alpha, methods, posteriors, reference, special

RNG = np.random.default_rng(5)
U = np.concatenate([np.logspace(-300, 300, 901), np.linspace(0.0, 12.0, 901), [np.inf, np.nan]])
X = RNG.permutation(-np.log(2.0 * np.concatenate([U[:-2], [np.inf]]), where=U[:-1] > 0.0,
                            out=np.full(U.size - 1, np.inf)))  # fmt: skip
MU = RNG.permutation(np.concatenate([-U[:901], U[901:-2], [0.0, np.inf]]))
LOG_SIGMA2 = np.resize(X[np.isfinite(X)], MU.size)
POSITIVE = np.linspace(0.001, 0.999, 500)
SOME = np.linspace(-9.0, 9.0, 40)
MANY = (U, X, MU, LOG_SIGMA2, POSITIVE, SOME)
for each in MANY:
    each.flags.writeable = False


def of_arrays():
    """The calls that take microseconds to milliseconds."""
    calls = {
        f"{name}{options or ''} {dtype}": lambda f=function, o=options, d=dtype: f(X.astype(d), **o)
        for dtype in ("float64", "float32", "float16")
        for name, function, options in (
            ("neg_kl", lk.neg_kl, {}),
            ("neg_kl", lk.neg_kl, {"zero_at": 1.0}),
            ("kl", lk.kl, {"log_c": 0.5}),
            ("neg_kl_grad", lk.neg_kl_grad, {}),
            ("neg_kl_hess", lk.neg_kl_hess, {}),
        )
    }
    for dtype in ("float64", "float32"):
        mu, log_sigma2 = MU.astype("float64"), LOG_SIGMA2.astype("float64")
        if dtype == "float32":
            mu, log_sigma2 = mu.clip(-1e30, 1e30).astype(dtype), log_sigma2.astype(dtype)
        for name in ("neg_kl_normal", "kl_normal"):
            calls[f"{name} {dtype}"] = partial(getattr(lk, name), mu, log_sigma2, zero_at=2.0)
        name = "neg_kl_normal_and_grad"
        calls[f"special.{name} {dtype}"] = partial(getattr(special, name), mu, log_sigma2)
    for name in ("kl_gap", "kl_gap_grad", "kl_gap_hess"):
        calls[f"special.{name}"] = partial(getattr(special, name), U)
        calls[f"array_api.{name}"] = partial(getattr(special.array_api, name), U)
    calls["log_alpha.from_dropout_rate"] = lambda: log_alpha.from_dropout_rate(POSITIVE)
    calls["log_alpha.from_normal"] = lambda: log_alpha.from_normal(SOME, SOME)
    for name in ("kingma", "molchanov", "lower_bound", "series", "kummer", "quadrature"):
        inside = SOME[SOME <= 0.0] if name == "kingma" else SOME
        calls[f"methods.{name}"] = partial(getattr(methods, name), inside)
        calls[f"methods.{name}_grad"] = partial(getattr(methods, f"{name}_grad"), inside)
    for seed in (0, 1):
        for name in ("monte_carlo", "monte_carlo_grad"):
            options = {"n_samples": 256, "rng": seed}
            calls[f"{name} {seed}"] = partial(getattr(methods, name), SOME, **options)
    return calls


def of_digits():
    """Calls of mpmath, whose precision and caches are shared by the threads of a process."""
    calls = {
        f"reference.{name} {dps}": partial(getattr(reference, name), -7.5, dps)
        for name in ("neg_kl", "neg_kl_grad", "neg_kl_hess")
        for dps in (15, 40)
    }
    for dps in (20, 70):
        for name in ("series", "kummer", "quadrature"):
            calls[f"methods.{name} {dps}"] = partial(getattr(methods, name), 0.7, dps=dps)
    for degree in (2, 4):
        fit = partial(fitting.fit_polynomial, degree, norm="least_squares")
        calls[f"polynomial {degree}"] = lambda fit=fit: fit().coefficients
    return calls


def of_fits():
    """A fit, and the penalty of another posterior."""
    return {
        "polynomial, gradient": lambda: fitting.fit_polynomial(4, target="gradient").to_json(),
        "sigmoid": lambda: fitting.fit_sigmoid(1).to_json(),
        "posterior": lambda: posteriors.neg_kl_posterior(stats.norm(0.7, 1.3)),
    }


def bits(value):
    """Make a result hashable, so that equal values mean equal bits."""
    if isinstance(value, tuple | list):
        return tuple(map(bits, value))
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == object:
            return tuple(map(repr, np.ravel(value)))
        return (value.dtype.str, np.shape(value), np.asarray(value).tobytes())
    return repr(value)
