"""The page of the experiments on Hron et al. 2017."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from validation.tools.experiments.hron2017_section_2 import PAPER, chains, figure, normaliser
from validation.tools.experiments.section import Section
from validation.tools.experiments.tables import number, with_error
from validation.tools.markdown import Results, table

HEAD = """\
# Hron, Matthews and Ghahramani 2017: the experiments

*Variational Gaussian Dropout is not Bayesian*, arXiv:1711.02989. What the paper states in formulas
is decided by `python -m validation.papers`; here is what its sections 2 to 4 say in words, as
numbers, each beside what is predicted. `python -m validation.tools.experiments` writes this page
from the records in `validation/results/hron2017/`. No images are needed; `--quick` takes seconds.
"""


def correlated(record: Results) -> str:
    """Section 3."""
    rows = [
        (
            str(part["weights"]),
            number(row["thickness"]),
            f"{row['divergence']:.4f}",
            f"{row['predicted']:.4f}",
            with_error(row["sampled"], row["standard_error"], 3),
            "–" if slope is None else f"{slope:.6f}",
            str(part["slope_predicted"]),
        )
        for part in record["growth"]
        for row in part["rows"]
        for slope in (row["slope_from_the_row_above"],)
        if row["thickness"] in (1.0, 1e-2, 1e-6, 1e-16)
    ]
    head = ["K", "τ", "KL", "line", "sampled", "slope in log(1/τ)", "predicted K − 1"]
    others = table(
        ["K", "at float32's spacing", "at float64's", "independent noise", "prior over s alone"],
        (
            (
                str(part["weights"]),
                f"{part['at_the_spacing_of']['float32']:.2f}",
                f"{part['at_the_spacing_of']['float64']:.2f}",
                f"{part['independent_noise']:.2f}",
                f"{part['with_the_prior_over_s_alone']:.2f}",
            )
            for part in record["growth"]
        ),
    )
    return (
        table(head, rows) + "\n\nThe samples deviate by at most "
        f"{record['greatest_deviation_in_standard_errors']:.1f} standard errors, of all "
        f"{sum(len(part['rows']) for part in record['growth'])}. KL in nats, C = 1, of a row:\n\n"
        + others
        + figure("correlated")
    )


def parametrisations(record: Results) -> str:
    """Section 4."""
    additive = [row for row in record["flows"] if "rate" in row]
    others = [row for row in record["flows"] if "rate" not in row]
    parts = [
        "At μ = 0 KL, its gradient and the row of its Hessian in log σ² are "
        + ("exactly 0" if _all_zero(record["additive_at_mu_0"]) else "not 0")
        + "; its curvature in μ over 1/σ² is "
        + ", ".join(
            f"{row['hessian'][0][0] / row['curvature_predicted']:.15g}"
            for row in record["additive_at_mu_0"]
        )
        + ". In the multiplicative one KL at log α = "
        + ", ".join(number(row["log_alpha"]) for row in record["multiplicative_far_out"])
        + " is "
        + ", ".join(number(row["kl"], 4) for row in record["multiplicative_far_out"])
        + ": never 0.",
        "Gradient flow of KL alone, in additive coordinates:",
        table(
            ["from (μ, log σ²)", "in", "μ at the end", "log σ²", "predicted", "rate", "predicted"],
            (
                (
                    _pair(row["start"]),
                    _WAYS[row["way"]],
                    number(row["mu_at_the_end"], 1),
                    f"{row['log_sigma2_at_the_end']:.8f}",
                    f"{row['log_sigma2_predicted']:.8f}",
                    number(row["rate"], 5),
                    number(row["rate_predicted"], 5),
                )
                for row in additive
            ),
        ),
        f"and in multiplicative ones, until t = 10^{record['sizes']['decades']}:",
        table(
            ["from (μ, log σ²)", "in", "θ moved by", "α over its limit", "KL at the end"],
            (
                (
                    _pair(row["start"]),
                    _WAYS[row["way"]],
                    number(row["theta_moved_by"]),
                    f"{row['alpha_over_its_limit']:.5f}",
                    number(list(row["kl"].values())[-1]),
                )
                for row in others
            ),
        ),
        "With data of squared signal κ. A weight is kept if κ > 1, at the predicted α in both; the "
        "time and the steps of Adam are those until log α > 3 for good:",
        table(
            ["κ", "in", "log α at the end", "predicted", "μ", "predicted", "time", "Adam"],
            (
                (
                    number(row["kappa"]),
                    _WAYS[row["way"]],
                    f"{row['log_alpha_at_the_end']:.8f}"
                    if row["log_alpha_predicted"] is not None
                    else number(row["log_alpha_at_the_end"]),
                    "∞"
                    if row["log_alpha_predicted"] is None
                    else f"{row['log_alpha_predicted']:.8f}",
                    number(row["mu_at_the_end"], 6),
                    number(row["mu_predicted"], 6),
                    number(row["time_to_log_alpha_3"]),
                    number(row["steps_of_adam_to_log_alpha_3"], 5),
                )
                for row in record["with_data"]
            ),
        ),
    ]
    return "\n\n".join(parts) + figure("parametrisations")


_WAYS = {
    "log_sigma2": "μ, log σ²",
    "log_sigma": "μ, log σ",
    "sigma": "μ, σ",
    "log_alpha": "θ, log α",
    "alpha": "θ, α",
}


def _pair(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _all_zero(rows: Iterable[Results]) -> bool:
    return all(
        not any((row["kl"], *row["gradient"], row["hessian"][0][1], *row["hessian"][1]))
        for row in rows
    )


def remarks(record: Results) -> str:
    """Remarks 1 and 2."""
    first = table(
        ["u", "KL, C = 1", "by samples", "greatest difference", "dKL/du", "relative"],
        (
            (
                number(row["u"]),
                f"{row['kl']:.12f}",
                f"{row['monte_carlo']:.6f} ± {number(row['monte_carlo_standard_error'], 1)}",
                number(row["greatest_difference"], 1),
                f"{row['gradient']:.12g}",
                number(row["greatest_relative_difference_of_gradients"], 1),
            )
            for row in record["remark_1"]
        ),
    )
    second = table(
        ["way", "strictly increases", "from u", "least gradient", "at that u", "predicted"],
        (
            (
                row["way"],
                "yes" if row["strictly_increases"] else "**no**",
                number(row["least_u"]),
                number(row["least_gradient"], 4),
                number(row["gradient_at_the_least_u"], 7),
                number(row["gradient_at_the_least_u_predicted"], 7),
            )
            for row in record["remark_2"]
        ),
    )
    ways = ", ".join(f"`{name}`" for name in record["remark_1"][0]["by"])
    return f"The difference is the worst of {ways}.\n\n{first}\n\nRemark 2:\n\n{second}"


def slides(record: Results) -> str:
    """Show the slides' claims."""
    said = table(
        ["the slides", "the paper", "verdict", "why"],
        (
            (found["says"], found["paper"], found["verdict"], found["note"].replace("|", "\\|"))
            for found in record["statements"]
        ),
    )
    others = table(["the slides", "decided by"], record["decided_elsewhere"].items())
    return f"{said}\n\nWhat is as in the paper is decided elsewhere:\n\n{others}"


