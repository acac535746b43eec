"""Every closed form against the quadrature, and what they are made of against fifty digits."""

import re

import mpmath
import numpy as np
import pytest
from scipy import stats

from logunif_kl.posteriors import _closed_forms as forms
from logunif_kl.posteriors import _entropies as entropies
from logunif_kl.posteriors import neg_kl_posterior

SHAPES = {
    "gamma": [(0.05,), (0.5,), (3.0,), (400.0,)],
    "erlang": [(1,), (4,)],
    "chi2": [(1.0,), (7.0,)],
    "invgamma": [(0.7,), (30.0,)],
    "chi": [(1.0,), (5.0,)],
    "nakagami": [(0.6,), (8.0,)],
    "gengamma": [(1.5, -2.0), (0.5, 3.0)],
    "dgamma": [(0.3,), (2.0,)],
    "gennorm": [(0.5,), (2.0,), (6.0,)],
    "halfgennorm": [(0.7,), (1.3,)],
    "weibull_min": [(0.2,), (3.0,)],
    "weibull_max": [(0.5,), (2.0,)],
    "invweibull": [(2.0,), (11.0,)],
    "dweibull": [(0.6,), (3.0,)],
    "betaprime": [(0.5, 2.0), (7.0, 0.3)],
    "f": [(3.0, 5.0), (1.0, 1.0)],
    "t": [(0.5,), (1.0,), (4.0,), (1e6,)],
    "burr": [(2.0, 1.5)],
    "burr12": [(2.0, 1.5)],
    "fisk": [(0.5,), (3.0,)],
    "beta": [(0.5, 0.5), (2.0, 5.0), (30.0, 2.0)],
    "lognorm": [(0.01,), (0.1,), (4.0,)],
    "loguniform": [(0.01, 100.0), (2.0, 2.5), (3.0, 5.999)],
    "pareto": [(0.5,), (3.0,)],
    "powerlaw": [(0.3,), (2.0,)],
    "loglaplace": [(2.0,)],
}
SHIFTS = (0.0, 1e-9, 0.3, -0.4, -0.6, -2.0, 5.0, -50.0, 1e6)
CASES = [
    (name, shapes, 0.0)
    for name in (*forms._CENTRED, "halfnorm", "reciprocal")
    for shapes in SHAPES.get("loguniform" if name == "reciprocal" else name, [()])
]
CASES += [(name, (), loc) for name in (*forms._SHIFTED, "norm") for loc in SHIFTS]


@pytest.mark.parametrize(("name", "shapes", "loc"), CASES)
def test_against_the_quadrature(name, shapes, loc):
    dist = getattr(stats, name)(*shapes, loc=loc, scale=1.3)
    closed, closed_error = neg_kl_posterior(dist, method="closed", return_error=True)
    found, error = neg_kl_posterior(dist, method="quadrature", return_error=True)
    assert abs(closed - found) <= closed_error + error
    assert closed_error < 2e-13
    assert error < 3e-11


def test_the_docstring_lists_them_all():
    text = neg_kl_posterior.__doc__.split("Closed forms are known for")[1].split("; each")[0]
    listed = set(re.findall(r"\w+", text)) - {"with", "any", "loc", "and", "for", "0"}
    assert listed == {*forms._CENTRED, *forms._SHIFTED, "norm", "halfnorm"}


@pytest.mark.parametrize("name", sorted(forms._CENTRED))
def test_a_shift_has_no_closed_form(name):
    dist = getattr(stats, name)(*SHAPES.get(name, [()])[0], loc=0.1)
    with pytest.raises(ValueError, match="no closed form of -KL is known for"):
        neg_kl_posterior(dist, method="closed")


def test_a_namesake_is_not_taken_for_the_original():
    class Impostor(stats.rv_continuous):
        def _pdf(self, x):
            return 2.0 * x

    with pytest.raises(ValueError, match="no closed form"):
        neg_kl_posterior(Impostor(a=0.0, b=1.0, name="expon")(), method="closed")


def exactly_gamma(a):
    a = mpmath.mpf(a)
    return a + mpmath.loggamma(a) - a * mpmath.digamma(a)


def exactly_exponential(k):
    k = mpmath.mpf(k)
    if k == 0:
        return -mpmath.euler
    tail = mpmath.exp(k) * mpmath.e1(k) if k > 0 else -mpmath.exp(k) * mpmath.ei(-k)
    return mpmath.log(abs(k)) + tail


def exactly_laplace(k):
    return (exactly_exponential(k) + exactly_exponential(-mpmath.mpf(k))) / 2


def exactly_uniform(k):
    k = mpmath.mpf(k)
    return sum(s * w * mpmath.log(abs(w)) for s, w in ((1, k + 1), (-1, k)) if w) - 1


SIZES = [*np.geomspace(1e-12, 1e12, 241).tolist(), 9.999999, 10.0, 49.9999, 50.0, 0.999999, 1.0]
SIZES += [5e-324, 1e-300, 1e300]
SIGNED = [0.0, *SIZES, *(-k for k in SIZES), -0.5, -0.49, -0.51, -1.0 + 2**-53, -1.0 - 2**-52]


@pytest.mark.parametrize(
    ("function", "exactly", "arguments", "ulps"),
    [
        (entropies.gamma_entropy, exactly_gamma, SIZES, 30),
        (entropies.mean_log_exponential, exactly_exponential, SIGNED, 6),
        (entropies.mean_log_laplace, exactly_laplace, SIZES, 3),
        (entropies.mean_log_uniform, exactly_uniform, SIGNED, 3),
    ],
)
def test_entropies(function, exactly, arguments, ulps):
    with mpmath.workdps(400):
        for x in arguments:
            truth = exactly(x)
            error = abs(function(x) - truth) / max(1, abs(truth))
            assert error < ulps * 2.0**-53, x


@pytest.mark.parametrize("a", [0.01, 0.5, 3.0, 1e3, 1e9])
@pytest.mark.parametrize("b", [0.01, 0.5, 3.0, 1e3, 1e9])
def test_beta_entropies(a, b):
    with mpmath.workdps(50):
        x, y = mpmath.mpf(a), mpmath.mpf(b)
        prime = exactly_gamma(x) + exactly_gamma(y) - exactly_gamma(x + y)
        plain = prime + mpmath.digamma(y) - mpmath.digamma(x + y)
        parts = max(1, *(abs(exactly_gamma(v)) for v in (x, y)))
        assert abs(entropies.beta_prime_entropy(a, b) - prime) < 2.0**-49 * parts
        parts = max(parts, abs(mpmath.digamma(y)), abs(mpmath.digamma(x + y)))
        assert abs(entropies.beta_entropy(a, b) - plain) < 2.0**-49 * parts
