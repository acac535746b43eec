"""The tables of speed, from the records of ``validation.benchmarks``."""

from collections.abc import Callable
from functools import partial

from logunif_kl.cli.bench import functions as of_functions
from logunif_kl.cli.bench.training import with_quartiles
from validation.benchmarks import frameworks
from validation.markdown import columns, number, processor, table, threads
from validation.output import Record

TYPES = ("float64", "float32")
OUT, NEW = "out=", "new arrays"


def functions(results: Record) -> str:
    times, ratios = of_functions.tables(results)
    on = processor(results)
    title, header, rows = times
    speeds = table(
        [f"{title}, {on}", *header], (row for row in rows if not row[0].startswith("new array: "))
    )
    title, header, rows = ratios
    return f"{speeds}\n\n{table([f'{title}, {on}', *header], rows)}"


_FORMULA = ("peers", "formula")
"""What a record calls the formula of other programs, and what the tables call it."""


def training(*reports: Record) -> str:
    """Tabulate the ratios, times and memory of training on each framework, by size."""
    shown = []
    for report in reports:
        for suite in report["suites"]:
            for i, (title, header, rows) in enumerate(frameworks.tables(suite)):
                on = "" if i else f"; {processor(report)}"
                shown.append(table([title + on, *header], rows))
    return "\n\n".join(shown).replace(*_FORMULA)


def sizes(results: Record) -> str:
    """Tabulate each function at the middle size, and its worst type relative to that by size."""
    middle, rows = results["middle"], results["by_size"]
    of = {(r["function"], r["dtype"], r["results"], r["size"]): r for r in rows}
    names = dict.fromkeys(row["function"] for row in rows)
    where = f"{processor(results)}, {threads(results)}"
    times = [f"{where}: ns per element at {_short(middle)} elements", *TYPES]
    cells = []
    for name in names:
        found = (of[name, dtype, OUT, middle]["nanoseconds_an_element"] for dtype in TYPES)
        cells.append([name, *(f"{time['median']:.2f}" for time in found)])
    shown = [table(times, cells)]
    others = [size for size in results["sizes"] if size != middle]
    for kind, words in ((OUT, "with `out=`"), (NEW, "with new result arrays")):
        cells = []
        for name in names:
            against = (
                max(of[name, dtype, kind, size]["against_middle"]["median"] for dtype in TYPES)
                for size in others
            )
            cells.append([name, *(f"{ratio:.2f}" for ratio in against)])
        header = f"time an element against that at {_short(middle)}, {words}"
        shown.append(table([header, *map(_short, others)], cells))
    return "\n\n".join([*shown, _cold(results)])


def _short(size: int) -> str:
    """Write a number of elements, such as 100 k or 30 M."""
    for unit, letter in ((1_000_000, " M"), (1_000, " k")):
        if size >= unit:
            return f"{size // unit}{letter}"
    return str(size)


def _cold(results: Record) -> str:
    cold = results["cold"]
    rows = []
    for row in cold["rows"]:
        times = (f"{spread['median']:.2f}" for spread in row["nanoseconds_an_element"].values())
        rows.append([row["dtype"], *times, with_quartiles(row["ratio"])])
    over, under = cold["rows"][0]["nanoseconds_an_element"]
    header = [f"cold caches, ns per element, {cold['size']:,} elements", over, under]
    return table([*header, f"{over} / {under}"], rows)


def magnitudes(results: Record) -> str:
    where = f"{processor(results)}, {threads(results)}"
    return columns(
        ({**row, "at": row["slowest"][0]} for row in results["by_function"]),
        (
            where,
            lambda row: (
                f"{row['framework']}: {row['function']}"
                + (f", {threads(row)}" if row["threads"] > 1 else "")
            ),
        ),
        ("type", "{dtype}"),
        ("usual, ns per element", "{usual_nanoseconds[median]:.2f}"),
        ("slowest at", "{at[argument]}: {at[at]}"),
        ("elements", "{at[elements]}"),
        ("against the usual", lambda row: with_quartiles(row["at"]["against_usual"])),
    )


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
    header = ["compiled by", "elements", *(f"{name}, ns per element" for name in names)]
    return f"{processor(results)}, {threads(results)}\n\n" + table([*header, "ratio"], cells)