def _section(name: str, title: str, about: str, show: Callable[[Results], str]) -> Section:
    plot = "" if name in ("remarks", "slides") else f" --plot validation/results/{PAPER}/{name}.png"
    return Section(name, title, about, plot, show, PAPER, data=False)


SECTIONS = (
    _section(
        "normaliser",
        "Proposition 1: the normaliser",
        "One weight under C/|w|, C = 1, on a < |w| < b. Where the likelihood at 0 is L(0) > 0 the "
        "normaliser is 2 L(0) log(1/a) and a constant.",
        normaliser,
    ),
    _section(
        "chains",
        "Proposition 1: chains",
        "The same posteriors by NumPyro. With cut-offs their mean moves with the cut-off; without, "
        "log|w| is a random walk. That of the linear model is reflected near its start: T √n is "
        "its limit for many draws.",
        chains,
    ),
    _section(
        "correlated",
        "Section 3: correlated noise",
        "A row w = s θ of K weights, s ~ N(1, α), with a thickness τ across θ. As τ goes to 0 KL "
        "grows as (K − 1) log(1/τ).",
        correlated,
    ),
    _section(
        "parametrisations",
        "Section 4: additive and multiplicative",
        "KL is least at μ = 0 for every σ, which gradient flow reaches at a σ that is known "
        "beforehand; in multiplicative coordinates it goes to α = ∞, with KL as 1/t.",
        parametrisations,
    ),
    _section(
        "remarks",
        "Remarks 1 and 2",
        "KL by every way of the library in double precision, beside 30 digits.",
        remarks,
    ),
    _section(
        "slides",
        "Slides about Kingma et al. 2015",
        "What they say otherwise than the paper, or what Hron et al. deny.",
        slides,
    ),
)
