r"""Section 3: correlated noise.

A row w = s θ of K weights, s ~ N(1, α), with a thickness τ across θ. As τ goes to 0, KL grows as (K
− 1) log(1/τ).

With this thickness q(w) = N(theta, alpha theta theta^T + tau^2 I), and from C/|w_i| with C = 1

    KL = sum_i KL(N(theta_i, alpha theta_i^2 + tau^2)) + sum_i log sigma_i - 1/2 log det Sigma,

with log det Sigma = 2 (K - 1) log tau + log(tau^2 + alpha |theta|^2). As tau -> 0 it is

    (K - 1) log(1/tau) + K KL(alpha) + sum_i log|theta_i| - log|theta| + (K - 1)/2 log alpha.

Rounding gives the line a thickness: the tables include tau = 2^-23 (float32) and 2^-52 (float64).
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

import logunif_kl as lk
from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import columns, rounded, with_error
from validation.output import track

Array = npt.NDArray[np.float64]
SPACINGS = {"float32": 2.0**-23, "float64": 2.0**-52}


class Row(NamedTuple):
    """A row of the weights' means theta, with the noise's alpha and the thickness tau."""

    theta: Array
    alpha: float
    tau: float

    @property
    def variances(self) -> Array:
        return np.asarray(self.alpha * self.theta**2 + self.tau**2)

    @property
    def log_det(self) -> float:
        along = self.tau**2 + self.alpha * float(self.theta @ self.theta)
        return 2.0 * (len(self.theta) - 1) * math.log(self.tau) + math.log(along)

    def marginals(self) -> float:
        return float(np.sum(lk.kl_normal(self.theta, np.log(self.variances), log_c=0.0)))

    def total_correlation(self) -> float:
        return 0.5 * (float(np.log(self.variances).sum()) - self.log_det)

    def divergence(self) -> float:
        return self.marginals() + self.total_correlation()

    def asymptote(self) -> float:
        """Compute the asymptote of the divergence as tau -> 0."""
        count, of_s = len(self.theta), prior_over_s(self.alpha)
        sizes = float(np.log(np.abs(self.theta)).sum()) - math.log(np.linalg.norm(self.theta))
        thin = (count - 1) * (0.5 * math.log(self.alpha) - math.log(self.tau))
        return thin + count * of_s + sizes

    def sampled(self, samples: int, rng: np.random.Generator) -> tuple[float, float]:
        count, chunk = len(self.theta), 2_000_000 // len(self.theta)
        direction = self.theta / np.linalg.norm(self.theta)
        values = []
        for start in range(0, samples, chunk):
            size = min(chunk, samples - start)
            s = 1.0 + math.sqrt(self.alpha) * rng.standard_normal((size, 1))
            noise = self.tau * rng.standard_normal((size, count))
            w = s * self.theta + noise
            # Split the density into the direction of theta and the plane orthogonal to it.
            away = (s - 1.0) * self.theta + noise
            along = away @ direction
            across = noise - np.outer(noise @ direction, direction)
            wide = self.tau**2 + self.alpha * float(self.theta @ self.theta)
            square = along**2 / wide + (across**2).sum(1) / self.tau**2
            log_q = -0.5 * (square + count * math.log(2.0 * math.pi) + self.log_det)
            values.append(log_q + np.log(np.abs(w)).sum(1))
        found = np.concatenate(values)
        return float(found.mean()), float(found.std(ddof=1) / math.sqrt(samples))


def prior_over_s(alpha: float) -> float:
    """Compute KL of N(1, alpha), with the prior over s alone."""
    return float(lk.kl(math.log(alpha), log_c=0.0))


def means(weights: int) -> Array:
    """Return the means of a row: the quantiles of a normal distribution, without 0."""
    places = (np.arange(weights) + 0.5) / weights
    spread = stats.norm.ppf(0.5 + 0.5 * places)
    signs = np.where(np.arange(weights) % 2, -1.0, 1.0)
    return np.asarray(spread * signs)


def growth(weights: int, sizes: Record, seed: int) -> Record:
    theta, alpha = means(weights), sizes["alpha"]
    samples = min(sizes["samples"], sizes["most_numbers"] // weights)
    rows: list[Record] = []
    for index, tau in enumerate(sizes["thicknesses"]):
        row = Row(theta, alpha, tau)
        rng = np.random.default_rng([seed, weights, index])
        mean, error = row.sampled(samples, rng)
        found = row.divergence()
        slope = None
        if rows:
            slope = (found - rows[-1]["divergence"]) / math.log(rows[-1]["thickness"] / tau)
        rows.append(
            {
                "thickness": tau,
                "divergence": found,
                "of_the_marginals": row.marginals(),
                "total_correlation": row.total_correlation(),
                "predicted": row.asymptote(),
                "sampled": mean,
                "standard_error": error,
                "slope_from_the_row_above": slope,
            }
        )
    return {
        "weights": weights,
        "samples": samples,
        "slope_predicted": weights - 1,
        "with_the_prior_over_s_alone": prior_over_s(alpha),
        "independent_noise": weights * prior_over_s(alpha),
        "at_the_spacing_of": {
            name: Row(theta, alpha, tau).divergence() for name, tau in SPACINGS.items()
        },
        "rows": rows,
    }


def draw(found: Record) -> Any:
    figure, axes = subplots((6.4, 4.4))
    colours = ("#000000", "#E69F00", "#0072B2", "#009E73", "#D55E00")
    for colour, marker, part in zip(colours, "ov^sD", found["growth"], strict=False):
        count = part["weights"]
        x = [row["thickness"] for row in part["rows"]]
        said = f"{count} weight{'s' * (count > 1)}"
        sampled = [row["sampled"] / count for row in part["rows"]]
        axes.semilogx(x, sampled, marker, color=colour, markersize=4, label=said)
        exact = [row["divergence"] / count for row in part["rows"]]
        axes.semilogx(x, exact, "-", color=colour, linewidth=1)
        line = [row["predicted"] / count for row in part["rows"]]
        axes.semilogx(x, line, ":", color=colour, linewidth=1)
    for name, tau in SPACINGS.items():
        axes.axvline(tau, color="grey", linewidth=0.8)
        axes.text(tau / 1.4, 1.0, name, rotation=90, va="bottom", fontsize="small", color="grey")
    axes.invert_xaxis()
    axes.set(xlabel="thickness τ of the posterior across θ", ylabel="KL(q ‖ p) / K in nats, C = 1")
    axes.set_title(
        "points: samples; lines: exact; dotted: (K − 1) log(1/τ) + constant", fontsize="medium"
    )
    axes.legend(fontsize="small", title="a row of", title_fontsize="small")
    return figure


def show(record: Record) -> str:
    growth = [
        {**part, **row}
        for part in record["growth"]
        for row in part["rows"]
        if row["thickness"] in (1.0, 1e-2, 1e-6, 1e-16)
    ]
    thinned = columns(
        growth,
        ("K", "{weights}"),
        ("τ", rounded("thickness")),
        ("KL", "{divergence:.4f}"),
        ("line", "{predicted:.4f}"),
        ("sampled", "{sampled:.3f} ± {standard_error:.3f}"),
        ("slope in log(1/τ)", lambda row: with_error(row["slope_from_the_row_above"], None, 6)),
        ("predicted K − 1", "{slope_predicted}"),
    )
    others = columns(
        record["growth"],
        ("K", "{weights}"),
        ("at float32's spacing", "{at_the_spacing_of[float32]:.2f}"),
        ("at float64's", "{at_the_spacing_of[float64]:.2f}"),
        ("independent noise", "{independent_noise:.2f}"),
        ("prior over s alone", "{with_the_prior_over_s_alone:.2f}"),
    )
    return (
        f"{thinned}\n\nAmong all {sum(len(part['rows']) for part in record['growth'])} rows, the "
        "sampled KL deviates by at most "
        f"{record['greatest_deviation_in_standard_errors']:.1f} standard errors. KL of one row of "
        "weights in nats, for C = 1:\n\n" + others
    )


def measure(settings: Record, parts: Parts) -> Record:
    lengths = track(settings["weights"], "rows", len(settings["weights"]))
    grown = [growth(weights, settings, settings["seeds"][0]) for weights in lengths]
    rows = [row for part in grown for row in part["rows"]]
    return {
        "greatest_deviation_in_standard_errors": max(
            abs(row["sampled"] - row["divergence"]) / row["standard_error"] for row in rows
        ),
        "growth": grown,
    }


FULL = {
    "weights": [1, 2, 10, 100, 1000],
    "thicknesses": [10.0**-power for power in range(17)],
    "alpha": 0.25,  # dropout rate 0.2
    "samples": 200_000,
    "most_numbers": 20_000_000,
}
QUICK = {"weights": [1, 2, 10], "thicknesses": [1.0, 1e-2, 1e-6], "samples": 20_000}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=3, draw=draw, packages=())
EXPERIMENT.run(__name__)
