"""The tables of the studies: the ladder of refits, Monte Carlo, and what the CUDA kernels cost."""

from collections.abc import Callable

from validation.markdown import columns, table
from validation.output import Record

# Those whose formulas are shown, by family and number of terms.
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


def cuda(results: Record) -> str:
    rows = []
    for gpu in results["roofline"]:
        for kernel, found in gpu["kernels"].items():
            times = found["picoseconds"]
            written = (f"{time:.2f}" for time in times.values())
            rows.append([gpu["gpu"], kernel, str(found["bytes"]), *written, found["bound"]])
    parts = list(results["roofline"][0]["kernels"]["value"]["picoseconds"])
    header = ["GPU", "kernel", "bytes a weight", *(f"{part}, ps a weight" for part in parts)]
    return table([*header, "bound by"], rows)
