"""The tables of speed, from the records of ``validation.benchmarks``, with their targets.

A target must be met; an aim need not be.
"""

from collections.abc import Callable, Mapping

from logunif_kl.cli.bench import functions as of_functions
from logunif_kl.cli.bench.training import Shown, with_quartiles
from validation.benchmarks import frameworks
from validation.markdown import columns, processor, table, threads
from validation.output import Record

TYPES = ("float64", "float32")
OUT, NEW = "out=", "new arrays"

# The target and the aim of each ratio, by name.
_NO_MORE = ("", "<= 1")  # the other sign, or a number instead of an array
_COMPILED = ("<= 1.1, <= 1, <= 0.8", "")  # from 10,000, 100,000 and 1,000,000 weights on
_ON_A_GPU = {
    "copying 24 bytes a weight / ours, eager, forward+backward": (">= 0.7", ">= 0.9"),
    "peers, eager / ours, eager, forward+backward": (">= 8", ""),
    "ours, compiled / peers, compiled, forward+backward": ("<= 1.2", "<= 1"),
}
TARGETS: Mapping[str, tuple[str, str]] = {
    "scipy dawsn / kl_gap_grad": (">= 5", ">= 10"),
    "neg_kl / np.exp, float32": ("<= 5", "<= 2.5"),
    **{
        f"{over}, {dtype}": _NO_MORE
        for over in (
            "kl / neg_kl",
            "kl_normal / neg_kl_normal",
            "neg_kl_normal, one log_sigma2 / neg_kl_normal",
            "neg_kl_normal, one mu / neg_kl_normal",
        )
        for dtype in TYPES
    },
    "import logunif_kl / import numpy": ("<= 1.2", ""),
    # For training with 1,000,000 weights or more.
    "peers, eager / ours, eager, forward+backward": (">= 5", ">= 10"),
    'peers, eager / ours, eager, reduction="sum", forward+backward': (">= 8", ""),
    "ours, compiled / peers, compiled, forward+backward": _COMPILED,
    "ours, jitted / peers, jitted, forward+backward": _COMPILED,
    "ours, one thread / ours, two threads, forward+backward": (">= 1.6", ""),
    **{
        f"{of}, {part}": _NO_MORE
        for of in (
            "kl_normal, not reduced / neg_kl_normal, not reduced",
            "ours, log_sigma2 one number / ours, log_sigma2 an array",
        )
        for part in ("forward", "forward+backward")
    },
}
COLD = {"float64": ">= 8"}
SLOWEST_STEP = {"ours": "<= 1.3"}
# For whole steps, by the end of the network's name. Other packages should be no faster.
LAYERS = {
    ("minibatch 1000", "ours / torch, deterministic"): ("<= 2.6", "<= 2.2"),
    ("minibatch 128", "ours / ours, without its KL"): ("<= 1.1", ""),
}


def functions(results: Record) -> str:
    times, ratios = of_functions.tables(results)
    on = processor(results)
    title, header, rows = times
    speeds = table(
        [f"{title}, {on}", *header], (row for row in rows if not row[0].startswith("new array: "))
    )
    return f"{speeds}\n\n{_with_targets(ratios, f'{ratios[0]}, {on}', TARGETS)}"


def _with_targets(shown: Shown, title: str, of: Mapping[str, tuple[str, str]]) -> str:
    _, header, rows = shown
    asked = ([*row, *of.get(row[0], ("", ""))] for row in rows)
    return table([title, *header, "target", "aim"], asked)


def training(*reports: Record) -> str:
    """Tabulate the ratios, times and memory of training on each framework, by size."""
    shown = []
    for report in reports:
        for suite in report["suites"]:
            ratios, *others = frameworks.tables(suite)
            of = TARGETS if suite["device"] == "cpu" else _ON_A_GPU
            shown.append(_with_targets(ratios, f"{ratios[0]}; {processor(report)}", of))
            shown += [table([title, *header], rows) for title, header, rows in others]
    return "\n\n".join(shown)


def sizes(results: Record) -> str:
    """Tabulate each function at the middle size, and its worst type relative to that by size."""
    middle, rows = results["middle"], results["by_size"]
    others = [size for size in results["sizes"] if size != middle]
    of = {(r["function"], r["dtype"], r["results"], r["size"]): r for r in rows}
    cells = []
    for name in dict.fromkeys(row["function"] for row in rows):
        at_middle = (
            f"{of[name, dtype, OUT, middle]['nanoseconds_an_element']['median']:.2f}"
            for dtype in TYPES
        )
        against = (
            ", ".join(
                f"{max(of[name, t, kind, size]['against_middle']['median'] for t in TYPES):.2f}"
                for kind in (OUT, NEW)
            )
            for size in others
        )
        cells.append([name, *at_middle, *against])
    header = [f"{processor(results)}, {threads(results)}"]
    header += [f"{dtype}, ns an element at {middle:,}" for dtype in TYPES]
    shown = table([*header, *(f"against that at {size:,}" for size in others)], cells)
    target = "At 30,000,000 elements the target is <= 1.5, and the aim <= 1.2."
    return f"{shown}\n\n{target}\n\n{_cold(results)}"


