"""Statements of Kingma et al. about posteriors, floating-point numbers and gradients."""

import math

import mpmath
import numpy as np
from scipy import stats

import logunif_kl as lk
from validation.papers.statement import Found, statement

CLOSELY = 0.01  # a difference of distribution functions


@statement(
    "kingma-sign-and-magnitude",
    "Eqs. 37 and 38",
    "the divergences of the sign bit and of the magnitude given the sign add up to "
    "-KL = log c + log(1/2) + H(q) - E log|w|",
)
def sign_and_magnitude() -> Found:
    posteriors = {
        "norm(0.3, 1)": stats.norm(0.3, 1.0),
        "laplace(1, 0.5)": stats.laplace(1.0, 0.5),
        "uniform(-0.2, 1.2)": stats.uniform(-0.2, 1.2),
        "cauchy(0.5, 1)": stats.cauchy(0.5, 1.0),
        "gumbel_r(0.2, 0.1)": stats.gumbel_r(0.2, 0.1),
        "skewnorm(4, -0.1)": stats.skewnorm(4.0, -0.1),
    }
    away, errors = {}, []
    for name, dist in posteriors.items():
        split = lk.posteriors.neg_kl_split(dist)
        away[name] = abs(split.sign_bit + split.magnitude - split.total)
        errors.append(split.error)
    holds = all(a <= e for a, e in zip(away.values(), errors, strict=True)) and max(errors) < 1e-9
    return Found(
        holds=holds,
        measured={"posteriors": list(away), "largest_difference": max(away.values())},
        note=f"of {len(away)} posteriors the parts add up to the whole within "
        f"{max(away.values()):.0e}, and each within the error stated for it",
    )


@statement(
    "kingma-float-ranges",
    "appendix A",
    "magnitudes of floats range over approximately 2^-8 to 2^8 in single precision, and over "
    "2^-11 to 2^11 in double precision",
)
def ranges() -> Found:
    measured = {}
    stated = {"float32": 8, "float64": 11}
    for name in stated:
        info = np.finfo(name)
        measured[name] = {
            "bits_of_the_exponent": int(info.iexp),
            "smallest_normal_is_2_to_the": int(np.log2(info.tiny.astype("float64"))),
            "largest_is_below_2_to_the": int(info.maxexp),
        }
    return Found(
        holds=all(measured[n]["largest_is_below_2_to_the"] <= 2 * b for n, b in stated.items()),
        measured=measured,
        note="8 and 11 are the bits of the exponent; the ranges are "
        + " and ".join(
            f"2^{m['smallest_normal_is_2_to_the']} to 2^{m['largest_is_below_2_to_the']}"
            for m in measured.values()
        ),
    )


@statement(
    "kingma-floats-log-uniform",
    "appendix A",
    "for random bit patterns floats closely follow a log-uniform distribution with finite range",
)
def log_uniform() -> Found:
    bits = np.arange(2**15, dtype=np.uint16).view(np.float16)
    info = np.finfo(np.float16)
    size = np.sort(bits[(bits >= info.tiny) & np.isfinite(bits)]).astype(np.float64)
    low, high = math.log2(float(info.tiny)), float(info.maxexp)
    uniform = (np.log2(size) - low) / (high - low)
    rank = np.arange(size.size) / size.size
    distance = float(np.max(np.abs(uniform - rank)))
    # Within an octave the significand is uniform, but its logarithm is not: log2(1 + m) - m.
    octave = 1.0 / math.log(2.0) - 1.0
    within = math.log2(1.0 + octave) - octave
    octaves = {
        name: np.finfo(name).maxexp - np.finfo(name).minexp for name in ("float32", "float64")
    }
    measured = {"float16, every normal number": distance, "within an octave": within}
    measured |= {f"{name}, from the octaves": within / count for name, count in octaves.items()}
    return Found(
        holds=distance < CLOSELY,
        measured=measured,
        note=f"the distribution functions differ by {distance:.1e} at most in float16 and by "
        f"{within / octaves['float32']:.1e} in float32; less than {CLOSELY:g} counts as close",
    )


@statement("kingma-entropy-of-the-log", "Eq. 13", "-KL is the entropy of log|w| plus a constant")
def entropy_of_the_log() -> Found:
    logs = (-8.0, -2.0, 0.0, 2.0, 8.0, 20.0)
    missing = {f"{x:g}": _neg_kl_less_entropy(x) for x in logs}
    values = list(missing.values())
    away = [value - values[0] for value in values]
    return Found(
        holds=max(abs(a) for a in away) < 1e-9,
        measured={"log_alpha": logs, "neg_kl_minus_entropy_less_that_at_the_first": away},
        note="it leaves out the sign: -KL is the entropy of log|w| together with the sign of w "
        f"(Eq. 37), and that of the sign given log|w| rises from 0 by {away[-1]:.4f}, towards "
        "log 2, as alpha grows",
    )


