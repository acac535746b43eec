"""Monte Carlo: honest errors, known means, and the same numbers again."""

import itertools
import json
import math
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import stats

import logunif_kl as lk
from logunif_kl.methods import _control_variates, _sampling
from logunif_kl.methods._monte_carlo import MONTE_CARLO, monte_carlo, monte_carlo_grad
from validation.monte_carlo import RESULT, faults

LOG_ALPHA = np.array([-8.0, -4.0, -3.5, -3.0, -2.5, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0])
FUNCTIONS = pytest.mark.parametrize(
    ("function", "exact"),
    [(monte_carlo, lk.neg_kl), (monte_carlo_grad, lk.neg_kl_grad)],
    ids=["value", "gradient"],
)
PLAIN = {"variance_reduction": False}
SCHEMES = pytest.mark.parametrize("scheme", ["plain", "antithetic", "qmc"])


def coverage(function, exact, seeds, x=LOG_ALPHA, width=1.96, **options):
    """The share of seeds whose standard errors, times a width, reach the exact value at each x."""
    truth, covered = exact(x), np.zeros(x.size)
    for seed in seeds:
        estimate, error = function(x, rng=seed, **options)
        covered += np.abs(estimate - truth) <= width * error
    return covered / len(seeds)


class TestHonesty:
    @FUNCTIONS
    @pytest.mark.parametrize("reduced", [True, False])
    @pytest.mark.parametrize("scheme", ["plain", "antithetic"])
    def test_1000_intervals(self, function, exact, scheme, reduced):
        # bare logarithms are skew, and their averages slower to be normal
        options = {"n_samples": 1024 if reduced else 4096, "variance_reduction": reduced}
        found = coverage(function, exact, range(1000), scheme=scheme, **options)
        assert found.min() >= 0.93
        assert found.max() <= 0.97

    @FUNCTIONS
    @pytest.mark.parametrize(
        ("seeds", "low", "high"),
        [
            # Once in 1e5 times intervals of 95 % would fall outside, for one log alpha.
            (100, *stats.binom.ppf([1e-5, 1 - 1e-5], 100, 0.95) / 100),
            pytest.param(1000, 0.93, 0.97, marks=pytest.mark.slow),
        ],
    )
    def test_intervals_of_sobol_points(self, function, exact, seeds, low, high):
        """Few seeds say little about the intervals, but their mean shows a bias."""
        runs = [function(LOG_ALPHA, rng=s, scheme="qmc", n_samples=1024) for s in range(seeds)]
        estimates, errors = np.array(runs).transpose(1, 0, 2)
        truth = exact(LOG_ALPHA)
        covered = np.mean(np.abs(estimates - truth) <= 1.96 * errors, axis=0)
        assert low <= covered.min() <= covered.max() <= high
        deviation = np.sqrt(np.sum(errors**2, axis=0)) / seeds
        assert np.abs((estimates.mean(axis=0) - truth) / deviation).max() < 4.0

    def test_the_standard_errors(self):
        interval = MONTE_CARLO.domain
        _, error = monte_carlo(np.linspace(interval.low, interval.high, 201), rng=0)
        assert error.max() <= MONTE_CARLO.claims[0].value <= 1.03 * error.max()
        _, error = monte_carlo_grad(LOG_ALPHA, rng=0)
        assert error.max() < 1e-3


class TestFewest:
    """At most 1 % of the seeds miss, at every log alpha, from the least number of samples on."""

    def missed(self, function, exact, seeds, **options):
        x = np.linspace(-8.0, 8.0, 33)
        return 1.0 - coverage(function, exact, seeds, x=x, width=3.0, **options)

    @pytest.mark.parametrize(
        ("seeds", "most", "mean"),
        [
            # Of 1 %, more than this comes once in 1e5 times at one log alpha.
            (range(200), stats.binom.isf(1e-5, 200, 0.01) / 200, 0.01),
            # The standard deviation of the share is 0.22 % at 1 %; the largest of 33 is taken.
            pytest.param(range(1000, 3000), 0.0144, 0.0075, marks=pytest.mark.slow),
        ],
        ids=["200 seeds", "2000 seeds"],
    )
    @FUNCTIONS
    @pytest.mark.parametrize(
        ("scheme", "reduced"),
        [(s, r) for s in _sampling.LEAST for r in (True, False) if r or s != "qmc"],
    )
    def test_seeds(self, function, exact, scheme, reduced, seeds, most, mean):
        least = _sampling.LEAST[scheme][0 if reduced else 1]
        options = {"scheme": scheme, "variance_reduction": reduced, "n_samples": least}
        found = self.missed(function, exact, seeds, **options)
        assert found.max() <= most + 1e-12
        assert found.mean() <= mean