def _cold(results: Record) -> str:
    cold = results["cold"]
    rows = []
    for row in cold["rows"]:
        times = (f"{spread['median']:.2f}" for spread in row["nanoseconds_an_element"].values())
        target = COLD.get(row["dtype"], "")
        rows.append([row["dtype"], *times, with_quartiles(row["ratio"]), target])
    over, under = cold["rows"][0]["nanoseconds_an_element"]
    header = [f"cold caches, ns an element, {cold['size']:,} elements", over, under]
    return table([*header, f"{over} / {under}", "target"], rows)


def magnitudes(results: Record) -> str:
    where = f"{processor(results)}, {threads(results)}"
    shown = columns(
        ({**row, "at": row["slowest"][0]} for row in results["by_function"]),
        (
            where,
            lambda row: (
                f"{row['framework']}: {row['function']}"
                + (f", {threads(row)}" if row["threads"] > 1 else "")
            ),
        ),
        ("type", "{dtype}"),
        ("usual, ns an element", "{usual_nanoseconds[median]:.2f}"),
        ("slowest at", "{at[argument]}: {at[at]}"),
        ("elements", "{at[elements]}"),
        ("against the usual", lambda row: with_quartiles(row["at"]["against_usual"])),
    )
    return f"{shown}\n\nThe target is <= 2, and the aim <= 1.3."


def log_alpha(results: Record) -> str:
    """Tabulate the times of KL as a function of log alpha, and the ratios, by size."""
    cells = []
    for row in results["rows"]:
        times = row["nanoseconds_an_element"].values()
        found = [f"{time['median']:.2f}" for time in times]
        cells.append(
            [row["framework"], f"{row['size']:,}", *found, f"{row['ratio']['median']:.2f}"]
        )
    names = list(results["rows"][0]["nanoseconds_an_element"])
    header = ["compiled by", "elements", *(f"{name}, ns an element" for name in names)]
    return f"{processor(results)}, {threads(results)}\n\n" + table([*header, "ratio"], cells)


def run(results: Record) -> str:
    cells = []
    parts = {"step": "the whole step", "penalty": "the penalty", "optimizer": "Adam"}
    for each in results["runs"]:
        at = each["nanoseconds_a_weight_at_step"]
        for part, words in parts.items():
            times = (f"{of_part[part]:.1f}" for of_part in at.values())
            worst = f"{each['worst_against_first'][part]:.2f}"
            target = SLOWEST_STEP.get(each["name"], "") if part == "step" else ""
            cells.append([f"{each['name']}: {words}", *times, worst, target])
    steps = results["runs"][0]["nanoseconds_a_weight_at_step"]
    header = [f"{results['optimizer']}, {results['weights']:,} weights, {results['dtype']}"]
    header[0] += f", {processor(results)}, {threads(results)}"
    header += [f"ns a weight at step {int(step):,}" for step in steps]
    return table([*header, "slowest window against the first step", "target"], cells)


def layers(results: Record) -> str:
    where = f"ratio of whole steps, {threads(results)}, {processor(results)}"
    shown = []
    for network in results["networks"]:
        name = network["network"]
        rows = (
            [row["what"], with_quartiles(row), *of_layers(name, row["what"])]
            for row in network["ratios"]
        )
        shown.append(table([f"{name}: {where}", "median (quartiles)", "target", "aim"], rows))
    return "\n\n".join(shown)


def of_layers(network: str, what: str) -> tuple[str, str]:
    """Return the target and the aim of a ratio in a network, compiled or not."""
    what = what.replace(", compiled", "")
    target = ("", "") if what.startswith("ours") else (">= 1", "")
    return LAYERS.get((network.rpartition(", ")[2], what), target)


# Tables by the name of the benchmark.
SHOWN: dict[str, Callable[..., str]] = {
    "functions": functions,
    "torch": training,
    "jax": training,
    "sizes": sizes,
    "magnitudes": magnitudes,
    "log_alpha": log_alpha,
    "training": run,
    "layers": layers,
}
