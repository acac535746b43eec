"""The tables of the committed results, for the README and the site.

Each section shows files of ``validation/results`` with the commands that make them.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from validation.accuracy.proved import CLAIMS, KERNELS
from validation.benchmarks import tables as speed
from validation.markdown import columns, table
from validation.output import Record
from validation.paths import RESULTS
from validation.tools import summary


def path(file: str) -> str:
    return f"validation/results/{file}.json"


def made_by(results: Record) -> str:
    """Name the command, versions, machine and dates of a record behind a table."""
    versions = ", ".join(
        f"{name} {version}" for name, version in results["versions"].items() if name != "logunif_kl"
    )
    machine = results["machine"]
    kernel = f", kernel {results['kernel']}" if "kernel" in results else ""
    days = [row["date"][:10] for row in results.get("rows", []) if "date" in row]
    days = sorted(set(days or [results["date"][:10]]))
    commit = f", commit {results['commit']}" if results.get("commit") else ""
    return (
        f"Made by `{results['command']}` ({machine['cpu']}, {machine['architecture']}{kernel}; "
        f"{versions}; {' to '.join(dict.fromkeys([days[0], days[-1]]))}{commit})."
    )


def made_in_short(results: list[Record]) -> str:
    commands = dict.fromkeys(each["command"] for each in results)
    machines = dict.fromkeys(each["machine"]["cpu"] for each in results)
    days = sorted({each["date"][:10] for each in results if "date" in each})
    when = f"; {' to '.join(dict.fromkeys([days[0], days[-1]]))}" if days else ""
    made = ", ".join(f"`{command}`" for command in commands)
    return f"Made by {made} ({', '.join(machines)}{when})."


def percent(error: float) -> str:
    """Write a relative error in per cent, or as a number if it is large."""
    return f"{error:.1e}" if abs(error) >= 10 else f"{100 * error:.3g} %"


def compare(results: Record) -> str:
    rows = [
        (
            row["method"],
            row["interval"]["name"],
            f"{abs(float(row['value']['worst'])):.2e}",
            f"{float(row['value']['log_alpha']):.2f}",
            f"{float(row['value']['worst_with_best_constant']):.2e}",
            percent(abs(float(row["gradient"]["worst"]))),
            f"{float(row['gradient']['log_alpha']):.2f}",
        )
        for row in results["rows"]
    ]
    header = ["method", "over", "worst error of −KL", "at log α", "with the best constant"]
    return table([*header, "worst relative error of the gradient", "at log α"], rows)


def worst_errors(rows: list[Record], columns: Mapping[str, tuple[Sequence[str], str]]) -> str:
    """Tabulate the errors of all functions, with columns of some kernels and a type."""
    functions, by = dict.fromkeys(row["function"] for row in rows), columns.values()
    cells = (
        [f, *(summary.worst(rows, f, dtype, kernels) for kernels, dtype in by)] for f in functions
    )
    return table(["worst error in ulp", *columns], cells)


def accuracy(search: Record, exhaustive: Record) -> str:
    columns = {
        f"{dtype}{where}": (kernels, dtype)
        for where, kernels in (("", summary.NUMPY), (", in Python", ("python",)))
        for dtype in ("float64", "float32", "float16", "bfloat16")
    }
    return worst_errors([*search["rows"], *exhaustive["rows"]], columns)


def proofs(search: Record) -> str:
    """Tabulate what was found and what is proved, with and without fused multiply-add."""
    header = [f"{what}, {how}" for what in ("found", "proved") for how in ("fused", "not fused")]
    rows = []
    for f, bounds in CLAIMS.items():
        found = (summary.worst(search["rows"], f, "float64", KERNELS[how]) for how in bounds)
        rows.append([f"`{f}`", *found, *(f"{bound:.4f}" for bound in bounds.values())])
    return table(["error in ulp", *header], rows)


FRAMEWORKS = {
    "torch": "PyTorch",
    "inductor": "PyTorch, compiled",
    "triton": "Triton",
    "jax": "JAX, jitted",
    "tensorflow": "TensorFlow",
}


def frameworks(*reports: Record) -> str:
    rows = [row for report in reports for row in report["rows"]]
    measured = {(row["kernel"], row["dtype"]) for row in rows}
    columns = {
        f"{title}, {dtype}": ([kernel], dtype)
        for kernel, title in FRAMEWORKS.items()
        for dtype in ("float32", "float64")
        if (kernel, dtype) in measured
    }
    halves = [row["ulp"] for row in rows if row["dtype"] in ("float16", "bfloat16")]
    text = worst_errors(rows, columns)
    if halves:
        text += (
            "\n\nIn float16 and bfloat16 every input of the functions of one argument was tried on "
            f"each; the worst error is {math.ceil(1000 * max(halves)) / 1000:.3f} ulp."
        )
    return text


def validate(results: Record) -> str:
    def pair(part: Record | None) -> tuple[str, str]:
        return (f"{part['declared']:.2e}", f"{part['measured']:.2e}") if part else ("", "")

    rows = [
        (
            row["method"],
            f"{first_author(row['citation'])}, {row['equation']}",
            row["interval"]["name"],
            *pair(row["value"]),
            *pair(row["gradient"]),
            f"{row['nanoseconds']:,.{0 if row['nanoseconds'] >= 10 else 1}f}",
        )
        for row in results["rows"]
        if row["is_domain"]
    ]
    header = ["method", "equation", "domain", "worst error of −KL, declared", "measured"]
    return table([*header, "of the gradient, declared", "measured", "ns per element"], rows)


def papers(results: Record) -> str:
    cells = (
        (f"{first_author(row['paper'])}, {row['where']}", claim(row), row["note"])
        for row in results["claims"]
        if row["verdict"] == "fails"
    )
    lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in cells)
    rows = "\n".join(f"| {line} |" for line in lines)
    verdicts = Counter(row["verdict"] for row in results["claims"])
    return (
        f"| where | what does not hold | what is found |\n| - | - | - |\n{rows}\n\n"
        f"Of {len(results['claims'])} statements {verdicts['holds']} hold and "
        f"{verdicts['fails']} fail. Not decided: {verdicts['not decided']}."
    )


def claim(row: Record) -> str:
    return f"{row['claim']}{'' if row['stated_by_the_paper'] else ' (asked here)'}"


def first_author(citation: str) -> str:
    return citation.partition(",")[0]


# Fits whose formulas are shown, by family and number of terms.
_PASTED = (("sigmoid", 1), ("sigmoid", 2), ("sigmoid", 3), ("polynomial", 3))


def ladder(results: Record) -> str:
    def slope(fitted_to: str) -> Callable[[Record], str]:
        return lambda rung: f"{100 * rung[fitted_to]['inside']['max_grad_error']:.2g} %"

    shown = [
        columns(
            results["rungs"],
            ("form", _name),
            ("constants", "{constants}"),
            ("exp, log", "{transcendentals}"),
            ("fitted to the value: error of −KL", "{value[inside][max_error]:.1e}"),
            ("relative error of the gradient", slope("value")),
            ("fitted to the gradient: error of −KL", "{gradient[inside][max_error]:.1e}"),
            ("relative error of the gradient", slope("gradient")),
        )
    ]
    seconds = results["cpu_seconds"]["sigmoid"]
    shown.append(f"All fits of sigmoids in this table took {seconds:.0f} s of CPU time.")
    for rung in results["rungs"]:
        if (rung["family"], rung["terms"]) in _PASTED:
            text = rung["value_text"]["torch"].rstrip()
            shown.append(f"{_name(rung)}:\n\n```python\n{text}\n```")
    return "\n\n".join(shown)


def _name(rung: Record) -> str:
    if rung["family"] == "sigmoid":
        return f"{rung['terms']} sigmoid{'s' * (rung['terms'] > 1)} of log α"
    return f"polynomial of degree {rung['terms']} in α"


def monte_carlo(results: Record) -> str:
    bare = ", no control variate"
    shown = columns(
        results["coverage"],
        ("of", "{of}"),
        ("scheme", lambda row: row["scheme"] + ("" if row["variance_reduction"] else bare)),
        ("samples", "{n_samples:,}"),
        ("seeds", "{seeds:,}"),
        (
            f"coverage of {results['coverage_of']}, %",
            lambda row: f"{100 * min(row['coverage']):.1f} to {100 * max(row['coverage']):.1f}",
        ),
    )
    gradient = results["gradient"]
    means = gradient["running_means"]
    running = table(
        [
            f"mean gradient at log α = {gradient['log_alpha']:g}",
            *(f"{samples:,} samples" for samples in means[0]["samples"]),
        ],
        ([row["way"], *(f"{mean:.4f}" for mean in row["mean"])] for row in means),
    )
    return f"{shown}\n\n{running}\n\nThe exact gradient there is {gradient['exact_by_dawson']:.4f}."


# On an Intel processor with AVX-512, and on another one.
_OF_TORCH = ("accuracy/torch", "accuracy/torch_avx2")

SECTIONS: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
    "accuracy": (accuracy, ("accuracy/search", "accuracy/exhaustive")),
    "accuracy_in_short": (
        summary.accuracy,
        ("accuracy/search", "accuracy/exhaustive", *_OF_TORCH, "accuracy/jax"),
    ),
    "bench": (speed.functions, ("bench/bench",)),
    "bench_in_short": (summary.bench, ("bench/bench", "bench/bench_torch", "bench/bench_jax")),
    "compare": (compare, ("compare/compare",)),
    "frameworks": (frameworks, (*_OF_TORCH, "accuracy/jax", "accuracy/tensorflow")),
    "papers": (papers, ("papers/papers",)),
    "proofs": (proofs, ("accuracy/search",)),
    "refits": (ladder, ("ladder/ladder",)),
    "layers_in_short": (summary.layers, ("bench/bench_layers",)),
    "memory_in_short": (summary.memory, ("bench/bench_memory",)),
    "layers": (speed.layers, ("bench/bench_layers",)),
    "memory": (speed.memory, ("bench/bench_memory",)),
    "deployed": (speed.deployed, ("bench/bench_deployed",)),
    "stacked": (speed.stacked, ("bench/bench_stacked",)),
    "magnitudes": (speed.magnitudes, ("bench/bench_magnitudes",)),
    "coverage": (monte_carlo, ("monte_carlo/monte_carlo",)),
    "log_alpha": (speed.log_alpha, ("bench/bench_log_alpha",)),
    "run": (speed.run, ("bench/bench_training",)),
    "sizes": (speed.sizes, ("bench/bench_sizes",)),
    "training": (speed.training, ("bench/bench_torch", "bench/bench_jax", "bench/bench_cuda")),
    "validate": (validate, ("validate/validate",)),
}


# A section in this list shows the existing files, and is empty if there are none.
WHERE_MEASURED = (
    *(
        "deployed",
        "frameworks",
        "layers",
        "log_alpha",
        "magnitudes",
        "memory",
        "run",
        "sizes",
        "stacked",
        "training",
    ),
)


def section(name: str) -> str:
    show, files = SECTIONS[name]
    if name in WHERE_MEASURED:
        files = tuple(file for file in files if (RESULTS / f"{file}.json").exists())
        if not files:
            return "Not measured yet.\n"
    results = [json.loads((RESULTS / f"{f}.json").read_text(encoding="utf-8")) for f in files]
    if name.endswith("_in_short"):
        made = [made_in_short(results)]
    else:
        made = list(map(made_by, results))
    return "\n\n".join(["", show(*results), *made, ""]).removeprefix("\n")
