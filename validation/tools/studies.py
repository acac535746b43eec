"""The tables of the studies: the ladder of refits, Monte Carlo, and what the CUDA kernels cost."""

from validation.markdown import table
from validation.output import Record

# Those whose formulas are shown, by family and number of terms.
_PASTED = (("sigmoid", 1), ("sigmoid", 2), ("sigmoid", 3), ("polynomial", 3))


def ladder(results: Record) -> str:
    """Tabulate what each form of the refits costs and how far off it is, with formulas to paste."""
    rows = []
    for rung in results["rungs"]:
        value, gradient = rung["value"]["inside"], rung["gradient"]["inside"]
        rows.append(
            [
                _name(rung),
                str(rung["constants"]),
                str(rung["transcendentals"]),
                f"{value['max_error']:.1e}",
                f"{100 * value['max_grad_error']:.2g} %",
                f"{gradient['max_error']:.1e}",
                f"{100 * gradient['max_grad_error']:.2g} %",
            ]
        )
    header = ["form", "constants", "exp, log", "fitted to the value: error of −KL"]
    header += ["relative error of the gradient", "fitted to the gradient: error of −KL"]
    shown = [table([*header, "relative error of the gradient"], rows)]
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
    """Tabulate the coverage of the intervals, and the running means of two gradients."""
    rows = (
        [
            row["of"],
            row["scheme"] + ("" if row["variance_reduction"] else ", no control variate"),
            f"{row['n_samples']:,}",
            f"{row['seeds']:,}",
            f"{100 * min(row['coverage']):.1f} to {100 * max(row['coverage']):.1f}",
        ]
        for row in results["coverage"]
    )
    header = ["of", "scheme", "samples", "seeds", f"coverage of {results['coverage_of']}, %"]
    gradient = results["gradient"]
    means = gradient["running_means"]
    running = table(
        [
            f"mean gradient at log α = {gradient['log_alpha']:g}",
            *(f"{samples:,} samples" for samples in means[0]["samples"]),
        ],
        ([row["way"], *(f"{mean:.4f}" for mean in row["mean"])] for row in means),
    )
    return (
        f"{table(header, rows)}\n\n{running}\n\n"
        f"The exact gradient there is {gradient['exact_by_dawson']:.4f}."
    )


def cuda(results: Record) -> str:
    """Tabulate what bounds each kernel on some GPUs, as a roofline has it."""
    rows = []
    for gpu in results["roofline"]:
        for kernel, found in gpu["kernels"].items():
            times = found["picoseconds"]
            written = (f"{time:.2f}" for time in times.values())
            rows.append([gpu["gpu"], kernel, str(found["bytes"]), *written, found["bound"]])
    parts = list(results["roofline"][0]["kernels"]["value"]["picoseconds"])
    header = ["GPU", "kernel", "bytes a weight", *(f"{part}, ps a weight" for part in parts)]
    return table([*header, "bound by"], rows)
