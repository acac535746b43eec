"""No subnormal number slows down the float32 kernels of C, whatever the arguments.

The kernels run with the processor's register MXCSR cleared, and report the flags that they set.
"""

import math

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy import ufuncs
from tests.child import output
from tests.numpy.test_float32_ufuncs import INF, MOST_ULP, NAMES, NAN, c
from validation.accuracy import search, ulp
from validation.accuracy.functions import edges
from validation.accuracy.truth import truth

if not hasattr(c, "trial"):
    pytest.skip("only x86 processors have the register MXCSR", allow_module_level=True)

KERNELS = [kernel for kernel in ufuncs.available_kernels() if kernel != "python"]
DENORMAL, UNDERFLOW = 0x02, 0x10
FLUSH = 0x8040  # results to zero, and subnormal arguments
COUNT = 20_000
LEAST_NORMAL = 2.0**-126
TINY = 0.0, 1e-45, 1e-40, 1.1754942e-38, 1.1754944e-38, 1e-20
SPECIAL = np.array([*TINY, 1.0, 72.0, 104.0, 199.6, 3e38, INF, NAN]).astype("float32")

COMPUTE = """
import sys
import numpy as np
from logunif_kl._numpy import _float32 as c
points = np.load(sys.argv[1])
results = {}
for mode in (0, 0x8040):
    for name in {k.split("/")[0] for k in points}:
        mu, log_sigma2 = points[name + "/mu"], points[name + "/log_sigma2"]
        for factor in (k.split("/")[1] for k in points if k.startswith(name + "/factor")):
            *arrays, total, flags = c.trial(mode, points[f"{name}/{factor}"], mu, log_sigma2)
            key = f"{name}/{factor}/{mode}"
            results[key] = np.stack(arrays)
            results[key + "/flags"] = np.array(flags)
            results[key + "/total"] = np.array(total)
np.savez(sys.argv[2], **results)
print(c.isa)
"""


def _sets():
    """Pairs (mu, log_sigma2) of every magnitude, with those that once slowed a kernel down."""
    rng = np.random.default_rng(23)

    def bits():
        return rng.integers(0, 2**32, COUNT, dtype=np.uint32).view(np.float32)

    def powers(low, high):
        return rng.choice([-1.0, 1.0], COUNT) * 2.0 ** rng.uniform(low, high, COUNT)

    def beside(exponents):
        return rng.choice(exponents, COUNT) + rng.uniform(-2.0, 2.0, COUNT)

    normal = rng.normal(size=COUNT)
    both = np.concatenate([SPECIAL, -SPECIAL])
    wide = rng.uniform(-300.0, 300.0, COUNT)
    mu = powers(-145, 127)
    log_size = np.log2(np.abs(mu))
    log_u = (2.0 * log_size - 1.0 - beside([-149, -126, -123, -27, 0, 126, 128])) * math.log(2.0)
    log_slope = (log_size - beside([-149, -126, -123])) * math.log(2.0)
    pairs = {
        "usual": (normal, rng.normal(-4.0, 4.0, COUNT)),
        "zero": (np.where(normal < 0.0, 0.0, normal), rng.normal(-4.0, 4.0, COUNT)),
        "small u": (powers(-83, -66), np.full(COUNT, -8.0)),
        "subnormal mu": (powers(-149, -126), wide),
        "large log_sigma2": (normal, rng.uniform(85.0, 105.0, COUNT)),
        "small log_sigma2": (normal, rng.uniform(-105.0, -85.0, COUNT)),
        "subnormal log_sigma2": (normal, powers(-149, -50)),
        "u beside a limit": (mu, log_u),
        "d_mu beside a limit": (mu, log_slope),
        "wide": (powers(-149, 128), wide),
        "bits": (bits(), bits()),
        "bits of mu": (bits(), wide),
        "bits of mu, usual log_sigma2": (bits(), rng.uniform(-10.0, 10.0, COUNT)),
        "special": tuple(a.ravel() for a in np.meshgrid(both, both)),
        "sample": search.sample("neg_kl_normal", rng, COUNT, "float32"),
        "edges": search.beside_edges("neg_kl_normal", {d: edges(d) for d in "ux"}, "float32"),
    }
    # Without FMA, u times exp(-log_sigma2) is rounded.
    mean = powers(-10, 10)
    log_product = 2.0 * np.log2(np.abs(mean)) - 1.0 + 123.5 + rng.uniform(-1.0, 1.0, COUNT)
    pairs["product beside a limit"] = mean, log_product * math.log(2.0) / 2.0
    # A NaN next to means that are scaled takes the same branch, whatever its bits are.
    nan = (rng.integers(0, 2**22, COUNT, dtype=np.uint32) | 0x7FC00000).view(np.float32)
    scaled = rng.uniform(80.0, 115.0, COUNT)
    odd = np.arange(COUNT) % 2 == 1
    pairs["NaN beside large mu"] = powers(124, 127), np.where(odd, nan, scaled)
    with np.errstate(over="ignore", invalid="ignore"):
        return {k: tuple(np.asarray(a, "float32") for a in pair) for k, pair in pairs.items()}


