"""Values and gradients against `logunif_kl.reference`, at 2,000 points and at edges of ranges."""

from functools import cache

import numpy as np
import pytest

from logunif_kl import reference
from logunif_kl._arithmetic import tables
from tests import ulp
from tests.adapters.test_adapters import of
from tests.adapters.ways import EVERY

pytestmark = pytest.mark.slow
# The worst error found, in ulp: with NumPy's ufuncs, and with the framework's own exp and log.
LIMITS = {"float32": 0.51, "float64": 1.4}
OWN = {("mlx", "eager"): {"float32": 3.7}, ("paddle", "in a static graph"): {"float64": 4.0}}
LARGEST = {"float32": 80.0, "float64": 600.0}


@cache
def points(nin, dtype):
    rng, most = np.random.default_rng(48), LARGEST[dtype]
    bounds = {b for f in ("neg_kl", "neg_kl_grad") for b in tables.table(f, dtype).bounds}
    near = np.array(sorted(bounds), dtype)
    edges = [near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), [0.0, 1e-30, -1e-30]]
    x = np.concatenate([*edges, rng.uniform(-15.0, 15.0, 1500), rng.uniform(-most, most, 500)])
    if nin == 1:
        return (x.astype(dtype),)
    log_sigma2 = rng.permutation(x)
    mu = rng.choice([-1.0, 1.0, 1.0, 0.0], x.size) * np.exp((log_sigma2 - x) / 2.0)
    return mu.astype(dtype), log_sigma2.astype(dtype)


@cache
def truth(orders, dtype):
    at = [map(float, x) for x in points(len(orders), dtype)]
    if len(orders) == 1:
        return [(reference.neg_kl, reference.neg_kl_grad)[orders[0]](x, dps=25) for x in at[0]]
    pairs = zip(*at, strict=True)
    if not any(orders):
        return [reference.neg_kl_normal(*pair, dps=25) for pair in pairs]
    return [reference.neg_kl_normal_grad(*pair, dps=25)[orders[1]] for pair in pairs]


@pytest.mark.filterwarnings("ignore:Tensor do not have 'place'")
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("orders", [(0,), (1,), (0, 0), (1, 0), (0, 1)], ids=str)
@pytest.mark.parametrize(("name", "how"), sorted({*((n, "eager") for n in EVERY), *OWN}))
def test_errors(name, how, orders, dtype):
    pytest.importorskip(name)
    ways = EVERY[name]()
    if dtype == "float64" and not ways.float64:
        pytest.skip(f"{name} has no accurate float64")
    at, limit = points(len(orders), dtype), OWN.get((name, how), {}).get(dtype, LIMITS[dtype])
    got = ways.run(ways.derivative(of(len(orders)), orders), how, dtype, *at)
    errors = [ulp.error(float(g), t, dtype) for g, t in zip(got, truth(orders, dtype), strict=True)]
    assert max(map(abs, errors)) <= limit
