"""Statements of Kingma et al. in appendix A about floating-point numbers."""

import math

import mpmath
import numpy as np

import logunif_kl as lk
from validation.papers.statement import Found, statement

CLOSELY = 0.01  # a difference of distribution functions


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
