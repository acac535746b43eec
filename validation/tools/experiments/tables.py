"""The tables of the experiments, each made from a record."""

from __future__ import annotations

import math

from validation.paths import RESULTS
from validation.tools.markdown import Results, table

PAPER = "kingma2015"


def number(value: object, digits: int = 3) -> str:
    """Write a number of a record to some digits; an absent one is a dash."""
    if value is None or math.isnan(float(str(value))):
        return "–"
    text = f"{float(str(value)):.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}·10^{int(exponent)}" if e else mantissa


def with_error(value: object, error: object, decimals: int = 2) -> str:
    """Write a value with its standard error, if that is known."""
    mean, spread = float(str(value)), float(str(error))
    if math.isnan(mean):
        return "–"
    return f"{mean:.{decimals}f}" + ("" if math.isnan(spread) else f" ± {spread:.{decimals}f}")


def yes(value: object) -> str:
    """Write what was decided; None is what one seed cannot decide."""
    return {True: "yes", False: "**no**", None: "not decided"}[value]  # type: ignore[index]


ESTIMATORS = {
    "local": "local reparameterisation",
    "per_example": "weight sample per data point",
    "per_batch": "weight sample per minibatch",
    "none": "no dropout noise",
}


def gradient_variance(record: Results) -> str:
    """Tables 1 and 2."""
    text = []
    for name, title in (("table_1", "Table 1: independent"), ("table_2", "Table 2: correlated")):
        made = record[name]
        text += [f"### {title} weight noise", "", _columns(made["columns"]), ""]
        text += [_agreement(made["columns"]), "", _networks(made["networks"]), ""]
        text += [
            "Where the test error is nearest to the paper's, whatever the number of epochs:",
            "",
            _columns(made["at_the_error_of_the_paper"]),
            "",
            _agreement(made["at_the_error_of_the_paper"]),
            "",
        ]
    return "\n".join(text).rstrip() + _figure("gradient_variance")


def _columns(columns: list[Results]) -> str:
    """Tabulate some columns of Table 1 or 2, one below the other."""
    rows = [
        (
            column["layer"],
            str(column["epochs"]),
            ESTIMATORS[estimator],
            f"{number(entry['variance'])} ± {number(entry['standard_error'], 2)}",
            number(entry["paper"]),
            number(entry["ratio_to_local"]),
            number(entry["paper_ratio_to_local"]),
            number(entry["ratio_over_paper_ratio"], 2),
        )
        for column in columns
        for estimator in ESTIMATORS
        if (entry := column["estimators"].get(estimator)) is not None
    ]
    ratios = ["to local", "paper", "ours/paper"]
    return table(["layer", "epochs", "estimator", "variance", "paper", *ratios], rows)


def _agreement(columns: list[Results]) -> str:
    ordered = sum(column["order_as_in_the_paper"] for column in columns)
    least = min(column["least_gap_in_standard_errors"] for column in columns)
    entries = [e for c in columns for name, e in c["estimators"].items() if name != "local"]
    near = sum(0.5 <= entry["ratio_over_paper_ratio"] <= 2.0 for entry in entries)
    return (
        f"The order of the estimators is that of the paper in {ordered} of {len(columns)} columns "
        f"(the smallest step between two is {least:.1f} standard errors); {near} of {len(entries)} "
        "ratios to local reparameterisation are within a factor of 2 of the paper's."
    )


def _networks(networks: list[Results]) -> str:
    rows = [
        (
            str(each["seed"]),
            str(trained["epochs"]),
            f"{trained['test_error_percent']:.2f}",
            f"{trained['test_error_percent_averaged']:.2f}",
            ", ".join(f"{a['mean_dropout_rate']:.2f}" for a in trained["alphas"]),
        )
        for each in networks
        for trained in each["trained"]
    ]
    errors = ["test error in %", "with averaged parameters"]
    return table(["seed", "epochs", *errors, "mean dropout rates, from the bottom"], rows)


