"""The experiments on Hron et al. 2017: what their records show, and that they can disagree."""

import math
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from tests.validation.experiments import committed  # noqa: E402
from validation.papers.hron2017 import correlated, flows, models, slides  # noqa: E402
from validation.papers.kingma2015 import printed  # noqa: E402

records = partial(committed, "hron2017")


def chains():
    pytest.importorskip("numpyro")
    from validation.papers.hron2017 import chains

    return chains


class TestModels:
    def test_a_normaliser_against_scipy(self):
        from scipy.integrate import quad

        model, a, b = models.LINEAR, 1e-3, 50.0

        def density(w):
            return sum(math.exp(model.log_likelihood(s * w)) / w for s in (1, -1))

        total = quad(density, a, b, points=[0.1, 1, 3])[0]
        assert models.normaliser(model, a, b) == pytest.approx(total, rel=1e-9)

    def test_the_sigmoids_add_up(self):
        found = models.normaliser(models.LOGISTIC, 1e-200, 1e100)
        assert found == pytest.approx(300 * math.log(10), rel=1e-14)

    def test_the_finite_part(self):
        import mpmath

        a = mpmath.mpf(10) ** -9
        left = mpmath.quad(lambda t: 1 / (1 + mpmath.exp(mpmath.exp(t))), [mpmath.log(a), -3, 0, 5])
        assert models.finite_part() == pytest.approx(float(left + mpmath.log(a) / 2), abs=1e-8)


class TestNormaliser:
    def test_grows_as_predicted(self):
        record = records("normaliser")
        for part in record["around_zero"]:
            for row in part["rows"]:
                # The next term is of the order of a^2; what is beyond is rounding.
                allowed = row["cut_off"] ** 2 + 1e-14 * row["predicted"]
                assert row["normaliser"] == pytest.approx(row["predicted"], abs=allowed)
                bound = row["bound_of_the_proof"]
                assert bound is None or row["normaliser"] > bound
            before, last = part["rows"][-2:]
            away = last["slope_from_the_row_above"] - part["slope_predicted"]
            assert abs(away) <= before["cut_off"] ** 2 + 1e-13
        for row in record["around_zero"][0]["rows"]:
            # The next term of either side is a/4.
            for side, sign in (("right", -1), ("left", 1)):
                next_term = sign * row["cut_off"] / 4
                away = row[side] - row[f"{side}_predicted"] - next_term
                assert abs(away) < row["cut_off"] ** 3 / 100 + 2e-13

    def test_the_tail(self):
        for row in records("normaliser")["tail"]:
            assert row["lower_bound_of_the_paper"] < row["right"] < row["upper_bound"]
            if row["cut_off"] > 40.0:
                assert row["right"] == pytest.approx(row["predicted"], rel=1e-13)
        for row in records("normaliser")["other_tails"]:
            assert row["slope"] == pytest.approx(row["slope_predicted"], rel=1e-12, abs=0.0)

    def test_networks(self):
        for row in records("normaliser")["networks"]:
            square, slope = row["quadratic_coefficient"][-1], row["slope_of_the_first"][-1]
            assert square == pytest.approx(row["quadratic_coefficient_predicted"], rel=1e-9)
            assert slope == pytest.approx(row["slope_of_the_first_predicted"], rel=1e-7)


def check_errors(row, *names):
    """What is measured is within 4.5 standard errors of what is predicted."""
    for name, error in names:
        assert abs(row[name] - row[f"{name}_predicted"]) < 4.5 * row[f"{error}_standard_error"]


class TestChains:
    def test_follow_the_quadrature(self):
        for rows in records("chains")["with_cut_offs"].values():
            for row in rows:
                check_errors(row, ("mean", "mean"), ("share_near_0", "share"))
                assert row["r_hat"] < 1.05
                assert row["distance_of_distributions"] < 2 / math.sqrt(row["effective_draws"])

    def test_wander_off(self):
        for model, part in records("chains")["without_cut_offs"].items():
            for row in part["rows"]:
                for name in ("root_mean_square", "mean_magnitude"):
                    if model == "logistic" or row["draws"] >= 300:
                        check_errors(row, (name, name))
                    elif row["draws"] == 10:  # a reflected walk comes to its limit from below
                        away = row[name] - row[f"{name}_predicted"]
                        assert away < -3 * row[f"{name}_standard_error"]

    def test_exact_moments_of_the_uniform(self):
        found = chains().expected(models.LOGISTIC, 1e-12, chains().B)
        low, high = -12 * math.log(10), 3 * math.log(10)
        assert found["mean"] == pytest.approx((low + high) / 2, rel=1e-13)
        assert found["deviation"] == pytest.approx((high - low) / math.sqrt(12), rel=1e-12)
        assert found["share_near_0"] == pytest.approx(0.6, rel=1e-13)

    def test_another_distribution_is_found(self):
        draws = np.linspace(-1, 1, 1001)
        assert chains()._distance(models.LOGISTIC, draws, -1.0, 1.0) < 2e-3
        assert chains()._distance(models.LOGISTIC, draws**3, -1.0, 1.0) > 0.1


