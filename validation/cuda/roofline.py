"""What limits the kernels on a GPU: its memory, its schedulers or one of its arithmetic units.

All numbers of a GPU come from a data sheet or the programming guide, at the highest clock; none is
measured. With a GPU, `logunif-kl bench --torch --cuda` measures.
"""

from collections.abc import Mapping
from typing import NamedTuple

from validation.output import Record

from .count import Count

# Bytes read and written per weight, in float32 and with one upstream number for all weights.
BYTES = {"value": 12, "value_sum": 8, "gradient": 16}
STEP = ("value_sum", "gradient")
"""The kernels of a training step: the sum of the penalty, then both derivatives."""
USED = 0.85
"""The share of a GPU's highest rates that is assumed for the cautious estimate.

Clocks fall under load, and no scheduler issues in every cycle. On an H100 it makes 2.9e13 lanes a
second, the rate that the target of 100 instructions a weight is reckoned with.
"""


class GPU(NamedTuple):
    name: str
    capability: int
    processors: int
    """Streaming multiprocessors, each with four schedulers of 32 lanes."""
    clock: float
    """The highest, in Hz."""
    bandwidth: float
    """Of its memory, in bytes a second."""
    fp32: int
    """Lanes of multiplication and addition in each processor."""
    source: str


_GUIDE = "lanes from the table of arithmetic throughput in the CUDA C++ Programming Guide"
_A100 = f"NVIDIA A100 data sheet (2,039 GB/s, 19.5 TFLOPS in FP32) and white paper; {_GUIDE}"
_H100 = f"NVIDIA H100 data sheet (3.35 TB/s, 67 TFLOPS in FP32) and white paper; {_GUIDE}"
_H200 = f"NVIDIA H200 data sheet (4.8 TB/s, 67 TFLOPS in FP32); {_GUIDE}"
_B200 = f"NVIDIA HGX B200 data sheet (8 GPUs: 62 TB/s, 600 TFLOPS in FP32); {_GUIDE}"
GPUS = (
    GPU("A100 SXM 80 GB", 80, 108, 1.41e9, 2.039e12, 64, _A100),
    GPU("H100 SXM", 90, 132, 1.98e9, 3.35e12, 128, _H100),
    GPU("H200 SXM", 90, 132, 1.98e9, 4.8e12, 128, _H200),
    GPU("B200", 100, 148, 1.98e9, 7.75e12, 128, _B200),
)

_SCHEDULED = 4 * 32
_SPECIAL = 16
_ALU = 64
_ALU_KINDS = ("compare and select", "integer and logic")


def seconds(gpu: GPU, kernel: str, count: Count, used: float = 1.0) -> dict[str, float]:
    """Return the time per weight for each possible limit.

    A packed instruction is issued once, and computes two results.
    """
    lane = gpu.processors * gpu.clock * used
    packed = count.lanes - count.instructions
    work = {
        "schedulers": count.instructions / _SCHEDULED,
        "multiply and add": (count.kinds["multiply and add"] + packed) / gpu.fp32,
        "compare, select, integer": sum(count.kinds.get(kind, 0.0) for kind in _ALU_KINDS) / _ALU,
        "special functions": count.kinds.get("special function", 0.0) / _SPECIAL,
    }
    found = {name: clocks / lane for name, clocks in work.items()}
    return {"memory": BYTES[kernel] / gpu.bandwidth} | found


def fraction(gpu: GPU, counts: Mapping[str, Count], used: float = 1.0) -> float:
    """Return the share of the memory bandwidth that a step reaches, at most 1.

    The kernels run one after the other, and each takes the largest of its `seconds`.
    """
    times = [seconds(gpu, kernel, counts[kernel], used) for kernel in STEP]
    return sum(time["memory"] for time in times) / sum(max(time.values()) for time in times)


def row(gpu: GPU, counts: Mapping[str, Count]) -> Record:
    kernels = {}
    for kernel in BYTES:
        times = seconds(gpu, kernel, counts[kernel])
        kernels[kernel] = {
            "bytes": BYTES[kernel],
            "picoseconds": {name: round(1e12 * time, 3) for name, time in times.items()},
            "bound": max(times, key=lambda name: times[name]),
        }
    return {
        "gpu": gpu.name,
        "capability": gpu.capability,
        "processors": gpu.processors,
        "clock_ghz": gpu.clock / 1e9,
        "terabytes_per_second": gpu.bandwidth / 1e12,
        "lane_instructions_per_second": gpu.processors * gpu.clock * _SCHEDULED,
        "source": gpu.source,
        "kernels": kernels,
        "forward_and_backward": {
            "instructions": sum(counts[kernel].instructions for kernel in STEP),
            "bytes": sum(BYTES[kernel] for kernel in STEP),
            "of_bandwidth": round(fraction(gpu, counts), 4),
            f"of_bandwidth_at_{USED}": round(fraction(gpu, counts, USED), 4),
        },
    }
