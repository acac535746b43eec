"""The tables of speed in the README, from the reports of ``logunif-kl bench``."""

import math

from validation.tools.markdown import Results, processor, table, threads, with_quartiles

TYPES = ("float64", "float32")
OUT, NEW = "out=", "new arrays"


def functions(results: Results) -> str:
    """Tabulate the times, and the ratios that a target is set for."""
    times = results["nanoseconds_an_element"]
    shown = ["copy", "np.exp", "scipy dawsn", "kl_gap", "kl_gap_grad", "kl_gap_hess"]
    shown += ["neg_kl", "neg_kl_grad", "neg_kl_hess"]
    speeds = table(
        [
            f"ns an element, {results['size']:,} elements, {threads(results)}, "
            f"{processor(results)}",
            *("float64", "float32"),
        ],
        (
            [name, *(f"{times[f'{name} {t}']['median']:.2f}" for t in ("f64", "f32"))]
            for name in shown
        ),
    )
    ratios = table(
        [f"ratio of times, {processor(results)}", "median", "quartiles", "target", "aim"],
        (
            [
                row["what"],
                f"{row['median']:.2f}",
                f"{row['lower_quartile']:.2f} to {row['upper_quartile']:.2f}",
                row["must"],
                row["aim"],
            ]
            for row in results["ratios"]
        ),
    )
    return f"{speeds}\n\n{ratios}"


def training(*reports: Results) -> str:
    """Tabulate the ratios, times and memory of training on each framework, by size."""
    return "\n\n".join(
        _suite(suite, processor(report)) for report in reports for suite in report["suites"]
    )


def _suite(suite: Results, on: str) -> str:
    sizes = suite["sizes"]
    columns = [f"{sized['size']:,}" for sized in sizes]
    where = f"{suite['framework']} on {suite['device']}, {threads(suite)}"
    ratios = table(
        [f"ratio of times: {where}, by weights; {on}", *columns, "target", "aim"],
        _ratios(sizes) + _ratios(suite.get("on_threads", [])),
    )
    names = list(sizes[0]["nanoseconds_a_weight"])
    times = table(
        [f"ns a float32 weight: {where}, by weights", *columns, "bytes a weight, at most"],
        (
            [
                name,
                *(f"{sized['nanoseconds_a_weight'][name]['median']:.2f}" for sized in sizes),
                f"{sizes[-1]['peak_bytes_a_weight'].get(name, math.nan):.0f}".replace("nan", ""),
            ]
            for name in names
        ),
    )
    parts = [ratios, times, *_small(suite), *_counts(sizes[-1].get("counts", {}))]
    return "\n\n".join(parts)


def _ratios(sizes: list[Results]) -> list[list[str]]:
    """Write each ratio at all sizes; a target that changes with the size is said for each."""
    found = []
    for rows in zip(*(sized["ratios"] for sized in sizes), strict=True):
        must, aim = (dict.fromkeys(row[k] for row in rows if row[k]) for k in ("must", "aim"))
        cells = map(with_quartiles, rows)
        found.append([rows[0]["what"], *cells, ", ".join(must), ", ".join(aim)])
    return found


def _small(suite: Results) -> list[str]:
    """Tabulate the time of a call on few weights."""
    small = suite.get("small", {})
    if not small.get("microseconds"):
        return []
    rows = ([name, with_quartiles(row)] for name, row in small["microseconds"].items())
    where = f"{small['weights']} weights, {suite['framework']} on {suite['device']}"
    return [table([f"a call on {where}", "microseconds"], rows)]


def _counts(counted: Results) -> list[str]:
    """Tabulate the counts of the compiler, if there are any."""
    if not counted:
        return []
    kinds = list(next(iter(counted.values())))
    rows = ([name, *(f"{counts[kind]:.0f}" for kind in kinds)] for name, counts in counted.items())
    return [table(["what the compiler counts, a weight but for loops", *kinds], rows)]


def sizes(results: Results) -> str:
    """Tabulate each function at the middle, and its worst type against that at each size."""
    middle, rows = results["middle"], results["by_size"]
    columns = [size for size in results["sizes"] if size != middle]
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
            for size in columns
        )
        cells.append([name, *at_middle, *against])
    header = [f"{processor(results)}, {threads(results)}"]
    header += [f"{dtype}, ns an element at {middle:,}" for dtype in TYPES]
    shown = table([*header, *(f"against that at {size:,}" for size in columns)], cells)
    asked = next((row for row in rows if row["must"]), None)
    if asked:
        shown += (
            f"\n\nAt {asked['size']:,} elements the target is {asked['must']}, "
            f"and the aim {asked['aim']}."
        )
    return f"{shown}\n\n{_cold(results)}"


def _cold(results: Results) -> str:
    cold = results["cold"]
    rows = []
    for row in cold["rows"]:
        times = (f"{spread['median']:.2f}" for spread in row["nanoseconds_an_element"].values())
        rows.append([row["dtype"], *times, with_quartiles(row["ratio"]), row["must"]])
    over, under = cold["rows"][0]["nanoseconds_an_element"]
    header = [f"cold caches, ns an element, {cold['size']:,} elements", over, under]
    return table([*header, f"{over} / {under}", "target"], rows)


def magnitudes(results: Results) -> str:
    """Tabulate the slowest magnitude of each function in each type."""
    cells = []
    for row in results["by_function"]:
        slowest = row["slowest"][0]
        several = f", {threads(row)}" if row["threads"] > 1 else ""
        cells.append(
            [
                f"{row['framework']}: {row['function']}{several}",
                row["dtype"],
                f"{row['usual_nanoseconds']['median']:.2f}",
                f"{slowest['argument']}: {slowest['at']}",
                slowest["elements"],
                with_quartiles(slowest["against_usual"]),
            ]
        )
    asked = results["by_function"][0]
    header = [f"{processor(results)}, {threads(results)}", "type", "usual, ns an element"]
    shown = table([*header, "slowest at", "elements", "against the usual"], cells)
    return f"{shown}\n\nThe target is {asked['must']}, and the aim {asked['aim']}."


def run(results: Results) -> str:
    """Tabulate the cost of a step over an ordinary run."""
    cells = []
    parts = {"step": "the whole step", "penalty": "the penalty", "optimizer": "Adam"}
    for each in results["runs"]:
        at = each["nanoseconds_a_weight_at_step"]
        for part, words in parts.items():
            times = (f"{of_part[part]:.1f}" for of_part in at.values())
            worst = f"{each['worst_against_first'][part]:.2f}"
            asked = each["must"] if part == "step" else ""
            cells.append([f"{each['name']}: {words}", *times, worst, asked])
    steps = results["runs"][0]["nanoseconds_a_weight_at_step"]
    header = [f"{results['optimizer']}, {results['weights']:,} weights, {results['dtype']}"]
    header[0] += f", {processor(results)}, {threads(results)}"
    header += [f"ns a weight at step {int(step):,}" for step in steps]
    return table([*header, "slowest window against the first step", "target"], cells)


def layers(results: Results) -> str:
    """Tabulate the ratios of training steps of whole layers."""
    where = f"ratio of whole steps, {threads(results)}, {processor(results)}"
    return "\n\n".join(
        table(
            [f"{network['network']}: {where}", "median (quartiles)", "target", "aim"],
            (
                [row["what"], with_quartiles(row), row["must"], row["aim"]]
                for row in network["ratios"]
            ),
        )
        for network in results["networks"]
    )