def run(results: Record) -> str:
    cells = []
    parts = {"step": "the whole step", "penalty": "the penalty", "optimizer": "Adam"}
    for each in results["runs"]:
        at = each["nanoseconds_a_weight_at_step"]
        for part, words in parts.items():
            times = (f"{of_part[part]:.1f}" for of_part in at.values())
            worst = f"{each['worst_against_first'][part]:.2f}"
            cells.append([f"{each['name']}: {words}", *times, worst])
    steps = results["runs"][0]["nanoseconds_a_weight_at_step"]
    header = [f"{results['optimizer']}, {results['weights']:,} weights, {results['dtype']}"]
    header[0] += f", {processor(results)}, {threads(results)}"
    header += [f"ns a weight at step {int(step):,}" for step in steps]
    return table([*header, "slowest window against the first step"], cells).replace(*_FORMULA)


def layers(results: Record) -> str:
    where = f"ratio of whole steps, {threads(results)}, {processor(results)}"
    shown = []
    for network in results["networks"]:
        name = network["network"]
        rows = ([row["what"], with_quartiles(row)] for row in network["ratios"])
        shown.append(table([f"{name}: {where}", "median (quartiles)"], rows))
        if all("shares" in way for way in network["ways"]):
            steps = ([way["name"], *_step(way)] for way in network["ways"])
            shown.append(
                table([f"{name}: a step", "ms", "matrix products", "random numbers"], steps)
            )
    return "\n\n".join(shown)


def memory(results: Record) -> str:
    """Tabulate what the layers keep, in outputs of the deterministic layer."""
    shown = []
    for row in results["rows"]:
        header = [f"{row['layer']}, {row['type']}", "outputs kept", "MB"]
        cells = [
            [name, f"{size / row['output_bytes']:.2f}", f"{size / 1e6:.1f}"]
            for name, size in row["kept_bytes"].items()
        ]
        shown.append(table(header, cells))
    return "\n\n".join(shown)


def stacked(results: Record) -> str:
    """Tabulate the time of a step of one of several networks."""
    header = f"a step on a minibatch of {results['minibatch']}; {processor(results)}"
    return columns(
        results["rows"],
        (f"{header}, {threads(results)}", "{networks} x {width} units, {method}"),
        *(
            (f"{name}, ms a network", partial(_milliseconds, name))
            for name in results["rows"][0]["milliseconds"]
        ),
        ("by vmap / one after another", lambda row: f"{row['ratio']['median']:.2f}"),
    )


def _milliseconds(name: str, row: Record) -> str:
    return f"{row['milliseconds'][name]['median']:.2f}"


def _microseconds(size: str, row: Record) -> str:
    return f"{row['microseconds'][size]['median']:.0f}"


def deployed(results: Record) -> str:
    """Tabulate files, times and errors, with a table for each network."""
    shown = []
    for name in dict.fromkeys(row["network"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["network"] == name]
        shown.append(
            columns(
                rows,
                (f"{name}, {rows[0]['compression']:.0f} times sparse", "{form}, {engine}"),
                ("file, KiB", lambda row: f"{row['file_bytes'] / 1024:.1f}"),
                *(
                    (f"µs, batch {size}", partial(_microseconds, size))
                    for size in rows[0]["microseconds"]
                ),
                ("test error, %", "{test_error:.1f}"),
            )
        )
    return "\n\n".join(shown)


def _step(way: Record) -> list[str]:
    """Return the time of a step and the shares of matrix products and of random numbers."""
    of = (f"{100 * way['shares'][kind]:.0f} %" for kind in ("products", "noise"))
    return [number(way["milliseconds"]["step"]["median"]), *of]


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
    "memory": memory,
    "deployed": deployed,
    "stacked": stacked,
}
