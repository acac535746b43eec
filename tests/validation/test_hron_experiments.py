"""The experiments on Hron et al. 2017 in their quick forms, and that they can disagree."""

import json
import math
from importlib import metadata

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from logunif_kl.cli import sources  # noqa: E402
from tests.validation.experiments import Records  # noqa: E402
from validation.papers.hron2017 import (  # noqa: E402
    correlated,
    flows,
    models,
    normaliser,
    parametrisations,
    remarks,
    slides,
)
from validation.papers.kingma2015 import printed  # noqa: E402
from validation.paths import RESULTS, ROOT  # noqa: E402
from validation.reports import REPORTS  # noqa: E402
from validation.tools import stale  # noqa: E402
from validation.tools.experiments import hron2017 as tables  # noqa: E402
from validation.tools.experiments import page as experiments  # noqa: E402

MODULES = {
    "normaliser": normaliser,
    "correlated": correlated,
    "parametrisations": parametrisations,
    "remarks": remarks,
    "slides": slides,
}
ALL = ("chains", *MODULES)
DRAWN = ("chains", "normaliser", "correlated", "parametrisations")
FOLDER = RESULTS / "hron2017"


def module(name):
    if name != "chains":
        return MODULES[name]
    pytest.importorskip("numpyro")
    from validation.papers.hron2017 import chains

    return chains


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Run each experiment in its quick form once, when a test asks for it."""

    def options(name, folder):
        return ["--plot", folder / f"{name}.png"] if name in DRAWN else []

    return Records(tmp_path_factory.mktemp("records"), module, options)


def committed(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ALL)
def test_a_record_says_where_it_comes_from(records, name):
    record = records(name)
    assert record["command"] == f"python -m validation.papers.hron2017.{name} --quick"
    assert record["quick"] is True
    assert record["seeds"] == [1]
    assert "data" not in record
    assert {"date", "machine", "kernel", "sizes", "seconds"} <= set(record)
    if name == "chains":
        assert record["versions"]["numpyro"] == metadata.version("numpyro")


@pytest.mark.parametrize("name", ALL)
def test_the_command_that_makes_a_record(name):
    report = REPORTS[f"validation/results/hron2017/{name}.json"]
    words = report.command.split()
    assert words[:3] == ["python", "-m", f"validation.papers.hron2017.{name}"]
    options = module(name).EXPERIMENT.parser.parse_args(words[3:])
    figure = getattr(options, "plot", None)
    assert figure is None or REPORTS[figure] == report
    assert report.of == (f"hron2017_{name}",)
    assert sources.sha256(*report.of) is not None


def test_there_are_no_data_to_name(capsys):
    with pytest.raises(SystemExit):
        normaliser.EXPERIMENT.parser.parse_args(["--data", "a.npz"])
    assert "unrecognized arguments: --data" in capsys.readouterr().err
    assert normaliser.EXPERIMENT.command(["--plot", "a.png"]) == (
        "python -m validation.papers.hron2017.normaliser"
    )


class TestModels:
    def test_a_normaliser_against_scipy(self):
        from scipy.integrate import quad

        model, a, b = models.LINEAR, 1e-3, 50.0
        total = sum(
            quad(
                lambda w, s=s: math.exp(model.log_likelihood(s * w)) / w, a, b, points=[0.1, 1, 3]
            )[0]
            for s in (1, -1)
        )
        assert models.normaliser(model, a, b) == pytest.approx(total, rel=1e-9)

    def test_the_sigmoids_add_up(self):
        assert models.normaliser(models.LOGISTIC, 1e-200, 1e100) == pytest.approx(
            300 * math.log(10), rel=1e-14
        )

    def test_the_finite_part(self):
        import mpmath

        a = mpmath.mpf(10) ** -9
        left = mpmath.quad(lambda t: 1 / (1 + mpmath.exp(mpmath.exp(t))), [mpmath.log(a), -3, 0, 5])
        assert models.finite_part() == pytest.approx(float(left + mpmath.log(a) / 2), abs=1e-8)

    def test_nothing_between_equal_cut_offs(self):
        assert models.normaliser(models.LOGISTIC, 1.0, 1.0) == 0.0


class TestNormaliser:
    @pytest.mark.parametrize("of", [lambda r: r("normaliser"), lambda r: committed("normaliser")])
    def test_grows_as_predicted(self, records, of):
        record = of(records)
        for part in record["around_zero"]:
            for row in part["rows"]:
                # The next term is of the order of a^2; what is beyond is rounding.
                allowed = row["cut_off"] ** 2 + 1e-14 * row["predicted"]
                assert row["normaliser"] == pytest.approx(row["predicted"], abs=allowed)
                bound = row["bound_of_the_proof"]
                assert bound is None or row["normaliser"] > bound
            before, last = part["rows"][-2:]
            assert last["slope_from_the_row_above"] == pytest.approx(
                part["slope_predicted"], abs=before["cut_off"] ** 2 + 1e-13
            )
        for row in record["around_zero"][0]["rows"]:
            # The next term of either side is a/4.
            for side, sign in (("right", -1), ("left", 1)):
                next_term = sign * row["cut_off"] / 4
                away = row[side] - row[f"{side}_predicted"] - next_term
                assert abs(away) < row["cut_off"] ** 3 / 100 + 2e-13

    def test_the_tail(self, records):
        for row in records("normaliser")["tail"]:
            assert row["lower_bound_of_the_paper"] < row["right"] < row["upper_bound"]
            if row["cut_off"] > 40.0:
                assert row["right"] == pytest.approx(row["predicted"], rel=1e-13)
        for row in records("normaliser")["other_tails"]:
            assert row["slope"] == pytest.approx(row["slope_predicted"], rel=1e-12, abs=0.0)

    def test_networks(self, records):
        for row in records("normaliser")["networks"]:
            square, slope = row["quadratic_coefficient"][-1], row["slope_of_the_first"][-1]
            assert square == pytest.approx(row["quadratic_coefficient_predicted"], rel=1e-9)
            assert slope == pytest.approx(row["slope_of_the_first_predicted"], rel=1e-7)

    def test_floats(self):
        rows = {row["standard_errors"]: row for row in committed("normaliser")["floats"]}
        assert rows[0]["float32"] > 0.97
        assert rows[3]["float32"] > 0.5 > rows[4]["float64"] > 0.4
        assert rows[8]["float64"] < 1e-10

    def test_a_likelihood_that_vanishes_at_zero_has_a_finite_normaliser(self):
        """Proposition 1 needs a positive likelihood: without it there is no growth."""

        def density(t):
            return np.exp(2 * t) / (1 + np.exp(4 * t))

        near, nearer = (models.integral(density, math.log(a), 5.0) for a in (1e-20, 1e-200))
        assert nearer == pytest.approx(near, rel=1e-12)

    def test_the_figure(self, records, tmp_path):
        path = tmp_path / "a.png"
        normaliser.draw(str(path), records("normaliser"))
        assert "sources_sha256" in stale.png_text(path.read_bytes())


class TestChains:
    @pytest.mark.parametrize("of", [lambda r: r("chains"), lambda r: committed("chains")])
    def test_follow_the_quadrature(self, records, of):
        for rows in of(records)["with_cut_offs"].values():
            for row in rows:
                away = row["mean"] - row["mean_predicted"]
                assert abs(away) < 4.5 * row["mean_standard_error"]
                away = row["share_near_0"] - row["share_near_0_predicted"]
                assert abs(away) < 4.5 * row["share_standard_error"]
                assert row["r_hat"] < 1.05
                assert row["distance_of_distributions"] < 2 / math.sqrt(row["effective_draws"])

    @pytest.mark.parametrize("of", [lambda r: r("chains"), lambda r: committed("chains")])
    def test_wander_off(self, records, of):
        part = of(records)["without_cut_offs"]["logistic"]
        assert part["mean_acceptance"] == 1.0
        for row in part["rows"]:
            away = row["root_mean_square"] - row["root_mean_square_predicted"]
            assert abs(away) < 4.5 * row["root_mean_square_standard_error"]
            away = row["mean_magnitude"] - row["mean_magnitude_predicted"]
            assert abs(away) < 4.5 * row["mean_magnitude_standard_error"]

    def test_a_reflected_walk_comes_to_its_limit_from_below(self):
        rows = committed("chains")["without_cut_offs"]["linear"]["rows"]
        for name in ("root_mean_square", "mean_magnitude"):
            away = {
                row["draws"]: (row[name] - row[f"{name}_predicted"]) / row[f"{name}_standard_error"]
                for row in rows
            }
            assert away[10] < -3.0
            assert all(abs(away[draws]) < 4.5 for draws in (300, 1000, 3000))

    @pytest.mark.parametrize("of", [lambda r: r("chains"), lambda r: committed("chains")])
    def test_do_not_agree_without_cut_offs(self, records, of):
        record = of(records)
        worst = max(row["r_hat"] for rows in record["with_cut_offs"].values() for row in rows)
        for row in record["unnoticed"].values():
            assert row["r_hat"] is None or row["r_hat"] > max(1.05, worst)

    def test_exact_moments_of_the_uniform(self):
        chains = module("chains")
        found = chains.expected(models.LOGISTIC, 1e-12, chains.B)
        low, high = -12 * math.log(10), 3 * math.log(10)
        assert found["mean"] == pytest.approx((low + high) / 2, rel=1e-13)
        assert found["deviation"] == pytest.approx((high - low) / math.sqrt(12), rel=1e-12)
        assert found["share_near_0"] == pytest.approx(0.6, rel=1e-13)

    def test_another_distribution_is_found(self):
        chains = module("chains")
        draws = np.linspace(-1, 1, 1001)
        assert chains._distance(models.LOGISTIC, draws, -1.0, 1.0) < 2e-3
        assert chains._distance(models.LOGISTIC, draws**3, -1.0, 1.0) > 0.1


class TestCorrelated:
    @pytest.mark.parametrize("of", [lambda r: r("correlated"), lambda r: committed("correlated")])
    def test_grows_without_bound(self, records, of):
        record = of(records)
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
    @pytest.mark.parametrize(
        "of", [lambda r: r("parametrisations"), lambda r: committed("parametrisations")]
    )
    def test_additive_ends_at_zero_and_multiplicative_does_not(self, records, of):
        record = of(records)
        for row in record["flows"]:
            if "rate" in row:
                assert abs(row["mu_at_the_end"]) < 1e-9
                assert row["log_sigma2_at_the_end"] == pytest.approx(
                    row["log_sigma2_predicted"], abs=1e-8
                )
                assert row["rate"] == pytest.approx(row["rate_predicted"], rel=1e-2)
            else:
                assert row["theta_moved_by"] == 0.0
                short = 0.02 if record["quick"] else 0.002
                assert 1.0 - short < row["alpha_over_its_limit"] < 1.0
        for row in record["additive_at_mu_0"]:
            assert row["kl"] == 0.0
            assert row["gradient"] == [0.0, 0.0]
            assert row["hessian"][0][0] == pytest.approx(row["curvature_predicted"], rel=1e-14)
        for row in record["multiplicative_far_out"]:
            assert row["kl"] > 0.0 > row["gradient"]
            assert row["kl_over_u"] == pytest.approx(1.0, abs=math.exp(-row["log_alpha"]))

    @pytest.mark.parametrize(
        "of", [lambda r: r("parametrisations"), lambda r: committed("parametrisations")]
    )
    def test_a_weight_is_kept_above_a_squared_signal_of_one(self, records, of):
        record = of(records)
        assert record["threshold"]["kappa_falls_everywhere"]
        assert record["threshold"]["alpha_times_kappa_less_1_near_1"] == pytest.approx(
            5 / 3, rel=1e-3
        )
        for row in record["with_data"]:
            if row["kappa"] > 1.0:
                assert row["objective_at_the_end"] < row["objective_where_pruned"]
                if row["kappa"] >= 1.5:  # nearer to 1 the flow is slow
                    assert row["log_alpha_at_the_end"] == pytest.approx(
                        row["log_alpha_predicted"], abs=1e-6
                    )
                    assert row["mu_at_the_end"] == pytest.approx(row["mu_predicted"], abs=1e-6)
            else:
                assert row["objective_at_the_end"] >= row["objective_where_pruned"]
                assert row["time_to_log_alpha_3"] is not None

    def test_additive_prunes_sooner(self):
        by = {(row["kappa"], row["way"]): row for row in committed("parametrisations")["with_data"]}
        for kappa in (0.0, 0.25, 0.5, 0.9):
            one, other = by[kappa, "log_sigma2"], by[kappa, "log_alpha"]
            assert 20 * one["time_to_log_alpha_3"] < other["time_to_log_alpha_3"]

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


class TestRemarks:
    @pytest.mark.parametrize("of", [lambda r: r("remarks"), lambda r: committed("remarks")])
    def test_every_way_agrees(self, records, of):
        record = of(records)
        assert record["greatest_difference"] < 3e-15
        assert record["greatest_relative_difference_of_gradients"] < 3e-15
        assert record["greatest_deviation_of_monte_carlo_in_standard_errors"] < 4.5
        for row in record["remark_2"]:
            assert row["strictly_increases"]
            near = abs(row["gradient_at_the_least_u"] - row["gradient_at_the_least_u_predicted"])
            assert (near < 1e-14) == row["exact"]


class TestSlides:
    @pytest.mark.parametrize("of", [lambda r: r("slides"), lambda r: committed("slides")])
    def test_the_verdicts(self, records, of):
        found = {each["slide"]: each["verdict"] for each in of(records)["statements"]}
        assert found == {
            "Variance of the SGVB estimator": "fails",
            "Speed": "fails",
            "Variance": "holds",
            "Dropout prior and posterior": "holds",
            "Motivation for the paper": "fails",
        }

    def test_minibatches_as_predicted(self, records):
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

    def test_the_objective_is_below_every_normaliser_without_a_limit(self, records):
        for row in records("slides")["statements"][-1]["measured"]["rows"]:
            assert row["gap_at_the_least_cut_off"] > 4.0
            assert math.isfinite(row["greatest_elbo"])


class TestPage:
    def test_every_number_comes_from_the_records(self, records):
        found = {name: records(name) for name in ALL}
        written = experiments.page(found, tables.HEAD, tables.SECTIONS)
        assert "There is no record yet" not in written
        for row in found["parametrisations"]["with_data"]:
            assert tables.number(row["mu_at_the_end"], 6) in written
        for part in found["normaliser"]["around_zero"]:
            middle = part["rows"][len(part["rows"]) // 2]
            assert f"{middle['normaliser']:.6f}" in written
            # The line goes through the last row, and is compared at another.
            assert part["constant_is_predicted"] or middle is not part["rows"][-1]
        for row in found["chains"]["with_cut_offs"]["logistic"]:
            assert f"{row['mean_predicted']:.2f}" in written

    def test_without_records(self):
        written = experiments.page({}, tables.HEAD, tables.SECTIONS)
        assert written.count("There is no record yet") == len(ALL)
        for name in ALL:
            command = REPORTS[f"validation/results/hron2017/{name}.json"].command
            assert f"`{command}`" in written

    def test_the_committed_page(self):
        assert experiments.main(["--check"]) == 0


@pytest.mark.parametrize("name", ALL)
def test_committed_records_are_full_ones(name):
    record = committed(name)
    assert record["quick"] is False
    assert str(ROOT) not in json.dumps(record)
    figure = FOLDER / f"{name}.png"
    assert figure.exists() == (name not in ("remarks", "slides"))