class TestCommittedResults:
    """What ``python -m validation.monte_carlo`` found is what the documentation says."""

    found = json.loads(RESULT.read_text(encoding="utf-8"))

    def test_no_fault(self):
        """Neither in the intervals, nor in the memory, nor in the averages of the gradients."""
        assert faults(self.found) == []
        assert self.found["memory"]["samples"] == 10**9

    def test_variance_reduction(self):
        at = dict(zip(self.found["log_alpha"], itertools.count(), strict=False))
        plain, _, qmc, *_ = self.found["variance_reduction"]
        assert (plain["scheme"], qmc["scheme"]) == ("plain", "qmc")
        for x, said in ((-1.0, 68), (2.0, 180), (-2.5, 6e3), (-8.0, 2e13)):
            assert plain["variance_divided_by"][at[x]] == pytest.approx(said, rel=0.2)
        assert min(qmc["variance_divided_by"]) >= 3e7


class TestVarianceReduction:
    def test_it_pays_everywhere(self):
        x = np.linspace(-10.0, 10.0, 101)
        _, reduced = monte_carlo(x, rng=0)
        _, plain = monte_carlo(x, rng=0, variance_reduction=False)
        gain = (plain / reduced) ** 2
        assert gain.min() > 50.0
        assert gain[0] > 1e12
        assert gain[-1] > 1e4

    def test_the_two_forms_meet(self):
        """Beside r = 6 the regression and the Taylor polynomial see the same samples."""
        x = -2.0 * math.log(6.0) + np.array([-1e-9, 1e-9])
        integrand = _control_variates.Integrand(x, True, False)
        assert [rows.tolist() for rows in integrand.groups(8)] == [[1], [0]]
        estimate, error = monte_carlo(x, rng=0)
        assert np.all(np.abs(estimate - lk.neg_kl(x)) < 4 * error)
        assert error.max() < 2e-6


