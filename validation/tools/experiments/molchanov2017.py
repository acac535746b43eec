"""The page of the experiments on Molchanov et al. 2017."""

from __future__ import annotations

from validation.paths import RESULTS
from validation.tools.experiments.section import Section
from validation.tools.experiments.tables import number, with_error, yes
from validation.tools.markdown import Results, table

PAPER = "molchanov2017"

HEAD = """\
# Molchanov, Ashukha and Vetrov 2017: the experiments

*Variational Dropout Sparsifies Deep Neural Networks*, arXiv:1701.05369. What the paper states of
Eq. 14 is decided by `python -m validation.papers`; here is its Table 1 on MNIST, by the exact
divergence and by approximations of it. `python -m validation.tools.experiments` writes this page
from the records in `validation/results/molchanov2017/`. How MNIST is named, and how a run that was
ended goes on, is as for Kingma et al. 2015. `--part 1/2` and
`--part 2/2` of the two networks are two processes, whose results the command without it collects.
"""


def network(record: Results) -> str:
    """Table 1, for one network."""
    paper = record["paper"]
    rows = [
        [
            row["title"],
            _with_error(row["test_error"]),
            _with_error(row["test_error_pruned"]),
            number(row["compression"]),
            " – ".join(f"{share:.1f}" for share in row["pruned_percent"]),
            number(row["seconds"]),
        ]
        for row in record["summary"]
    ]
    shares = " – ".join(f"{share:.1f}" for share in paper["pruned"])
    rows.append(
        [
            "the paper",
            "–",
            f"{paper['error_percent']:.2f}",
            number(paper["compression"]),
            shares,
            "–",
        ]
    )
    head = ["divergence", "test error in %", "pruned", "times fewer weights", "pruned by layer, %"]
    sparse = [row["sparse"] for row in record["rows"]]
    made = (
        f"\n\nThe sparse networks predict another digit than the pruned dense ones for "
        f"{sum(each['differing_predictions'] for each in sparse)} images of all; their outputs "
        f"differ by {number(max(each['largest_difference'] for each in sparse), 2)} at most. Their "
        f"files have {number(min(each['bytes'] for each in sparse) / 1e3)} to "
        f"{number(max(each['bytes'] for each in sparse) / 1e3)} kB, the dense ones "
        f"{number(sparse[0]['bytes_dense'] / 1e3)} kB.\n\n"
    )
    of_all = table([*head, "seconds"], rows)
    after = f"After {record['sizes']['epochs']} epochs:\n\n"
    return after + of_all + made + _by_threshold(record) + "\n\n" + _overlaps(record["overlaps"])


def _with_error(found: Results) -> str:
    return with_error(found["mean"], found["standard_error"])


def _by_threshold(record: Results) -> str:
    weights, paper = record["rows"][0]["weights"], record["paper"]
    columns = record["summary"]
    rows, as_good = [], []
    for several in zip(*(column["by_threshold"] for column in columns), strict=True):
        cells = []
        for column, at in zip(columns, several, strict=True):
            error, fewer = at["test_error_pruned"]["mean"], weights / max(at["kept"], 1)
            cells.append(f"{error:.2f}, {number(fewer)}")
            if error <= paper["error_percent"] and fewer >= paper["compression"]:
                as_good.append(f"{at['threshold']:.1f} ({column['title']})")
        rows.append([f"{several[0]['threshold']:.1f}", *cells])
    which = ", ".join(as_good) or "none"
    at_paper = ", ".join(c["title"] for c in columns if c["as_good_as_the_paper"]) or "none"
    return (
        "At other thresholds on log α, the test error in % and how many times fewer weights:\n\n"
        + table(["log α", *(column["title"] for column in columns)], rows)
        + f"\n\nAt the paper's threshold, 3, both are as good as the paper's for {at_paper}. "
        f"At these thresholds, which are chosen on the test set here, they are: {which}."
    )


def _overlaps(found: Results) -> str:
    rows = [
        (f"exact and {row['title']}", number(row["overlap"]), number(row["by_chance"], 2))
        for row in found["with_exact"]
    ]
    between = found["between_seeds"]
    if between is not None:
        rows.append(
            ("exact, two seeds", number(between["overlap"]), number(between["by_chance"], 2))
        )
    said = [
        (
            each["statement"],
            f"{each['difference']:+.3f} ± {number(each['half_width'], 2)}",
            yes(each["holds"]),
        )
        for each in found["statements"]
    ]
    decided = (
        "\n\nBeside two runs of the exact divergence with other noise, by the 95 % interval over "
        "the seeds:\n\n" + table(["statement", "difference of overlaps", "holds"], said)
    )
    return (
        "The weights that two networks of one seed both keep, over those that either keeps, and "
        "what that would be by chance:\n\n"
        + table(["networks", "overlap", "by chance"], rows)
        + (decided if said else "")
    )


