"""Thousands of points cost one evaluation of the density at 21 nodes between each two."""

import numpy as np
import pytest
from scipy import stats

from logunif_kl.posteriors import Density, _cells, _distribution, neg_kl_posterior, neg_kl_split
from tests.posteriors.exact import neg_kl_of_histogram


class Counting(stats.rv_histogram):
    """A histogram that counts at how many weights its density is evaluated."""

    count = 0

    def _pdf(self, x):
        Counting.count += np.size(x)
        return super()._pdf(x)


@pytest.mark.parametrize(
    ("bins", "as_a_function"), [(4, False), (10, False), (100, True), (3000, False)]
)
def test_a_histogram(bins, as_a_function):
    edges = np.linspace(-2.0, 3.0, bins + 1)
    heights = stats.norm.pdf((edges[1:] + edges[:-1]) / 2.0, 0.4, 0.6)
    heights[bins // 3] = 0.0
    dist = Counting((heights, edges), density=True)
    probability = heights * np.diff(edges)
    exact = neg_kl_of_histogram(edges, probability / probability.sum())
    if as_a_function:
        dist = Density(dist.pdf, (-2.0, 3.0), edges[1:-1].tolist())
    Counting.count = 0
    value, error = neg_kl_posterior(dist, points=edges, return_error=True)
    assert Counting.count < 21 * bins + 20_000
    # The sum of the formulas has a rounding error of its own.
    assert abs(value - exact) <= error + bins * 2e-16
    assert error < 1e-11
    split = neg_kl_split(dist, points=edges)
    assert abs(split.total - exact) <= split.error + bins * 2e-16


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
