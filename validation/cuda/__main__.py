"""Count what the CUDA kernels cost, and measure their accuracy, without a GPU.

    python -m validation.cuda [--check]

Writes ``validation/results/cuda/cuda.json``. With ``--check``, compares with that file, and writes
nothing.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from logunif_kl.cli._output import write_record
from logunif_kl.cli.provenance import provenance
from validation.paths import RESULTS

from . import compiled, count, emulate, roofline

RESULT = RESULTS / "cuda" / "cuda.json"
CAPABILITIES = (80, 90, 100)
HOLDS = ("toolchain", "settings", "counted", "kernels", "roofline", "accuracy")
_COUNTED = (
    "instructions that a warp executes from entry to exit / weights of a thread; the subroutine of "
    "a division for subnormal and infinite divisors is left out, everything else is counted once "
    "and a loop as often as it runs"
)


def kernel_rows(capability: int) -> list[dict[str, Any]]:
    """Count the kernels for a compute capability."""
    rows = []
    for kernel in compiled.KERNELS:
        code = compiled.compiled(kernel, capability)
        found = count.count(code)
        rows.append(
            {
                "capability": capability,
                "kernel": kernel,
                "weights_a_thread": code.weights,
                **found._asdict(),
            }
        )
    return rows


def measured() -> dict[str, Any]:
    """Measure what the report holds, but for where it was made."""
    return counted() | {"accuracy": list(emulate.rows())}


def counted(capabilities: Sequence[int] = CAPABILITIES) -> dict[str, Any]:
    """Count, without the accuracy."""
    gpus = []
    for gpu in roofline.GPUS:
        if gpu.capability in capabilities:
            of_kernel = {
                kernel: count.count(compiled.compiled(kernel, gpu.capability))
                for kernel in compiled.KERNELS
            }
            gpus.append(roofline.row(gpu, of_kernel))
    return {
        "toolchain": compiled.toolchain(),
        "settings": compiled.settings(),
        "counted": _COUNTED,
        "kernels": [row for capability in capabilities for row in kernel_rows(capability)],
        "roofline": gpus,
    }


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Say where two results differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from differences(old.get(key), new.get(key), f"{place}.{key}" if place else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, f"{place}[{i}]")
    elif old != new:
        yield f"{place}: {old} in the report, {new} now"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    if missing := [name for name in ("torch", "triton") if find_spec(name) is None]:
        absent = " and ".join(missing)
        parser.error(f"the kernels cannot be compiled without {absent}; install what is missing")
    began = time.monotonic()
    new = measured()
    for row in new["kernels"]:
        print(
            f"sm_{row['capability']:<3} {row['kernel']:9} {row['instructions']:7.2f} instructions "
            f"a weight, {row['registers']} registers, {row['spills']} spills"
        )
    for row in new["roofline"]:
        step = row["forward_and_backward"]
        print(f"{row['gpu']}: {step['of_bandwidth']:.0%} of its bandwidth, forward and backward")
    for row in new["accuracy"]:
        print(
            f"{row['function']}: {row['ulp']:.2f} ulp with {row['share_of_documented_error']:.0%} "
            "of the errors that the PTX ISA allows the special functions"
        )
    if options.check:
        old = json.loads(RESULT.read_text(encoding="utf-8"))
        read_back = json.loads(json.dumps(new, allow_nan=False))
        found = list(differences({name: old.get(name) for name in new}, read_back))
        for line in found:
            print(f"{RESULT.name}: {line}", file=sys.stderr)
        return 1 if found else 0
    result = {
        **provenance(shlex.join(["python", "-m", "validation.cuda"]), "torch", "triton", of="cuda"),
        "seconds": round(time.monotonic() - began, 1),
        **new,
    }
    RESULT.parent.mkdir(exist_ok=True)
    write_record(str(RESULT), result, finite=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