class TestSampling:
    @SCHEMES
    def test_the_same_seed_gives_the_same_numbers(self, scheme):
        def estimate(rng=None):
            return monte_carlo(np.array([-1.0, 2.0]), n_samples=512, rng=rng, scheme=scheme)

        once, generator = estimate(7), np.random.default_rng(7)
        np.testing.assert_array_equal(once, estimate(7))
        np.testing.assert_array_equal(once, estimate(generator))
        for others in (estimate(generator), estimate(8), estimate()):
            assert np.all(once[0] != others[0])

    @SCHEMES
    @pytest.mark.parametrize("n_samples", [300, 40_000])
    def test_an_element_does_not_depend_on_the_others(self, scheme, n_samples):
        options = {"n_samples": n_samples, "rng": 3, "scheme": scheme}
        together = monte_carlo(LOG_ALPHA, **options)
        for i, x in enumerate(LOG_ALPHA):
            alone = monte_carlo(x, **options)
            assert (alone[0], alone[1]) == (together[0][i], together[1][i])

    def test_blocks_are_merged_as_if_they_were_one(self):
        values = 1e6 + np.random.default_rng(0).standard_normal((3, 1000))
        moments = _sampling.Moments(3)
        for block in np.split(values, [1, 10, 500, 777], axis=1):
            moments.add(slice(None), block)
        np.testing.assert_allclose(moments.mean, values.mean(axis=1), rtol=1e-15)
        expected = values.std(axis=1, ddof=1) / math.sqrt(1000)
        np.testing.assert_allclose(moments.standard_error(), expected, rtol=1e-9)

    @pytest.mark.parametrize(
        ("n_samples", "sequences", "points"), [(256, 16, 16), (511, 31, 16), (1000, 31, 32)]
    )
    def test_sobol_sequences(self, n_samples, sequences, points):
        blocks = list(_sampling._blocks(n_samples, "qmc", np.random.default_rng(0)))
        assert [z.size for z, _ in blocks] == [points] * sequences
        assert all(ends for _, ends in blocks)
        assert sequences * points > 16 / 17 * n_samples
        for z, _ in blocks:
            # one point in each of `points` strata of equal probability
            assert sorted((stats.norm.cdf(z) * points).astype(int)) == list(range(points))
        assert len({z[0] for z, _ in blocks}) == sequences

    def test_a_sobol_sequence_longer_than_a_block_is_one_unit(self):
        n = 16 * 2 * _sampling.BLOCK
        ends = [ends for _, ends in _sampling._blocks(n, "qmc", np.random.default_rng(0))]
        assert ends == [False, True] * 16

    def test_students_factor(self):
        found = _sampling.students_factor(np.array([16.0, 31.0, 1e9]))
        np.testing.assert_allclose(found, [1.0875, 1.0420, 1.0], atol=5e-5)

    @SCHEMES
    def test_memory_does_not_grow_with_the_samples(self, scheme):
        peaks = []
        monte_carlo(0.0, n_samples=512, scheme=scheme)  # Sobol's direction numbers are read once
        for n_samples in (2**18, 2**20):
            tracemalloc.start()
            monte_carlo(np.zeros(4), n_samples=n_samples, rng=0, scheme=scheme)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < 16 * 2**20
        assert peaks[1] < peaks[0] + 2**20


class TestArguments:
    @FUNCTIONS
    @SCHEMES
    def test_limits(self, function, exact, scheme):
        x = np.array([-np.inf, -1e308, -2000.0, 2000.0, 1e308, np.inf, np.nan])
        estimate, error = function(x, n_samples=300, rng=0, scheme=scheme)
        truth = exact(x)
        assert np.isnan(estimate[-1])
        assert np.isnan(error[-1])
        assert (estimate[0], estimate[-2]) == (truth[0], truth[-2])
        assert error[0] == error[-2] == 0.0
        assert np.all(np.abs(estimate[1:-2] - truth[1:-2]) <= 4 * error[1:-2])

    def test_conventions(self):
        for convention in ({"zero_at": 1.0}, {"log_c": -2.0}, {"zero_at": 0.3}):
            estimate, error = monte_carlo([-np.inf, 0.5, np.inf], rng=0, **convention)
            truth = lk.neg_kl([-np.inf, 0.5, np.inf], **convention)
            assert estimate[0] == -np.inf
            assert abs(estimate[1] - truth[1]) < 4 * error[1]
            assert estimate[2] == truth[2]
        with pytest.raises(ValueError, match="were both given"):
            monte_carlo(0.0, zero_at=1.0, log_c=0.0)

    @FUNCTIONS
    def test_shapes(self, function, exact):
        for shape in ((), (3,), (2, 0), (2, 3)):
            estimate, error = function(np.zeros(shape, dtype=np.float32), n_samples=128, rng=0)
            assert np.shape(estimate) == np.shape(error) == shape
            assert estimate.dtype == error.dtype == np.float64
        assert isinstance(function(0, n_samples=128, rng=0)[0], np.float64)
        of_integers, of_floats = (function(x, n_samples=128, rng=0) for x in ([0, 1], [0.0, 1.0]))
        np.testing.assert_array_equal(of_integers, of_floats)

    @FUNCTIONS
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"n_samples": 127},
                r"^n_samples must be between 128 and 4294967296, but 127 was given: the standard "
                r"error of scheme='plain' needs 128, and the averages of several calls can be aver",
            ),
            ({"n_samples": 2**40}, "between 128 and 4294967296, but 1099511627776 was given"),
            ({"n_samples": 254, "scheme": "antithetic"}, "of scheme='antithetic' needs 256"),
            ({"n_samples": 511} | PLAIN, "of scheme='plain' without variance reduction needs 512,"),
            (
                {"n_samples": 2046, "scheme": "antithetic"} | PLAIN,
                "of scheme='antithetic' without variance reduction needs 2048,",
            ),
            ({"n_samples": 257, "scheme": "antithetic"}, r"be even .* but 257 was given: take 258"),
            ({"n_samples": 255, "scheme": "qmc"}, r"but 255 was given: .* scheme='qmc' needs 256"),
            ({"scheme": "sobol"}, "scheme='sobol' is not known: pass one of 'plain', 'antithetic'"),
            ({"scheme": "qmc"} | PLAIN, "the logarithm makes the standard error wrong"),
        ],
    )
    def test_values_refused(self, function, exact, options, message):
        with pytest.raises(ValueError, match=message):
            function(0.0, **options)

    @FUNCTIONS
    @pytest.mark.parametrize("n_samples", [1e3, "many", None, True])
    def test_types_refused(self, function, exact, n_samples):
        with pytest.raises(TypeError, match="n_samples must be an integer, but"):
            function(0.0, n_samples=n_samples)
        with pytest.raises(TypeError, match="log_alpha must hold real numbers"):
            function(1j)

    @FUNCTIONS
    @pytest.mark.parametrize(
        ("rng", "kind", "given"),
        [
            (-1, ValueError, "int -1"),
            ([-1], ValueError, r"list \[-1\]"),
            (1.5, TypeError, "float 1.5"),
            ("seed", TypeError, "str 'seed'"),
        ],
    )
    def test_seeds_refused(self, function, exact, rng, kind, given):
        with pytest.raises(
            kind,
            match=rf"^rng must be a numpy.random.Generator, a seed or None, but {given} was given: "
            r"pass an int of at least 0 for the same numbers each time, or leave it out$",
        ):
            function(0.0, rng=rng)


