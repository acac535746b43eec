"""Power series of the exact functions about many centres, computed with mpmath.

They start from

    F'(u) = e^-u sum_k u^k / (k! (2k+1)),    F(u) = e^-u sum_k u^k/k! sum_{j<k} 1/(2j+1),

whose terms are all positive, and continue by the differential equations that F' satisfies in u and
u F' in x = log alpha. They share nothing with the package or its coefficients.
"""

from functools import lru_cache

import mpmath
from mpmath import mpf

from . import doubledouble as dd
from .doubledouble import Taylor

OCTAVES = (-7, 7)  # the table in u covers 2**-7 <= u < 2**7
CENTRES = 16  # per octave
X_LIMIT = 8  # the table in x covers abs(x) <= 8
X_STEPS = 16  # per unit


def _seeds(u: mpf) -> tuple[mpf, mpf]:
    """Return F(u) and F'(u) to the working precision."""
    bits = mpmath.mp.prec
    one = 1 << (bits + 40)
    if u > bits:
        step = int(one / (2 * u))
        term, gap, grad, k = one, 0, one, 0
        while term:
            k += 1
            term = ((term * step) >> (bits + 40)) * (2 * k - 1)
            gap -= term // (2 * k)
            grad += term
        log = (mpmath.log(4 * u) + mpmath.euler) / 2
        return log + mpf(gap) / one, mpf(grad) / one / (2 * u)
    # The sums are e^u times the results, and no term exceeds e^u, so no guard digits are lost.
    fixed = int(u * one)
    term, harmonic, gap, grad, k = one, 0, 0, one, 0
    while k < u or term:
        k += 1
        term = ((term * fixed) >> (bits + 40)) // k
        harmonic += one // (2 * k - 1)
        gap += (term * harmonic) >> (bits + 40)
        grad += term // (2 * k + 1)
    decay = mpmath.exp(-u) / one
    return gap * decay, grad * decay


def _about_u(c: mpf, unit: mpf, terms: int) -> list[list[mpf]]:
    """Return the series of F, F' and F'' about u = c in ``t = (u - c) / unit``."""
    value, first = _seeds(c)
    g = [first]
    for k in range(terms):
        before = g[k - 1] if k else mpf(0)
        right = (1 if k == 0 else 0) - (2 * k + 1 + 2 * c) * g[k] - 2 * before
        g.append(right / (2 * c * (k + 1)))
    gap = [value] + [g[k] / (k + 1) for k in range(terms - 1)]
    hess = [(k + 1) * g[k + 1] for k in range(terms)]
    return [[a * unit**k for k, a in enumerate(row)] for row in (gap, g[:terms], hess)]


def _about_x(c: mpf, terms: int) -> list[list[mpf]]:
    u0 = mpmath.exp(-c) / 2
    u = [u0 * (-1) ** k / mpmath.factorial(k) for k in range(terms + 2)]
    gap, grad = _seeds(u0)
    w = [u0 * grad]
    for k in range(terms + 1):
        product = mpmath.fsum(u[j] * w[k - j] for j in range(k + 1))
        w.append((product - (u[k] + w[k]) / 2) / (k + 1))
    value = [-gap] + [w[k] / (k + 1) for k in range(terms - 1)]
    hess = [(k + 1) * w[k + 1] for k in range(terms + 1)]
    return [value, w[:terms], hess]


def _hess_zero() -> mpf:
    """Find the log alpha at which the second derivative changes sign, near -1.507."""

    def hess(x: mpf) -> mpf:
        u = mpmath.exp(-x) / 2
        g = _seeds(u)[1]
        return 1 + g - 2 * u * g

    return mpmath.findroot(hess, (mpf("-1.51"), mpf("-1.50")), solver="anderson", tol=1e-150)


class Tables:
    def __init__(self) -> None:
        with mpmath.workprec(600):
            rows = [
                _about_u(mpmath.ldexp(1 + (j + mpf(0.5)) / CENTRES, e), mpmath.ldexp(mpf(1), e), 20)
                for e in range(*OCTAVES)
                for j in range(CENTRES)
            ]
            self.u = [Taylor([row[i] for row in rows], 6) for i in range(3)]

            rows = [
                _about_x(mpf(j) / X_STEPS, 20)
                for j in range(-X_LIMIT * X_STEPS, X_LIMIT * X_STEPS + 1)
            ]
            self.x = [Taylor([row[i] for row in rows], 6) for i in range(3)]

            # F' = sum (-2u)^k / (2k+1)!!
            g = [(-2) ** k / mpmath.fac2(2 * k + 1) for k in range(18)]
            small = [
                [g[k] / (k + 1) for k in range(16)],  # F / u
                g[:16],
                [(k + 1) * g[k + 1] for k in range(16)],
                [-(k + 1) * g[k] for k in range(16)],  # the derivative in x, over u
            ]
            self.small = [Taylor([row], 6) for row in small]

            # 2u F' = sum (2k-1)!! y^k, y = 1/(2u) = alpha, here in terms of 256 y
            a = [mpmath.fac2(2 * k - 1) / mpf(256) ** k for k in range(28)]
            large = [
                [a[k] / (2 * k) if k else mpf(0) for k in range(26)],  # log(4 e^gamma u)/2 - F
                a[:26],
                [-2 * (k + 1) * a[k] for k in range(26)],  # F'' / y**2
                [128 * (k + 1) * a[k + 1] for k in range(26)],  # the derivative in x, over y
            ]
            self.large = [Taylor([row], 9) for row in large]

            self.large_constant = dd.constant(mpmath.log(4) / 2 + mpmath.euler / 2)
            self.x_constant = dd.constant((mpmath.log(2) + mpmath.euler) / 2)
            zero = _hess_zero()
            self.zero = dd.constant(zero, 3)
            self.by_zero = Taylor([_about_x(zero, 20)[2][1:]], 6)


@lru_cache(maxsize=1)
def tables() -> Tables:
    return Tables()


def hess_zero() -> tuple[float, ...]:
    return tables().zero