def _neg_kl_less_entropy(x: float) -> float:
    """Return -KL - H(log|w|) for w ~ N(1, e^x), by quadrature over y = log|w|."""
    with mpmath.workdps(20):
        spread = mpmath.exp(mpmath.mpf(x) / 2)

        def integrand(y: mpmath.mpf) -> mpmath.mpf:
            w = mpmath.exp(y)
            f = w * (mpmath.npdf(w, 1, spread) + mpmath.npdf(-w, 1, spread))
            return -f * mpmath.log(f) if f else mpmath.mpf(0)

        top = mpmath.log(1 + 12 * spread)
        if spread < 0.08:  # then w > 0, and log|w| is nearly normal
            points = [-14 * spread, -4 * spread, 0, 4 * spread, min(top, 14 * spread)]
        else:
            middle = mpmath.log(spread)
            points = sorted({middle - 50, middle - 12, middle - 4, middle, top})
        return float(lk.reference.neg_kl(x, 20) - mpmath.quad(integrand, points))


@statement(
    "kingma-reparameterised-gradient",
    "Eq. 3, applied to the expectation in Eq. 42",
    "the reparameterised estimator is differentiable and its gradient unbiased",
    stated=False,
)
def reparameterised_gradient() -> Found:
    alpha, seeds = 1.0, 1000
    sizes = (1_000, 10_000, 100_000)
    spread: dict[str, list[float]] = {"value": [], "gradient": []}
    for size in sizes:
        means = np.empty((seeds, 2))
        for seed in range(seeds):
            z = np.random.default_rng([size, seed]).standard_normal(size)
            eps = 1.0 + math.sqrt(alpha) * z
            means[seed] = np.mean(np.log(np.abs(eps))), np.mean(z / (2 * math.sqrt(alpha) * eps))
        for name, column in zip(spread, means.T, strict=True):
            low, high = np.quantile(column, [0.25, 0.75])
            spread[name].append(float(high - low))
    truncated = [_truncated(alpha, least) for least in (1e-3, 1e-6, 1e-12)]
    # Near the pole the gradient is -1/(2 alpha eps), with a Cauchy tail, so its mean has a Cauchy
    # law.
    cauchy = math.pi * math.exp(-0.5 / alpha) / math.sqrt(2 * math.pi * alpha) / alpha
    shrunk = {name: values[0] / values[-1] for name, values in spread.items()}
    principal, exact = _principal_value(alpha), float(lk.neg_kl_grad(0.0))
    # d/dalpha of -KL = 1/(2 alpha) - d/dalpha E log|eps|
    return Found(
        holds=shrunk["gradient"] > 0.5 * math.sqrt(sizes[-1] / sizes[0]),
        measured={
            "samples": sizes,
            "seeds": seeds,
            "interquartile_range_of_the_mean": spread,
            "interquartile_range_of_the_gradient_in_the_limit": cauchy,
            "mean_magnitude_without_eps_below": dict(
                zip(("1e-3", "1e-6", "1e-12"), truncated, strict=True)
            ),
            "principal_value": principal,
            "exact": 0.5 / alpha - exact / alpha,
        },
        note=f"a hundred times the samples shrink the spread of the value by {shrunk['value']:.1f} "
        f"and of the gradient by {shrunk['gradient']:.2f}: it has a pole 1/eps where the density "
        "is positive, so its mean magnitude is infinite. Its principal value is Dawson's form",
    )


def _truncated(alpha: float, least: float) -> float:
    """Return E of |d log|eps|/dalpha| over |eps| > least, which grows like -log(least)."""
    with mpmath.workdps(20):
        spread = mpmath.sqrt(alpha)

        def magnitude(log_eps: mpmath.mpf, sign: int) -> mpmath.mpf:
            eps = sign * mpmath.exp(log_eps)
            return abs(eps - 1) / (2 * alpha) * mpmath.npdf(eps, 1, spread)

        low, high = mpmath.log(least), mpmath.log(1 + 14 * spread)
        points = [low, -4, -1, 0, high] if low < -4 else [low, 0, high]
        return float(sum(mpmath.quad(lambda t, s=s: magnitude(t, s), points) for s in (1, -1)))


def _principal_value(alpha: float) -> float:
    """Return the principal value of E d log|eps|/dalpha, at the pole eps = 0."""
    with mpmath.workdps(20):
        spread = mpmath.sqrt(alpha)

        def both(eps: mpmath.mpf) -> mpmath.mpf:
            odd = (eps - 1) * mpmath.npdf(eps, 1, spread) - (-eps - 1) * mpmath.npdf(
                -eps, 1, spread
            )
            return odd / (2 * alpha * eps)

        return float(mpmath.quad(both, [mpmath.mpf(10) ** -18, 1, 2, 1 + 14 * spread]))
