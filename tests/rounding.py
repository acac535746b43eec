"""Rounding errors of a numerical method, against a truth of 30 digits.

`logunif_kl.methods.measure` compares with the exact functions in double precision. Their error of
one unit in the last place is negligible for a closed form, but not for a method whose only error is
rounding. Here the differences are taken in 30 digits.
"""

import mpmath
import numpy as np

from logunif_kl import reference

DIGITS = 30


def relative(got, truth, floor=0.0):
    """Signed errors relative to max(floor, abs(truth)), element by element."""
    with mpmath.workdps(DIGITS):
        pairs = zip(map(float, np.ravel(got)), truth, strict=True)
        return np.array([float((a - b) / max(mpmath.mpf(floor), abs(b))) for a, b in pairs])


def value_error(function, log_alpha, floor=1.0):
    """Signed errors of -KL relative to max(floor, abs(-KL))."""
    truth = [reference.neg_kl(float(x), DIGITS) for x in log_alpha]
    return relative(function(log_alpha), truth, floor)


def gradient_error(function, log_alpha):
    """Signed relative errors of d(-KL)/d log alpha."""
    truth = [reference.neg_kl_grad(float(x), DIGITS) for x in log_alpha]
    return relative(function(log_alpha), truth)


def beside(*places, steps=8):
    """Doubles within some ulp of each place."""
    return np.array([x + i * np.spacing(x) for x in places for i in range(-steps, steps + 1)])