def _factors(n):
    """Factors for all elements, and for each."""
    rng = np.random.default_rng(29)
    numbers = (1.0, -0.3, 2.0**-39, 1e-20, 1e-38, 1e-40, 1e-45, 0.0, 3e38, INF, NAN)
    each = {
        "ones": np.ones(n),
        "masks": rng.integers(0, 2, n),
        "bits": rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32),
        "beside the box": 2.0 ** rng.uniform(-33.0, -31.0, n),
    }
    found = {f"factor {f}": np.array([f], "float32") for f in numbers}
    with np.errstate(invalid="ignore"):
        return found | {f"factor {k}": np.asarray(f, "float32") for k, f in each.items()}


SETS = _sets()
FACTORS = {name: _factors(len(mu)) for name, (mu, _) in SETS.items()}
ONE = "factor 1.0"


@pytest.fixture(scope="module", params=KERNELS)
def results(request, tmp_path_factory):
    """The results of one kernel for each set, from a new process."""
    folder = tmp_path_factory.mktemp(request.param)
    files = [str(folder / name) for name in ("points.npz", "results.npz")]
    points = {}
    for name, (mu, log_sigma2) in SETS.items():
        points |= {f"{name}/mu": mu, f"{name}/log_sigma2": log_sigma2}
        points |= {f"{name}/{k}": factor for k, factor in FACTORS[name].items()}
    np.savez(files[0], **points)
    assert output(COMPUTE, *files, kernel=request.param) == f"{request.param}\n"
    with np.load(files[1]) as loaded:
        return dict(loaded)


def _equal(a, b):
    """Tell where the bits are the same, or both are NaN."""
    return (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))


def three_results(*arguments):
    """The value and both slopes of the kernel in use, with the factor 1."""
    return c.trial(0, np.ones(1, "float32"), *arguments)[:3]


class TestFlags:
    @pytest.mark.parametrize("name", SETS)
    def test_no_subnormal_number_is_taken_or_made(self, name, results):
        for factor in FACTORS[name]:
            flags = results[f"{name}/{factor}/0/flags"]
            assert not (flags & (DENORMAL | UNDERFLOW)).any(), (factor, flags)

    def test_the_register_shows_it(self):
        """The flags of other operations stay: the logarithm and the exponential are inexact."""
        *_, flags = c.trial(0, np.ones(1, "float32"), *SETS["usual"])
        assert all(flag & 0x20 for flag in flags)

    def test_the_mode_is_put_back(self):
        tiny = np.array([1e-40], "float32")
        c.trial(FLUSH, tiny, tiny, tiny)
        assert tiny * np.float32(0.5) > 0.0


