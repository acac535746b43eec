"""The definition of errors in units in the last place, for one number at a time, in mpmath.

``validation.accuracy.ulp`` computes the same for arrays; ``validation/test_accuracy`` compares
them.
"""

import mpmath

PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
EMIN = {"float64": -1022, "float32": -126, "float16": -14, "bfloat16": -126}
EMAX = {"float64": 1023, "float32": 127, "float16": 15, "bfloat16": 127}


def ulp(value, dtype):
    """The spacing of a type at an exact value; for small values, that of the subnormal numbers."""
    value = abs(mpmath.mpf(value))
    binade = EMIN[dtype]
    if value:
        # frexp: value = m 2**e with 1/2 <= m < 1, without rounding.
        binade = max(binade, mpmath.frexp(value)[1] - 1)
    return mpmath.ldexp(mpmath.mpf(1), int(binade) - PRECISION[dtype] + 1)


def error(got, truth, dtype):
    """The signed error of a result in ulp of the truth; an infinity counts as the next binade."""
    got, truth = mpmath.mpf(got), mpmath.mpf(truth)
    if mpmath.isnan(truth) or mpmath.isinf(truth):
        same = got == truth or (mpmath.isnan(got) and mpmath.isnan(truth))
        return mpmath.mpf(0) if same else mpmath.inf
    if mpmath.isnan(got):
        return mpmath.inf
    if mpmath.isinf(got):
        beyond = mpmath.ldexp(mpmath.mpf(1), EMAX[dtype] + 1)
        if got * truth > 0 and abs(truth) >= beyond:
            return mpmath.mpf(0)
        got = mpmath.sign(got) * beyond
    with mpmath.workprec(300):
        return (got - truth) / ulp(truth, dtype)