def _figure(name: str) -> str:
    path = RESULTS / PAPER / f"{name}.png"
    return f"\n\n![{name}](../../results/{PAPER}/{name}.png)" if path.exists() else ""


def variance_assumptions(record: Results) -> str:
    """Tabulate the ratios of Table 1 at a test error of 3 %, under each assumption."""
    shown = [(column["layer"], "per_batch") for column in record["cases"][0]["columns"]]
    shown += [(layer, "none") for layer, _ in shown]
    rows, paper = [], ["Table 1 of the paper, after 10 epochs", "3", "10"]
    for case in record["cases"]:
        of = {column["layer"]: column["estimators"] for column in case["columns"]}
        networks = case["networks"]
        rows.append(
            [
                case["assumption"],
                ", ".join(f"{each['test_error_percent']:.2f}" for each in networks),
                ", ".join(str(each["epochs"]) for each in networks),
                *(
                    with_error(of[a][b]["ratio_to_local"], of[a][b]["ratio_standard_error"])
                    for a, b in shown
                ),
            ]
        )
    paper += [f"{of[layer][name]['paper_ratio_to_local']:.2f}" for layer, name in shown]
    titles = {"per_batch": "weight sample per minibatch", "none": "no dropout noise"}
    head = [f"{titles[name]}, {layer}" for layer, name in shown]
    return table(["training", "test error in %", "epochs", *head], [*rows, paper])


def shared_noise(record: Results) -> str:
    """Tabulate what a shared sample of the weights adds, beside the paper's two rows."""
    made = [
        (each["seed"], column) for each in record["seeds_measured"] for column in each["columns"]
    ]
    rows = [
        (
            str(seed),
            column["layer"],
            str(column["epochs"]),
            f"{number(column['shared']['variance'])} ± "
            f"{number(column['shared']['standard_error'], 2)}",
            f"{number(column['per_batch']['variance'])} ± "
            f"{number(column['per_batch']['standard_error'], 2)}",
            with_error(column["share"], column["share_standard_error"]),
            f"{column['paper_share']:.2f}",
        )
        for seed, column in made
    ]
    steps = [column["above_zero_in_standard_errors"] for _, column in made]
    above = [step for step in steps if step > 0.0]
    head = ["seed", "layer", "epochs", "added", "weight sample per minibatch", "share", "paper"]
    told = f"What is added is above zero in {len(above)} of {len(steps)} columns"
    if above:
        told += f", by at least {min(above):.1f} standard errors"
    return (
        f"{table(head, rows)}\n\n{told}. Where it is above zero, a sample for each data point has "
        "the smaller variance, as in the paper."
    )


def correlated_assumptions(record: Results) -> str:
    """Tabulate Table 2 under each assumption."""
    text = []
    for case in record["cases"]:
        text += [f"### Table 2: {case['assumption']}", "", _columns(case["columns"]), ""]
        rows = [
            (
                str(each["seed"]),
                str(each["epochs"]),
                f"{each['test_error_percent']:.2f}",
                ", ".join(f"{rate:.2f}" for rate in each["mean_dropout_rates"]),
            )
            for each in case["networks"]
        ]
        head = ["seed", "epochs", "test error in %", "mean dropout rates, from the bottom"]
        text += [_agreement(case["columns"]), "", table(head, rows), ""]
    return "\n".join(text).rstrip()


WAYS = {
    "deterministic": "no noise",
    "local": ESTIMATORS["local"],
    "per_batch": ESTIMATORS["per_batch"],
    "per_example": ESTIMATORS["per_example"],
}


def speed(record: Results) -> str:
    """Section 5, speed."""
    rows = [
        (
            WAYS[row["way"]],
            number(row["seconds_an_epoch"]),
            number(row["paper_seconds_an_epoch"], 4),
            f"{row['seconds_a_step']:.3g} ({row['least_seconds_a_step']:.3g} to "
            f"{row['greatest_seconds_a_step']:.3g}, {row['steps']} steps)",
        )
        for row in record["rows"]
    ]
    return (
        table(["training", "seconds an epoch", "paper, on a GPU of 2015", "seconds a step"], rows)
        + "\n\nLocal reparameterisation is "
        f"{record['per_example_over_local']:.0f} times faster than a weight sample per data point "
        f"(paper: {record['paper_per_example_over_local']:.0f}), and takes "
        f"{record['local_over_deterministic']:.2f} times as long as training without noise."
    )


