"""Write the tables of README.md from the committed results.

    python -m validation.readme [--check]

A section lies between ``<!-- results: NAME -->`` and ``<!-- end -->`` and shows
``validation/results/NAME.json`` with the command that made it. ``--check`` writes nothing and fails
when the README shows anything else.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from validation.elsewhere import ROOT

README = ROOT / "README.md"
RESULTS = ROOT / "validation" / "results"
SECTION = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Results = dict[str, Any]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table, its columns padded so that it reads as text too."""
    rows = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    ruled = [list(header), ["-" * width for width in widths], *rows]
    lines = (" | ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in ruled)
    return "\n".join(f"| {line} |" for line in lines)


def made_by(results: Results) -> str:
    """Name the command, the versions and the machine behind a table."""
    versions = ", ".join(
        f"{name} {version}" for name, version in results["versions"].items() if name != "logunif_kl"
    )
    machine = results["machine"]
    return (
        f"Made by `{results['command']}` ({machine['cpu']}, {machine['architecture']}, "
        f"kernel {results['kernel']}; {versions}; {results['date'][:10]})."
    )


def percent(error: float) -> str:
    """Write a relative error as a reader would say it."""
    return f"{error:.1e}" if abs(error) >= 10 else f"{100 * error:.2g} %"


def compare(results: Results) -> str:
    """Tabulate the worst errors of the published approximations."""
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


def bench(results: Results) -> str:
    """Tabulate the times, and the ratios that a target is set for."""
    times = results["nanoseconds_an_element"]
    shown = ["copy", "np.exp", "scipy dawsn", "kl_gap", "kl_gap_grad", "kl_gap_hess"]
    shown += ["neg_kl", "neg_kl_grad", "neg_kl_hess"]
    speeds = table(
        [f"ns an element, {results['size']:,} elements, {threads(results)}", "float64", "float32"],
        (
            [name, *(f"{times[f'{name} {t}']['median']:.2f}" for t in ("f64", "f32"))]
            for name in shown
        ),
    )
    ratios = table(
        ["ratio of times", "median", "quartiles", "target", "aim"],
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


def threads(results: Results) -> str:
    """Say on how many threads."""
    return "one thread" if results["threads"] == 1 else f"{results['threads']} threads"


SECTIONS: dict[str, Callable[[Results], str]] = {"bench": bench, "compare": compare}


def section(name: str) -> str:
    """Return the text of one section, from its results."""
    path = RESULTS / f"{name}.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    return f"\n{SECTIONS[name](results)}\n\n{made_by(results)}\n\n"


def rewritten(text: str) -> str:
    """Return the README with every section made anew."""
    return SECTION.sub(lambda found: found[1] + section(found[2]) + found[3], text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m validation.readme", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    options = parser.parse_args(arguments)
    text = README.read_text(encoding="utf-8")
    new = rewritten(text)
    if options.check:
        if new != text:
            print("README.md differs from validation/results: run python -m validation.readme")
        return int(new != text)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