class TestResults:
    @pytest.mark.parametrize("name", SETS)
    @pytest.mark.parametrize("i", range(3), ids=NAMES)
    def test_accuracy(self, name, i, results):
        mu, log_sigma2 = SETS[name]
        with np.errstate(invalid="ignore"):  # a NaN that signals is cast
            exact = truth(NAMES[i], mu, log_sigma2)
        got = results[f"{name}/{ONE}/0"][i]
        np.testing.assert_array_equal(np.isnan(got), np.isnan(exact[0]))
        error = ulp.error(got, exact, "float32")
        worst = int(np.argmax(error))
        assert error[worst] <= MOST_ULP, (error[worst], mu[worst], log_sigma2[worst], got[worst])

    @pytest.mark.parametrize("name", SETS)
    def test_a_factor(self, name, results):
        """The product with a derivative that is a normal number is rounded once.

        Where the product is subnormal it is rounded a second time, to a multiple of 2^-149.
        """
        slopes = results[f"{name}/{ONE}/0"][1:3].astype("float64")
        normal = (np.abs(slopes) >= LEAST_NORMAL) & np.isfinite(slopes)
        for key, factor in FACTORS[name].items():
            got = results[f"{name}/{key}/0"][1:3]
            with np.errstate(all="ignore"):
                exact = slopes * factor.astype("float64")
                rounded = exact.astype("float32")
                close = np.abs(got - exact) <= 0.75 * 2.0**-149
            subnormal = np.abs(rounded) <= LEAST_NORMAL
            assert _equal(got, rounded)[normal & ~subnormal].all(), key
            assert close[normal & subnormal].all(), key

    @pytest.mark.parametrize("name", SETS)
    def test_a_large_factor(self, name, results):
        """The product is right even if the derivative alone would be subnormal or 0."""
        with np.errstate(all="ignore"):
            mu, log_sigma2 = (x.astype("float64") for x in SETS[name])
            _, *slopes = lk.special.neg_kl_normal_and_grad(mu, log_sigma2)
            for key, given in FACTORS[name].items():
                factor = np.broadcast_to(given.astype("float64"), mu.shape)
                for got, slope in zip(results[f"{name}/{key}/0"][1:3], slopes, strict=True):
                    exact = slope * factor
                    rounded = np.abs(exact.astype("float32"))
                    unit = np.maximum(np.spacing(rounded).astype("float64"), 2.0**-149)
                    error = np.abs(got - exact) / unit
                    # Such a slope is a normal number of float64.
                    kept = (np.abs(slope) > 1e-290) & np.isfinite(rounded) & np.isfinite(factor)
                    assert (error[kept] <= MOST_ULP + 1.0).all(), key
                    no_number = np.isinf(factor) & (slope == 0.0) & (log_sigma2 == INF)
                    assert np.isnan(got[no_number]).all(), key

    @pytest.mark.parametrize("name", SETS)
    def test_flushing_threads(self, name, results):
        """Flushing to zero changes no result, because no instruction meets a subnormal number."""
        for factor in FACTORS[name]:
            usual, flushed = (results[f"{name}/{factor}/{mode}"] for mode in (0, FLUSH))
            assert _equal(usual, flushed).all(), factor

    @pytest.mark.parametrize("name", SETS)
    def test_value_and_gradient(self, name, results):
        value, d_mu, d_log_sigma2, *negated = results[f"{name}/{ONE}/0"]
        for one, other in zip((value, d_mu, d_log_sigma2), negated, strict=True):
            assert _equal(-one, other).all()

    @pytest.mark.parametrize("name", SETS)
    def test_sum(self, name, results):
        value = results[f"{name}/{ONE}/0"][0].astype("float64")
        total = float(results[f"{name}/{ONE}/0/total"])
        if np.isnan(value).any():
            assert math.isnan(total)
        elif np.isinf(value).any():
            assert total == -INF
        else:
            exact = math.fsum(value)
            assert abs(total - exact) <= len(value) * 2.0**-53 * abs(exact)

    def test_subnormal_values_are_summed(self):
        """Small values are added exactly, at any position in a register."""
        for n in (1, 5, 64, 700):
            mu = np.linspace(1e-21, 4e-21, n).astype("float32")
            value = c.value(mu, np.zeros_like(mu)).astype("float64")
            assert (value < 0.0).all()
            assert (value > -LEAST_NORMAL).all()
            assert c.value_sum(mu, np.zeros_like(mu)) == math.fsum(value)

    @pytest.mark.parametrize("stretch", [1, 2, 16, 64, 600])
    def test_neighbours(self, stretch):
        """The results of an element do not depend on its neighbours."""
        usual = SETS["usual"]
        for name in ("small u", "subnormal mu", "large log_sigma2", "u beside a limit", "bits"):
            n = min(len(SETS[name][0]), 4000)
            other = np.arange(n) // stretch % 2 == 1
            mixed = [np.where(other, b[:n], a[:n]) for a, b in zip(usual, SETS[name], strict=True)]
            alone = three_results(*usual), three_results(*SETS[name])
            for array, a, b in zip(three_results(*mixed), *alone, strict=True):
                assert _equal(array, np.where(other, b[:n], a[:n])).all()

    @pytest.mark.parametrize("neighbour", [(math.nan, 0.0), (1e-30, 0.0), (1.0, 90.0)])
    def test_small_means_and_one_unusual_neighbour(self, neighbour):
        """Small means have a loop of their own, which is left at unusual neighbours."""
        rng = np.random.default_rng(20)
        n = 1 << 18
        mu = (rng.choice([-1, 1], n) * 2.0 ** rng.uniform(-70, -40, n)).astype("float32")
        log_sigma2 = rng.uniform(-20, 20, n).astype("float32")
        alone = three_results(mu, log_sigma2)
        rest = np.arange(n) % 64 != 17
        mu[~rest], log_sigma2[~rest] = neighbour
        for a, b in zip(three_results(mu, log_sigma2), alone, strict=True):
            assert _equal(a, b)[rest].all()
