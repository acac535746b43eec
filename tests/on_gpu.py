"""What the tests on a GPU share: arguments as in the accuracy reports, and the largest error."""

import numpy as np

from validation.accuracy import search
from validation.accuracy.flushing import plain_error
from validation.accuracy.functions import edges

UNARY = ("neg_kl", "neg_kl_grad", "neg_kl_hess")
NORMAL = ("neg_kl_normal", "neg_kl_normal.dmu", "neg_kl_normal.dlog_sigma2")


def points_of(name, dtype, count=1 << 18):
    points = search.sample(name, np.random.default_rng(4), count, dtype)
    beside = search.beside_edges(name, {kind: edges(kind) for kind in "ux"}, dtype)
    return [np.concatenate(parts) for parts in zip(points, beside, strict=True)]


def assert_accurate(name, points, got, most, counted=plain_error):
    """The errors in ulp at the points are at most ``most`` of their type."""
    blocks = iter(np.split(got, range(search.BLOCK, len(got), search.BLOCK)))
    errors = search.measure(name, lambda *_: next(blocks), points, counted)
    worst = int(np.argmax(errors))
    at = [float(p[worst]).hex() for p in points]
    assert errors[worst] <= most[points[0].dtype.name], f"{name}: {errors[worst]} ulp at {at}"
