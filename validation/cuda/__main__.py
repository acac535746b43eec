"""Count what the CUDA kernels cost, and measure their accuracy, without a GPU.

    python -m validation.cuda

Writes ``validation/results/cuda/cuda.json``.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from validation import record
from validation.output import Record, write_record
from validation.paths import RESULTS

from . import compiled, count, emulate, roofline

RESULT = RESULTS / "cuda" / "cuda.json"
CAPABILITIES = (80, 90, 100)
_COUNTED = (
    "instructions that a warp executes from entry to exit / weights of a thread; the subroutine of "
    "a division for subnormal and infinite divisors is left out, everything else is counted once "
    "and a loop as often as it runs"
)
HOLDS = ("toolchain", "settings", "counted", "kernels", "roofline", "accuracy")


def measured() -> Record:
    codes = {
        (capability, kernel): compiled.compiled(kernel, capability)
        for capability in CAPABILITIES
        for kernel in compiled.KERNELS
    }
    counts = {key: count.count(code) for key, code in codes.items()}
    return {
        "toolchain": compiled.toolchain(),
        "settings": compiled.settings(),
        "counted": _COUNTED,
        "kernels": [
            {
                "capability": capability,
                "kernel": kernel,
                "weights_a_thread": codes[capability, kernel].weights,
                **found._asdict(),
            }
            for (capability, kernel), found in counts.items()
        ],
        "roofline": [
            roofline.row(gpu, {k: counts[gpu.capability, k] for k in compiled.KERNELS})
            for gpu in roofline.GPUS
        ],
        "accuracy": list(emulate.rows()),
    }


def complaints(made: Record, *, replay: bool = True) -> Iterator[str]:
    if replay:
        if missing := _missing():
            yield missing
        else:
            yield from record.computed_again(made, measured(), keys=HOLDS)


def _missing() -> str:
    absent = " and ".join(name for name in ("torch", "triton") if find_spec(name) is None)
    return f"the kernels cannot be compiled without {absent}: install it" if absent else ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args(argv)
    if missing := _missing():
        parser.error(missing)
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
    result = {
        **record.about("python -m validation.cuda", "torch", "triton"),
        "seconds": round(time.monotonic() - began, 1),
        **new,
    }
    write_record(str(RESULT), result, finite=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