class TestCorrelated:
    def test_grows_without_bound(self):
        record = records("correlated")
        assert record["greatest_deviation_in_standard_errors"] < 4.5
        for part in record["growth"]:
            last, thinnest = part["rows"][-1], part["rows"][-1]["thickness"]
            # The first term that is left out is of the order of tau^2, over theta_i^2.
            least = np.abs(correlated.means(part["weights"])).min()
            allowed = part["weights"] * (thinnest / least) ** 2 + 1e-9
            assert last["divergence"] == pytest.approx(last["predicted"], abs=allowed)
            if part["weights"] > 1:
                assert last["divergence"] > part["rows"][0]["divergence"] + 10.0

    def test_the_determinant(self):
        theta = np.array([1.0, -2.0, 0.5])
        row = correlated.Row(theta, 0.3, 0.1)
        covariance = 0.3 * np.outer(theta, theta) + 0.01 * np.eye(3)
        assert row.log_det == pytest.approx(np.linalg.slogdet(covariance)[1], rel=1e-12)
        assert row.variances == pytest.approx(np.diag(covariance), rel=1e-14)

    def test_thick_posteriors_are_independent(self):
        row = correlated.Row(np.array([1.0, -2.0]), 0.3, 1e6)
        assert row.total_correlation() == pytest.approx(0.0, abs=1e-11)

    def test_a_wrong_divergence_is_found(self, monkeypatch):
        row = correlated.Row(np.array([1.0, -2.0]), 0.3, 0.1)
        mean, error = row.sampled(20_000, np.random.default_rng(1))
        assert abs(mean - row.divergence()) < 4 * error
        monkeypatch.setattr(correlated.Row, "total_correlation", lambda self: 0.0)
        assert abs(mean - row.divergence()) > 40 * error


class TestParametrisations:
    def test_flows_end_where_predicted(self):
        record = records("parametrisations")
        for row in record["flows"]:
            if "rate" in row:
                assert abs(row["mu_at_the_end"]) < 1e-9
                log_sigma2 = row["log_sigma2_predicted"]
                assert row["log_sigma2_at_the_end"] == pytest.approx(log_sigma2, abs=1e-8)
                assert row["rate"] == pytest.approx(row["rate_predicted"], rel=1e-2)
            else:
                assert row["theta_moved_by"] == 0.0
                assert 0.998 < row["alpha_over_its_limit"] < 1.0
        for row in record["additive_at_mu_0"]:
            assert row["hessian"][0][0] == pytest.approx(row["curvature_predicted"], rel=1e-14)
        for row in record["multiplicative_far_out"]:
            assert row["kl_over_u"] == pytest.approx(1.0, abs=math.exp(-row["log_alpha"]))

    def test_a_weight_is_kept_above_a_squared_signal_of_one(self):
        record = records("parametrisations")
        near = "alpha_times_kappa_less_1"
        limit = record["threshold"][f"{near}_predicted"]
        assert record["threshold"][f"{near}_near_1"] == pytest.approx(limit, rel=1e-3)
        for row in record["with_data"]:
            kept = row["objective_at_the_end"] < row["objective_where_pruned"]
            assert kept == (row["kappa"] > 1.0)
            if row["kappa"] >= 1.5:  # nearer to 1 the flow is slow
                for name in ("log_alpha", "mu"):
                    predicted = row[f"{name}_predicted"]
                    assert row[f"{name}_at_the_end"] == pytest.approx(predicted, abs=1e-6)

    @pytest.mark.parametrize("name", flows.WAYS)
    def test_the_gradient_of_each_way(self, name):
        """By differences of KL in the way's own coordinates."""
        way = flows.WAYS[name]
        state = np.array(way.start(0.7, -1.3))

        def kl(values):
            return float(lk.kl_normal(*way.normal(values)))

        found = flows.divergence_gradient(way, state)
        for axis, step in enumerate(1e-6 * np.eye(2)):
            slope = (kl(state + step) - kl(state - step)) / 2e-6
            assert found[axis] == pytest.approx(slope, rel=1e-8, abs=1e-9)


def test_every_way_agrees():
    record = records("remarks")
    assert record["greatest_difference"] < 3e-15
    assert record["greatest_relative_difference_of_gradients"] < 3e-15
    assert record["greatest_deviation_of_monte_carlo_in_standard_errors"] < 4.5
    for row in record["remark_2"]:
        assert row["strictly_increases"]
        near = abs(row["gradient_at_the_least_u"] - row["gradient_at_the_least_u_predicted"])
        assert (near < 1e-14) == row["exact"]


class TestSlides:
    def test_minibatches_as_predicted(self):
        for row in records("slides")["statements"][0]["measured"]["rows"]:
            assert abs(row["measured"] - row["predicted"]) < 4.5 * row["standard_error"]

    def test_a_number_that_differs_is_found(self, monkeypatch):
        monkeypatch.setitem(slides.SHOWN, "local", (7.8e3, 1.2e3, 1.9e2, 1.2e2))
        found = slides.lowest_variance()
        assert not found.holds
        assert found.measured["numbers_that_differ"] == 1

    def test_a_verdict_is_decided(self, monkeypatch):
        lower = {key: value / 3 for key, value in printed.GRADIENT_VARIANCE["independent"].items()}
        kept = {key: value for key, value in lower.items() if key[0] != "local"}
        table = {**printed.GRADIENT_VARIANCE["independent"], **kept}
        monkeypatch.setitem(printed.GRADIENT_VARIANCE, "independent", table)
        assert not slides.lowest_variance().holds