class TestMask:
    @FUNCTIONS
    def test_it_is_kept(self, function, exact):
        x = np.ma.masked_array([[-1.0, np.nan, 2.0], [0.5, 1e300, np.inf]], [[0, 1, 0], [1, 1, 0]])
        for result in function(x, rng=0):
            assert isinstance(result, np.ma.MaskedArray)
            assert result.mask.tolist() == x.mask.tolist()
        for result, other in zip(function(x, rng=0), function(x.filled(0.0), rng=0), strict=True):
            np.testing.assert_array_equal(result.compressed(), other[~x.mask])

    @FUNCTIONS
    def test_without_a_mask(self, function, exact):
        x = np.ma.masked_array([-1.0, 2.0])
        for result, plain in zip(function(x, rng=0), function(x.data, rng=0), strict=True):
            assert isinstance(result, np.ma.MaskedArray)
            np.testing.assert_array_equal(result.filled(np.nan), plain)

    def test_of_integers_and_of_nothing(self):
        estimate, error = monte_carlo(np.ma.masked_equal([0, 3], 3), rng=0)
        assert estimate.mask.tolist() == error.mask.tolist() == [False, True]
        assert monte_carlo(np.ma.masked, rng=0)[0] is np.ma.masked


class TestProgress:
    def test_it_is_off_by_default(self, capfd):
        monte_carlo(0.0, rng=0)
        assert capfd.readouterr() == ("", "")

    @SCHEMES
    def test_it_ends_with_the_samples_and_changes_no_number(self, scheme, monkeypatch):
        rich = pytest.importorskip("rich.progress")
        done = []
        monkeypatch.setattr(rich.Progress, "advance", lambda self, task, n: done.append(n))
        shown = monte_carlo(0.0, n_samples=2**16, rng=0, scheme=scheme, progress=True)
        assert sum(done) == 2**16
        assert shown == monte_carlo(0.0, n_samples=2**16, rng=0, scheme=scheme)

    def test_without_rich(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.progress", None)
        with pytest.raises(ImportError, match=r"progress=True needs rich, .* install .*\[cli\]"):
            monte_carlo(0.0, progress=True)