def threshold(record: Results) -> str:
    """The choice of the threshold."""
    rows = [
        (
            str(row["seed"]),
            which,
            f"{at['threshold']:.1f}",
            f"{at['validation_error']:.2f}",
            f"{at['test_error']:.2f}",
            number(at["compression"]),
        )
        for row in record["rows"]
        for which, at in (("chosen", row["chosen"]), ("of the paper", row["of_the_paper"]))
    ]
    head = ["seed", "threshold", "log α", "validation error in %", "test error in %"]
    return table([*head, "times fewer weights"], rows)


def inference(record: Results) -> str:
    """The times and the files."""
    rows = []
    for title, found in (
        *((row["network"], row) for row in record["networks"]),
        *((f"one layer, {100.0 * row['density']:g} % kept", row) for row in record["layers"]),
    ):
        for at in found["times"]:
            times = at["seconds"]
            rows.append(
                (
                    title,
                    str(at["batch"]),
                    *(f"{number(1e6 * times[kind])}" for kind in ("dense", "torch", "scipy")),
                    number(times["dense"] / min(times["torch"], times["scipy"])),
                    f"{number(found['bytes']['dense'] / found['bytes']['torch'])}",
                )
            )
    head = ["network", "batch", "dense, µs", "sparse (torch), µs", "sparse (SciPy), µs"]
    return table([*head, "dense / sparse", "file, dense / sparse"], rows)


def _figure(name: str, text: str) -> str:
    path = RESULTS / PAPER / f"{name}.png"
    return text + (f"\n\n![{name}](../../results/{PAPER}/{name}.png)" if path.exists() else "")


def _plot(name: str) -> str:
    return f" --plot validation/results/{PAPER}/{name}.png"


def gradients(record: Results) -> str:
    """Section 4.2."""
    rows = [
        (
            row["estimator"],
            f"{row['log_alpha']:g}",
            number(row["loss"]),
            with_error(row["ratio"], row["standard_error"], 2),
            " – ".join(number(each) for each in row["ratio_by_layer"]),
            *(number(row["noise_to_signal"][each]) for each in ("multiplicative", "additive")),
            yes(row["holds"]),
        )
        for row in record["summary"]
    ]
    head = [
        "estimator",
        "log α",
        "loss",
        "variance by log α / by log σ²",
        "by layer",
        "noise / signal by log α",
        "by log σ²",
        "varies less for each seed",
    ]
    return table(head, rows) + (
        f"\n\n{record['sizes']['samples']} gradients each, means over the seeds with standard "
        "errors. The noise is the variance, summed over the weights, and the signal the squared "
        "norm of the mean."
    )


_TRAINING = (
    "Adam, 200 epochs, minibatches of 200, a learning rate that falls from 0.001 to 0, log σ² "
    "from -10, and a weight of the KL that rises from epoch 5 to 20. Weights with log α > 3 are "
    "pruned. The networks of a seed start alike; “other noise” is the exact divergence with "
    "another order of the examples and other noise. "
)

SECTIONS = (
    Section(
        "lenet_300_100",
        "Table 1: LeNet-300-100",
        _TRAINING + "The paper prints one network.",
        _plot("lenet_300_100"),
        lambda record: _figure("lenet_300_100", network(record)),
        PAPER,
    ),
    Section(
        "lenet_5_caffe",
        "Table 1: LeNet-5-Caffe",
        "As LeNet-300-100. On a CPU an epoch takes several times as long, so the record is of "
        "fewer epochs and of two of the five cases: it was made with `--epochs 80 --cases exact "
        "molchanov`. More of either is left to a GPU.",
        _plot("lenet_5_caffe"),
        lambda record: _figure("lenet_5_caffe", network(record)),
        PAPER,
    ),
    Section(
        "threshold",
        "The threshold, by a validation curve",
        "LeNet-300-100 with the exact divergence, trained on five sixths of the training set. The "
        "threshold is the one with the fewest weights whose error on the last sixth is within one "
        "standard error of the least.",
        _plot("threshold"),
        lambda record: _figure("threshold", threshold(record)),
        PAPER,
    ),
    Section(
        "gradients",
        "Section 4.2: the variance of the gradient of the means",
        "One posterior in two parametrisations, θ with log α and θ with log σ²: a network of "
        "LeNet-300-100 after five epochs without divergence, with one α for all weights, and one "
        "minibatch of 200 images.",
        "",
        gradients,
        PAPER,
    ),
    Section(
        "inference",
        "The time and the file of sparse networks",
        "The networks of the table with as many weights as the paper keeps in each layer, at "
        "random places, and one square layer by the share of weights that are kept.",
        "",
        inference,
        PAPER,
    ),
)
