"""``python -m validation.triton [--check] [--count]``: write, or compare, the Triton source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from logunif_kl import _kernel
from validation.triton.emit import device_function, operations

COMMAND = "python -m validation.triton"
TARGET = Path(__file__).parents[2] / "logunif_kl" / "torch" / "_triton_kernels.py"

HEADER = f'''\
"""The arithmetic of ``_kernel`` in float32, as device functions in Triton.

Written by ``{COMMAND}``, which runs ``_kernel`` on symbols: do not edit.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from ._triton_math import PLACE
'''


class Output(NamedTuple):
    """A device function: some of the results of a function of `_kernel`."""

    name: str
    arguments: Sequence[str]
    function: Callable[..., Any]
    pick: Sequence[int]
    summary: str


_NORMAL = ("mu", "log_sigma2")
OUTPUTS = (
    Output("value", _NORMAL, _kernel.neg_kl_normal, [0], "-KL of N(mu, sigma^2)."),
    Output(
        "gradient",
        _NORMAL,
        _kernel.neg_kl_normal,
        [1, 2],
        "The derivatives of -KL in mu and in log_sigma2.",
    ),
    Output("neg_kl", ["x"], _kernel.neg_kl, [0], "-KL at log_alpha = x."),
    Output("neg_kl_grad", ["x"], _kernel.neg_kl_grad, [0], "Its derivative."),
    Output("neg_kl_hess", ["x"], _kernel.neg_kl_hess, [0], "Its second derivative."),
)


def source() -> str:
    """The text of the generated file."""
    functions = [device_function(*output) for output in OUTPUTS]
    body = "\n\n".join(["", *functions])
    used = [
        name
        for name in ("divide", "exp", "log", "maximum", "minimum", "nearest")
        if f" {name}(" in body
    ]
    return HEADER.replace("PLACE", ", ".join(used)) + body


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument(
        "--count", action="store_true", help="print the operations an element takes"
    )
    args = parser.parse_args()
    if args.count:
        for output in OUTPUTS:
            counts = operations(output.function, output.arguments, output.pick)
            parts = ", ".join(f"{n} {operation}" for operation, n in counts.most_common())
            print(f"{output.name}: {counts.total()} ({parts})")
        return 0
    text = source()
    if not args.check:
        TARGET.write_text(text)
    elif not TARGET.exists() or TARGET.read_text() != text:
        print(f"{TARGET.name} differs from what _kernel gives: run {COMMAND}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
