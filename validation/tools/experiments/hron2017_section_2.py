"""The tables on section 2 of Hron et al. 2017: normalisers and chains."""

from __future__ import annotations

from validation.paths import RESULTS
from validation.tools.experiments.tables import number, with_error
from validation.tools.markdown import Results, table

PAPER = "hron2017"


def normaliser(record: Results) -> str:
    """Section 2, Proposition 1."""
    parts = [
        table(
            ["model", "L(0)", "slope in log(1/a)", "predicted 2 L(0)", "a", "Z", "line"],
            (
                (
                    part["title"],
                    number(part["likelihood_at_zero"], 4),
                    f"{part['rows'][-1]['slope_from_the_row_above']:.10f}",
                    f"{part['slope_predicted']:.10f}",
                    number(middle["cut_off"]),
                    f"{middle['normaliser']:.6f}",
                    f"{middle['predicted']:.6f}",
                )
                for part in record["around_zero"]
                # The constant of a line that is not predicted is that of the last row.
                for middle in [part["rows"][len(part["rows"]) // 2]]
            ),
        ),
        "The slope is that between the two least cut-offs. The line has the predicted slope and, "
        "but for the first model, goes through Z at the least a, "
        f"{number(record['around_zero'][0]['rows'][-1]['cut_off'])}.",
        "For the logistic regression with one observation every constant is predicted; the bound "
        "is that of the proof, with r = L(0)/2:",
        table(
            ["a", "Z", "predicted", "right side", "predicted", "left side", "predicted", "bound"],
            (
                (
                    number(row["cut_off"]),
                    *(
                        f"{row[key]:.6f}"
                        for name in ("normaliser", "right", "left")
                        for key in (name, "predicted" if name == "normaliser" else _said(name))
                    ),
                    f"{row['bound_of_the_proof']:.3f}",
                )
                for row in record["around_zero"][0]["rows"]
            ),
        ),
        "Its right tail, from k to the cut-off K, between the paper's bound and log(K/k):",
        table(
            ["k", "K", "mass", "predicted", "paper's bound", "log(K/k)"],
            (
                (
                    number(row["k"]),
                    number(row["cut_off"]),
                    *(
                        f"{row[key]:.6f}"
                        for key in ("right", "predicted", "lower_bound_of_the_paper", "upper_bound")
                    ),
                )
                for row in record["tail"]
                if row["cut_off"] / row["k"] < 1e9 or row["cut_off"] / row["k"] > 1e299
            ),
        ),
        "The tails of all the models, as slopes in log K; without a slope the mass is finite:",
        table(
            ["model", "side", "slope", "predicted", "mass beyond 1"],
            (
                (
                    row["model"],
                    row["side"],
                    f"{row['slope']:.6f}",
                    f"{row['slope_predicted']:.0f}",
                    number(row["mass_beyond_1"], 6),
                )
                for row in record["other_tails"]
            ),
        ),
        "Networks of two weights, one hidden unit: the coefficient of log(1/a)² with both cut-offs "
        "at a, and the slope in log(1/a) with that of the first weight alone:",
        table(
            ["hidden unit", "of the square", "predicted 4 L(0)", "slope", "predicted"],
            (
                (
                    row["activation"],
                    f"{row['quadratic_coefficient'][-1]:.9f}",
                    f"{row['quadratic_coefficient_predicted']:.9f}",
                    f"{row['slope_of_the_first'][-1]:.9f}",
                    f"{row['slope_of_the_first_predicted']:.9f}",
                )
                for row in record["networks"]
            ),
        ),
        "Floating-point numbers are cut-offs too: the share of the posterior's mass nearer to 0 "
        "than a tenth of the standard error, by how many standard errors the weight is from 0, and "
        "the power of ten of the cut-off for a share of one half:",
        table(
            ["standard errors", "float32", "float64", "cut-off for one half"],
            (
                (
                    str(row["standard_errors"]),
                    number(row["float32"]),
                    number(row["float64"]),
                    f"10^{row['log10_cut_off_for_one_half']:.1f}",
                )
                for row in record["floats"]
            ),
        ),
    ]
    return "\n\n".join(parts) + figure("normaliser")


def _said(side: str) -> str:
    return f"{side}_predicted"


def chains(record: Results) -> str:
    """Section 2, by samples."""
    sizes = record["sizes"]
    within = table(
        ["model", "a", "mean of t", "predicted", "share below 1e-3", "predicted", "R-hat"],
        (
            (
                name,
                number(row["cut_off"]),
                with_error(row["mean"], row["mean_standard_error"]),
                f"{row['mean_predicted']:.2f}",
                with_error(row["share_near_0"], row["share_standard_error"], 3),
                f"{row['share_near_0_predicted']:.3f}",
                f"{row['r_hat']:.3f}",
            )
            for name, rows in record["with_cut_offs"].items()
            for row in rows
        ),
    )
    walks = table(
        ["model", "draws", "rms of t", "T √n", "mean size of t", "T √(2n/π)"],
        (
            (
                name,
                str(row["draws"]),
                with_error(row["root_mean_square"], row["root_mean_square_standard_error"]),
                f"{row['root_mean_square_predicted']:.2f}",
                with_error(row["mean_magnitude"], row["mean_magnitude_standard_error"]),
                f"{row['mean_magnitude_predicted']:.2f}",
            )
            for name, part in record["without_cut_offs"].items()
            for row in part["rows"]
        ),
    )
    unnoticed = table(
        ["model", "R-hat", "effective draws", "of", "least size of w", "greatest"],
        (
            (
                name,
                number(row["r_hat"]),
                number(row["effective_draws"]),
                str(row["draws"]),
                f"10^{row['log10_magnitude_least']:.1f}",
                f"10^{row['log10_magnitude_greatest'] + 0.0:.1f}",
            )
            for name, row in record["unnoticed"].items()
        ),
    )
    return (
        f"With cut-offs, {sizes['chains']} chains of {sizes['draws']} draws of t = log|w|:\n\n"
        f"{within}\n\n"
        f"Without cut-offs, {sizes['walkers']} chains from w = 1:\n\n{walks}\n\n"
        f"Without cut-offs, NUTS in w itself:\n\n{unnoticed}" + figure("chains")
    )


def figure(name: str) -> str:
    """Show the figure of an experiment, if there is one."""
    path = RESULTS / PAPER / f"{name}.png"
    return f"\n\n![{name}](../../results/{PAPER}/{name}.png)" if path.exists() else ""
