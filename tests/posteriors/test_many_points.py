"""Thousands of points cost one evaluation of the density at 21 nodes between each two."""

import numpy as np
import pytest
from scipy import integrate, stats

from logunif_kl._convention import PROPER_CONSTANT
from logunif_kl.posteriors import _cells, _distribution, neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import neg_kl_of_histogram


class Counting(stats.rv_continuous):
    """A piecewise linear density, which counts where it is evaluated."""

    def __init__(self, edges, **constructor):
        self.edges = np.asarray(edges)
        self.heights = stats.norm.pdf(self.edges, 0.4, 0.6)
        self.heights[::2] *= 0.5
        self.heights /= np.trapezoid(self.heights, self.edges)
        self.below = integrate.cumulative_trapezoid(self.heights, self.edges, initial=0.0)
        self.count = 0
        super().__init__(**{**constructor, "a": edges[0], "b": edges[-1]})

    def _updated_ctor_param(self):
        return {**super()._updated_ctor_param(), "edges": self.edges}

    def _pdf(self, x):
        self.count += np.size(x)
        return np.interp(x, self.edges, self.heights)

    def _cdf(self, x):
        return np.interp(x, self.edges, self.below)

    def _ppf(self, p):
        return np.interp(p, self.below, self.edges)


@pytest.mark.parametrize("bins", [10, 100, 3000])
def test_a_histogram(bins):
    edges = np.linspace(-2.0, 3.0, bins + 1)
    heights = stats.norm.pdf((edges[1:] + edges[:-1]) / 2.0, 0.4, 0.6)
    dist = stats.rv_histogram((heights, edges), density=True)
    probability = heights * np.diff(edges)
    exact = neg_kl_of_histogram(edges, probability / probability.sum())
    value, error = neg_kl_posterior(dist, points=edges, return_error=True)
    # The sum of the formulas has a rounding error of its own.
    assert abs(value - exact) <= error + bins * 2e-16
    assert error < 1e-11
    split = neg_kl_split(dist, points=edges)
    assert abs(split.total - exact) <= split.error + bins * 2e-16


def test_ten_thousand_points():
    edges = np.linspace(-2.0, 3.0, 10_001)
    dist = Counting(edges, name="counting")()
    dist.dist.count = 0
    value, error = neg_kl_posterior(dist, points=edges, return_error=True)
    assert dist.dist.count < 21 * 10_000 + 20_000
    assert error < 1e-11
    # Gauss's rule in each piece, where the integrand is smooth except for log|w| next to 0.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    step = edges[1] - edges[0]
    w = (edges[:-1] + edges[1:])[:, None] / 2 + step / 2 * nodes
    q = np.interp(w, edges, dist.dist.heights)
    zero = int(np.argmin(abs(edges)))
    far = np.ones(len(w), bool)
    far[zero - 1 : zero + 1] = False
    logarithm = np.where(far[:, None], np.log(abs(w)), 0.0)
    found = -float(np.sum(q * (np.log(q) + logarithm) @ weights)) * step / 2
    at, sides = dist.dist.heights[zero], dist.dist.heights[[zero - 1, zero + 1]]
    near = at * (np.log(step) - 1.0) + (sides - at) * (np.log(step) / 2 - 0.25)
    found -= step * float(np.sum(near))
    assert abs(value - (found - PROPER_CONSTANT)) <= error + 1e-11


def test_a_cell_with_a_singular_end_is_left_to_the_other_quadrature():
    """The first and the last cell have an end where the density is infinite."""
    dist = stats.beta(0.5, 0.5)
    points = [0.1 * k for k in range(1, 10)]
    read = _distribution.standardised(dist)
    cells = _cells.integrate(read, np.array([0.0, *points, 1.0]), 1e-14, 1e-11)
    assert not cells.accepted[0]
    assert not cells.accepted[-1]
    value, error = neg_kl_posterior(dist, method="quadrature", points=points, return_error=True)
    assert abs(value - neg_kl_posterior(dist, method="closed")) <= error < 1e-9


def test_the_rule():
    """Kronrod's rule of 21 nodes has degree 31, and that of Gauss within it 19."""
    rule = _cells._RULE
    for degree in range(0, 32, 2):
        exact = 2.0 / (degree + 1)
        assert rule.at**degree @ rule.kronrod == pytest.approx(exact, rel=1e-14)
        if degree < 20:
            assert rule.at**degree @ rule.gauss == pytest.approx(exact, rel=1e-14)
        assert rule.at ** (degree + 1) @ rule.kronrod == pytest.approx(0.0, abs=1e-15)
    assert rule.at**20 @ rule.gauss != pytest.approx(2.0 / 21.0, rel=1e-8)
