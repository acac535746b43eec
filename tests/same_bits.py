"""What the kernels in C give for fixed arguments, as hashes: the same bits on every processor.

    LOGUNIF_KL_KERNEL=avx2 python -m tests.same_bits > tests/golden/bits_fused.txt
    LOGUNIF_KL_KERNEL=baseline python -m tests.same_bits > tests/golden/bits_unfused.txt

Kernels differ in how many numbers they compute at once, and in whether a product and a sum are
rounded once (``avx512``, ``avx2``, ``neon``) or twice (``baseline``). All NaN count as the same.
"""

import hashlib
from collections.abc import Iterator
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

COUNT = 20_000
UNARY = ("kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl", "neg_kl_grad", "neg_kl_hess", "kl")
OF_TWO = ("neg_kl_normal_and_grad", "neg_kl_normal_value", "kl_normal")
INTEGERS = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16}


def file_of(kernel: str) -> str:
    """Name the golden file that a kernel is held to."""
    return f"bits_{'unfused' if kernel == 'baseline' else 'fused'}.txt"


def integers(stream: int) -> NDArray[np.uint64]:
    """Return random integers by the generator SplitMix64, whose results no library can change."""
    x = (np.arange(COUNT, dtype=np.uint64) + np.uint64(stream * COUNT + 1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def arguments(dtype: str, stream: int) -> list[NDArray]:
    """Return any bit patterns, numbers of ordinary magnitudes, and numbers from -40 to 40."""
    anything = integers(stream).astype(INTEGERS[dtype]).view(dtype)
    fraction = (integers(stream + 1) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    places = (integers(stream + 2) % np.uint64(40)).astype(np.int64) - 26
    return [
        anything,
        np.ldexp(1.0 + fraction, places).astype(dtype),
        (80.0 * fraction - 40.0).astype(dtype),
    ]


def digest(results: list[NDArray]) -> str:
    """Hash the bits of some results."""
    whole = hashlib.sha256()
    for result in results:
        bits = result.view(INTEGERS[result.dtype.name])
        whole.update(np.where(np.isnan(result), ~bits.dtype.type(0), bits).tobytes())
    return whole.hexdigest()[:16]


def lines() -> Iterator[str]:
    """Yield a line for each function and type, by the kernel in use."""
    ufuncs = import_module("logunif_kl._numpy._exact")
    training = import_module("logunif_kl._numpy._float32")
    for dtype in INTEGERS:
        first, second = arguments(dtype, 0), arguments(dtype, 3)
        for name in UNARY:
            yield f"{name} {dtype} {digest([getattr(ufuncs, name)(x) for x in first])}"
        # Means of ordinary magnitudes with logarithms from -40 to 40, and any with any.
        pairs = [(first[0], second[0]), (first[1], second[2]), (first[2], second[2])]
        for name in OF_TWO:
            results = [getattr(ufuncs, name)(*pair) for pair in pairs]
            parts = [r for each in results for r in (each if isinstance(each, tuple) else (each,))]
            yield f"{name} {dtype} {digest(parts)}"
        if dtype == "float32":
            yield f"training value {digest([training.value(*pair) for pair in pairs])}"
            found = [training.gradient(np.float32(0.75), *pair) for pair in pairs]
            yield f"training gradient {digest([part for each in found for part in each])}"


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        print(*lines(), sep="\n")
