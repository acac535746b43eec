"""``python -m validation.traced [--check] [--count]``: write, or compare, the traced sources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from logunif_kl._arithmetic import functions, normal_float32
from validation.paths import PACKAGE
from validation.traced import emit_c, emit_triton
from validation.traced.graph import Output, operations

COMMAND = "python -m validation.traced"

_NORMAL = ("mu", "log_sigma2")
_VALUE = "-KL of N(mu, sigma^2)."
_GRADIENT = "The derivatives of -KL in mu and in log_sigma2."
TRITON = (
    Output("value", _NORMAL, functions.neg_kl_normal, [0], _VALUE),
    Output("gradient", _NORMAL, functions.neg_kl_normal, [1, 2], _GRADIENT),
    Output("neg_kl", ["x"], functions.neg_kl, [0], "-KL at log_alpha = x."),
    Output("neg_kl_grad", ["x"], functions.neg_kl_grad, [0], "Its derivative."),
    Output("neg_kl_hess", ["x"], functions.neg_kl_hess, [0], "Its second derivative."),
)
C = (
    Output("normal_value", _NORMAL, normal_float32.neg_kl_normal, [0], _VALUE),
    Output("normal_gradient", _NORMAL, normal_float32.neg_kl_normal, [1, 2], _GRADIENT),
)


def sources() -> dict[Path, str]:
    """The text of the generated files."""
    return {
        PACKAGE / "torch" / "_triton" / "arithmetic.py": emit_triton.source(TRITON, COMMAND),
        PACKAGE / "_numpy" / "c" / "float32_kernels.h": emit_c.source(C, COMMAND),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument(
        "--count", action="store_true", help="print the operations an element takes"
    )
    args = parser.parse_args()
    if args.count:
        for output in TRITON:
            counts = operations(output)
            parts = ", ".join(f"{n} {operation}" for operation, n in counts.most_common())
            print(f"{output.name}: {counts.total()} ({parts})")
        return 0
    stale = []
    for path, text in sources().items():
        if path.exists() and path.read_text() == text:
            continue  # and it keeps its date, by which what is compiled from it is not stale
        if args.check:
            stale.append(path.name)
        else:
            path.write_text(text)
    if stale:
        print(
            f"differ from what the arithmetic gives: {', '.join(stale)}; run {COMMAND}",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