def test_error(record: Results) -> str:
    """Figure 1a."""
    widths = sorted({row["width"] for row in record["summary"]})
    by = {(row["method"], row["width"]): row for row in record["summary"]}
    rows = [
        [
            next(row["title"] for (name, _), row in by.items() if name == method),
            *(_error_of(by.get((method, width))) for width in widths),
        ]
        for method in dict.fromkeys(name for name, _ in by)
    ]
    head = ["test error in % (epochs; mean dropout rate)", *(f"{w} units" for w in widths)]
    said = [
        (
            found["statement"],
            ", ".join(f"{v:+.2f}" for v in found.get("differences", ()))
            or ", ".join(f"{v:.2f}" for v in found["rates"]),
            yes(found["holds"]),
        )
        for found in record["statements"]
    ]
    return (
        table(head, rows)
        + "\n\nWhat the paper says of it, by the 95 % interval over the seeds at each width:\n\n"
        + table(["statement", "differences, or rates", "holds"], said)
        + _figure("test_error")
    )


def _error_of(row: Results | None) -> str:
    if row is None:
        return "–"
    rate = number(row["mean_dropout_rate"], 2)
    rate = "" if rate == "–" else f"; {rate}"
    return f"{with_error(row['test_error'], row['standard_error'])} ({row['epochs']:.0f}{rate})"


def input_rate(record: Results) -> str:
    """Figure 1a, B in narrow networks."""
    rows = [
        (
            each["case"],
            with_error(each["test_error"], each["test_error_standard_error"]),
            with_error(each["above_gaussian_b"], each["above_gaussian_b_standard_error"]),
            ", ".join(f"{rate:.2f}" for rate in each["mean_dropout_rates"]),
        )
        for each in record["summary"]
    ]
    head = ["training", "test error in %", "above Gaussian dropout B"]
    return table([*head, "mean dropout rates, from the bottom"], rows)


def constraint(record: Results) -> str:
    """Section 3.4."""
    rows = [
        (
            row["case"],
            with_error(row["test_error"], row["standard_error"]),
            ", ".join(f"{v:.2f}" for v in row["median_log_alpha_by_layer"]) or "–",
            number(row["at_most_1"], 2),
            "; ".join(dict.fromkeys(row["stopped"])) or "no",
        )
        for row in record["summary"]
    ]
    head = ["divergence and bound", "test error in %", "median log α by layer", "α ≤ 1", "stopped"]
    return table(head, rows) + _figure("constraint")


def extra_variance(record: Results) -> str:
    """Appendix D."""
    rows = [
        (
            str(row["image"]),
            str(row["inputs"]),
            number(row["explicit_over_local"]),
            *(_slope(row["slope"][name]) for name in ("eps", "eps_squared")),
        )
        for row in record["rows"]
    ]
    head = ["image", "inputs", "weight samples / local", "measured / Var[ε]", "measured / Var[ε²]"]
    return (
        table(head, rows)
        + "\n\nWith Var[ε | b] in the second term of Eq. 45 the slope is 1 within "
        f"{_deviation(record, 'eps')} standard errors in the worst of these layers; with "
        f"Var[ε² | b], as it is printed, it is off by up to {_deviation(record, 'eps_squared')}. "
        "With one input the weight is known given b, and nothing is added."
        + _figure("extra_variance")
    )


def _slope(found: Results | None) -> str:
    if found is None:
        return "nothing is added"
    return f"{found['value']:.4f} ± {found['standard_error']:.4f}"


def _deviation(record: Results, name: str) -> str:
    found = [row["slope"][name] for row in record["rows"] if row["slope"][name] is not None]
    return f"{max(abs(s['value'] - 1.0) / s['standard_error'] for s in found):.1f}"
