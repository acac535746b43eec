"""The worst errors found, in units in the last place, by function, type and kernel.

An ``exhaustive`` claim comes from every input of the type, so its figure is an upper bound. A
``search`` claim is the worst error found by sampling and hill climbing, so some input may be worse.
``proved`` is an upper bound, which ``python -m validation.proofs`` proves for float64 kernels in C.
All figures are rounded up. If a framework replaces subnormal numbers by 0, the range says so.

Each name of a kernel stands for one implementation:

- ``avx512``, ``avx2``, ``neon``, ``baseline``, ``python``: the functions of NumPy's arrays.
  ``neon``, for AArch64, was measured under emulation with fewer inputs.
- ``arrays``: the functions of array-API arrays, measured on array-api-strict.
- ``torch``: this package's arithmetic on PyTorch tensors in eager mode; for float32 functions of
  mean and variance, the kernels in C.
- ``inductor``: the same arithmetic, compiled by ``torch.compile``.
- ``triton``: the program for CUDA, in Triton's interpreter. There are no claims for it yet.
- ``jax``: the same arithmetic on JAX arrays, jitted on the CPU; for float32 `neg_kl`, the C kernel.
- ``tensorflow``: the public functions in eager mode.

In the half types, the public functions are measured on every framework.
"""

# `python -m validation.accuracy claims` writes the rows, from validation/results/accuracy/*.json.
# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CLAIMS", "NUMPY_KERNELS", "Claim", "worst"]

NUMPY_KERNELS = ("avx512", "avx2", "neon", "baseline", "python")


class Claim(NamedTuple):
    """The largest error found, where, and by which search; and a proved upper bound, or None.

    ``proved`` holds for every argument.
    """

    function: str
    dtype: str
    kernel: str
    range: str
    ulp: float
    inputs: tuple[str, ...]
    method: str
    tried: int
    proved: float | None = None


def worst(function: str, dtype: str, kernel: str | None = None) -> Claim:
    """Return the claim with the largest error, for one kernel or for all NumPy kernels.

    Raises
    ------
    KeyError
        If there is no claim for that function, type and kernel.

    Examples
    --------
    >>> from logunif_kl import accuracy
    >>> accuracy.worst("kl_gap", "float64").ulp < 1.5
    True
    """
    kernels = NUMPY_KERNELS if kernel is None else (kernel,)
    rows = [c for c in CLAIMS if (c.function, c.dtype) == (function, dtype)]
    rows = [c for c in rows if c.kernel in kernels]
    if not rows:
        of = "NumPy's kernels" if kernel is None else f"kernel {kernel}"
        raise KeyError(f"there is no claim for {function} in {dtype} and {of}: see CLAIMS")
    return max(rows, key=lambda claim: claim.ulp)


# fmt: off
CLAIMS: tuple[Claim, ...] = (
    Claim("kl_gap", "bfloat16", "avx2", "u in [0, inf]", 0.5, ("0x1.6200000000000p+10",), "exhaustive", 65536),
    Claim("kl_gap", "bfloat16", "avx512", "u in [0, inf]", 0.5, ("0x1.6200000000000p+10",), "exhaustive", 65536),
    Claim("kl_gap", "bfloat16", "baseline", "u in [0, inf]", 0.5, ("0x1.6200000000000p+10",), "exhaustive", 65536),
    Claim("kl_gap", "bfloat16", "neon", "u in [0, inf]", 0.5, ("0x1.6200000000000p+10",), "exhaustive", 65536),
    Claim("kl_gap", "bfloat16", "python", "u in [0, inf]", 0.5, ("0x1.6200000000000p+10",), "exhaustive", 65536),
    Claim("kl_gap", "float16", "avx2", "u in [0, inf]", 0.501, ("0x1.d6c0000000000p-8",), "exhaustive", 65536),
    Claim("kl_gap", "float16", "avx512", "u in [0, inf]", 0.501, ("0x1.d6c0000000000p-8",), "exhaustive", 65536),
    Claim("kl_gap", "float16", "baseline", "u in [0, inf]", 0.501, ("0x1.d6c0000000000p-8",), "exhaustive", 65536),
    Claim("kl_gap", "float16", "neon", "u in [0, inf]", 0.501, ("0x1.d6c0000000000p-8",), "exhaustive", 65536),
    Claim("kl_gap", "float16", "python", "u in [0, inf]", 0.5, ("0x1.5300000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap", "float32", "arrays", "u in [0, inf]", 0.5, ("0x1.e0001e0000000p-18",), "search", 18142028),
    Claim("kl_gap", "float32", "avx2", "u in [0, inf]", 0.502, ("0x1.3113020000000p-1",), "exhaustive", 4294967296),
    Claim("kl_gap", "float32", "avx512", "u in [0, inf]", 0.502, ("0x1.3113020000000p-1",), "exhaustive", 4294967296),
    Claim("kl_gap", "float32", "baseline", "u in [0, inf]", 0.502, ("0x1.3113020000000p-1",), "exhaustive", 4294967296),
    Claim("kl_gap", "float32", "neon", "u in [0, inf]", 0.502, ("0x1.3113020000000p-1",), "search", 1780588),
    Claim("kl_gap", "float32", "python", "u in [0, inf]", 0.5, ("0x1.e0001e0000000p-18",), "search", 18142028),
    Claim("kl_gap", "float64", "avx2", "u in [0, inf]", 0.836, ("0x1.8fb37ebb1aa1dp+0",), "search", 18182755, 0.8659),
    Claim("kl_gap", "float64", "avx512", "u in [0, inf]", 0.836, ("0x1.8fb37ebb1aa1dp+0",), "search", 18182755, 0.8659),
    Claim("kl_gap", "float64", "baseline", "u in [0, inf]", 0.918, ("0x1.8f96be7809068p+0",), "search", 18178435, 0.9565),
    Claim("kl_gap", "float64", "neon", "u in [0, inf]", 0.836, ("0x1.8fb37ebb1aa1dp+0",), "search", 1817795, 0.8659),
    Claim("kl_gap", "float64", "python", "u in [0, inf]", 1.031, ("0x1.f767b90285667p+2",), "search", 17655363),
    Claim("kl_gap_grad", "bfloat16", "avx2", "u in [0, inf]", 0.5, ("0x1.9e00000000000p+0",), "exhaustive", 65536),
    Claim("kl_gap_grad", "bfloat16", "avx512", "u in [0, inf]", 0.5, ("0x1.9e00000000000p+0",), "exhaustive", 65536),
    Claim("kl_gap_grad", "bfloat16", "baseline", "u in [0, inf]", 0.5, ("0x1.9e00000000000p+0",), "exhaustive", 65536),
    Claim("kl_gap_grad", "bfloat16", "neon", "u in [0, inf]", 0.5, ("0x1.9e00000000000p+0",), "exhaustive", 65536),
    Claim("kl_gap_grad", "bfloat16", "python", "u in [0, inf]", 0.5, ("0x1.9e00000000000p+0",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float16", "avx2", "u in [0, inf]", 0.501, ("0x1.bc80000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float16", "avx512", "u in [0, inf]", 0.501, ("0x1.bc80000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float16", "baseline", "u in [0, inf]", 0.501, ("0x1.bc80000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float16", "neon", "u in [0, inf]", 0.501, ("0x1.bc80000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float16", "python", "u in [0, inf]", 0.5, ("0x1.7f80000000000p-3",), "exhaustive", 65536),
    Claim("kl_gap_grad", "float32", "arrays", "u in [0, inf]", 0.5, ("0x1.8000000000000p-25",), "search", 18170316),
    Claim("kl_gap_grad", "float32", "avx2", "u in [0, inf]", 0.501, ("0x1.5602260000000p+1",), "exhaustive", 4294967296),
    Claim("kl_gap_grad", "float32", "avx512", "u in [0, inf]", 0.501, ("0x1.5602260000000p+1",), "exhaustive", 4294967296),
    Claim("kl_gap_grad", "float32", "baseline", "u in [0, inf]", 0.501, ("0x1.5602260000000p+1",), "exhaustive", 4294967296),
    Claim("kl_gap_grad", "float32", "neon", "u in [0, inf]", 0.501, ("0x1.5602260000000p+1",), "search", 1781228),
    Claim("kl_gap_grad", "float32", "python", "u in [0, inf]", 0.5, ("0x1.8000000000000p-25",), "search", 18170316),
    Claim("kl_gap_grad", "float64", "avx2", "u in [0, inf]", 0.753, ("0x1.8f6a1e9c45a4dp+1",), "search", 18184993, 0.7632),
    Claim("kl_gap_grad", "float64", "avx512", "u in [0, inf]", 0.753, ("0x1.8f6a1e9c45a4dp+1",), "search", 18184993, 0.7632),
    Claim("kl_gap_grad", "float64", "baseline", "u in [0, inf]", 0.821, ("0x1.1ecfd4dd211cdp+0",), "search", 18179809, 0.8377),
    Claim("kl_gap_grad", "float64", "neon", "u in [0, inf]", 0.753, ("0x1.8f6a1e9c45a4dp+1",), "search", 1817378, 0.7632),
    Claim("kl_gap_grad", "float64", "python", "u in [0, inf]", 0.821, ("0x1.1ecfd4dd211cdp+0",), "search", 18166306),
    Claim("kl_gap_hess", "bfloat16", "avx2", "u in [0, inf]", 0.5, ("0x1.ee00000000000p+15",), "exhaustive", 65536),
    Claim("kl_gap_hess", "bfloat16", "avx512", "u in [0, inf]", 0.5, ("0x1.ee00000000000p+15",), "exhaustive", 65536),
    Claim("kl_gap_hess", "bfloat16", "baseline", "u in [0, inf]", 0.5, ("0x1.ee00000000000p+15",), "exhaustive", 65536),
    Claim("kl_gap_hess", "bfloat16", "neon", "u in [0, inf]", 0.5, ("0x1.ee00000000000p+15",), "exhaustive", 65536),
    Claim("kl_gap_hess", "bfloat16", "python", "u in [0, inf]", 0.5, ("0x1.ee00000000000p+15",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float16", "avx2", "u in [0, inf]", 0.5, ("0x1.7d40000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float16", "avx512", "u in [0, inf]", 0.5, ("0x1.7d40000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float16", "baseline", "u in [0, inf]", 0.5, ("0x1.7d40000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float16", "neon", "u in [0, inf]", 0.5, ("0x1.7d40000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float16", "python", "u in [0, inf]", 0.5, ("0x1.7d40000000000p-5",), "exhaustive", 65536),
    Claim("kl_gap_hess", "float32", "arrays", "u in [0, inf]", 0.5, ("0x1.4000000000000p-26",), "search", 18174156),
    Claim("kl_gap_hess", "float32", "avx2", "u in [0, inf]", 0.505, ("0x1.237f460000000p+3",), "exhaustive", 4294967296),
    Claim("kl_gap_hess", "float32", "avx512", "u in [0, inf]", 0.505, ("0x1.237f460000000p+3",), "exhaustive", 4294967296),
    Claim("kl_gap_hess", "float32", "baseline", "u in [0, inf]", 0.505, ("0x1.237f460000000p+3",), "exhaustive", 4294967296),
    Claim("kl_gap_hess", "float32", "neon", "u in [0, inf]", 0.505, ("0x1.237f460000000p+3",), "search", 1790508),
    Claim("kl_gap_hess", "float32", "python", "u in [0, inf]", 0.5, ("0x1.4000000000000p-26",), "search", 18174156),
    Claim("kl_gap_hess", "float64", "avx2", "u in [0, inf]", 0.831, ("0x1.fe444af2ac310p-1",), "search", 18182722, 0.8469),
    Claim("kl_gap_hess", "float64", "avx512", "u in [0, inf]", 0.831, ("0x1.fe444af2ac310p-1",), "search", 18182722, 0.8469),
    Claim("kl_gap_hess", "float64", "baseline", "u in [0, inf]", 0.916, ("0x1.ff68267e42aafp-1",), "search", 18184482, 0.9295),
    Claim("kl_gap_hess", "float64", "neon", "u in [0, inf]", 0.831, ("0x1.fe444af2ac310p-1",), "search", 1817123, 0.8469),
    Claim("kl_gap_hess", "float64", "python", "u in [0, inf]", 0.916, ("0x1.ff68267e42aafp-1",), "search", 18183331),
    Claim("neg_kl", "bfloat16", "avx2", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "avx512", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "baseline", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "inductor", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "neon", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "python", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "bfloat16", "torch", "log_alpha in [-inf, inf]", 0.5, ("-0x1.0400000000000p-4",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "avx2", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3d00000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "avx512", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3d00000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "baseline", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3d00000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "inductor", "log_alpha in [-inf, inf]", 0.501, ("0x1.8580000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("0x1.d440000000000p+2",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "neon", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3d00000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "python", "log_alpha in [-inf, inf]", 0.5, ("-0x1.5480000000000p+0",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("0x1.8580000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float16", "torch", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3d00000000000p-10",), "exhaustive", 65536),
    Claim("neg_kl", "float32", "arrays", "log_alpha in [-inf, inf]", 0.501, ("-0x1.1e4aa40000000p-25",), "search", 18140089),
    Claim("neg_kl", "float32", "avx2", "log_alpha in [-inf, inf]", 0.504, ("0x1.69ee1c0000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl", "float32", "avx512", "log_alpha in [-inf, inf]", 0.504, ("0x1.69ee1c0000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl", "float32", "baseline", "log_alpha in [-inf, inf]", 0.504, ("0x1.69ee1c0000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl", "float32", "inductor", "log_alpha in [-inf, inf]", 2.28, ("-0x1.afe6fe0000000p-1",), "search", 18142521),
    Claim("neg_kl", "float32", "jax", "log_alpha in [-inf, inf], subnormal results 0", 3.098, ("-0x1.413e7a0000000p+0",), "search", 18184553),
    Claim("neg_kl", "float32", "neon", "log_alpha in [-inf, inf]", 0.504, ("0x1.69ee1c0000000p+1",), "search", 1783321),
    Claim("neg_kl", "float32", "python", "log_alpha in [-inf, inf]", 0.501, ("-0x1.1e4aa40000000p-25",), "search", 18140089),
    Claim("neg_kl", "float32", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 2.285, ("-0x1.b6e4b00000000p-1",), "search", 18162393),
    Claim("neg_kl", "float32", "torch", "log_alpha in [-inf, inf]", 2.311, ("-0x1.b5306a0000000p-1",), "search", 18163801),
    Claim("neg_kl", "float64", "avx2", "log_alpha in [-inf, inf]", 0.831, ("-0x1.20ed624b15331p+0",), "search", 18180534, 1.0045),
    Claim("neg_kl", "float64", "avx512", "log_alpha in [-inf, inf]", 0.831, ("-0x1.20ed624b15331p+0",), "search", 18180534, 1.0045),
    Claim("neg_kl", "float64", "baseline", "log_alpha in [-inf, inf]", 0.921, ("-0x1.20f4a725c5ae0p+0",), "search", 18179478, 1.0947),
    Claim("neg_kl", "float64", "inductor", "log_alpha in [-inf, inf]", 1.541, ("0x1.bafa69490f2a5p+1",), "search", 9179268),
    Claim("neg_kl", "float64", "jax", "log_alpha in [-inf, inf], subnormal results 0", 2.263, ("0x1.9fc7c79b19b95p+4",), "search", 9146115),
    Claim("neg_kl", "float64", "neon", "log_alpha in [-inf, inf]", 0.831, ("-0x1.20ed624b15331p+0",), "search", 299959, 1.0045),
    Claim("neg_kl", "float64", "python", "log_alpha in [-inf, inf]", 1.644, ("0x1.07f171219eeb6p+1",), "search", 18169284),
    Claim("neg_kl", "float64", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 2.263, ("0x1.9fc7c79b19b95p+4",), "search", 9146788),
    Claim("neg_kl", "float64", "torch", "log_alpha in [-inf, inf]", 1.644, ("0x1.07f171219eeb6p+1",), "search", 9166084),
    Claim("neg_kl_grad", "bfloat16", "avx2", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "avx512", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "baseline", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "inductor", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "neon", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "python", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "bfloat16", "torch", "log_alpha in [-inf, inf]", 0.5, ("0x1.6200000000000p-12",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "avx2", "log_alpha in [-inf, inf]", 0.501, ("-0x1.9380000000000p-9",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "avx512", "log_alpha in [-inf, inf]", 0.501, ("-0x1.9380000000000p-9",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "baseline", "log_alpha in [-inf, inf]", 0.501, ("-0x1.9380000000000p-9",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "inductor", "log_alpha in [-inf, inf]", 0.501, ("-0x1.3b00000000000p-13",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("-0x1.3b00000000000p-13",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "neon", "log_alpha in [-inf, inf]", 0.501, ("-0x1.9380000000000p-9",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "python", "log_alpha in [-inf, inf]", 0.5, ("-0x1.3ac0000000000p-13",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("-0x1.3b00000000000p-13",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float16", "torch", "log_alpha in [-inf, inf]", 0.501, ("-0x1.9380000000000p-9",), "exhaustive", 65536),
    Claim("neg_kl_grad", "float32", "arrays", "log_alpha in [-inf, inf]", 0.5, ("-0x1.5edc120000000p-22",), "search", 18132536),
    Claim("neg_kl_grad", "float32", "avx2", "log_alpha in [-inf, inf]", 0.504, ("0x1.69e1860000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_grad", "float32", "avx512", "log_alpha in [-inf, inf]", 0.504, ("0x1.69e1860000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_grad", "float32", "baseline", "log_alpha in [-inf, inf]", 0.504, ("0x1.69e1860000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_grad", "float32", "inductor", "log_alpha in [-inf, inf]", 2.809, ("-0x1.9d75420000000p-2",), "search", 18178264),
    Claim("neg_kl_grad", "float32", "jax", "log_alpha in [-inf, inf], subnormal results 0", 2.677, ("-0x1.98304e0000000p-2",), "search", 18177816),
    Claim("neg_kl_grad", "float32", "neon", "log_alpha in [-inf, inf]", 0.504, ("0x1.69e1860000000p+1",), "search", 1797176),
    Claim("neg_kl_grad", "float32", "python", "log_alpha in [-inf, inf]", 0.5, ("-0x1.5edc120000000p-22",), "search", 18132536),
    Claim("neg_kl_grad", "float32", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 2.716, ("-0x1.aa4c360000000p-2",), "search", 18176120),
    Claim("neg_kl_grad", "float32", "torch", "log_alpha in [-inf, inf]", 2.716, ("-0x1.aa4c360000000p-2",), "search", 18167320),
    Claim("neg_kl_grad", "float64", "avx2", "log_alpha in [-inf, inf]", 0.797, ("-0x1.9e88ab40a7aafp-1",), "search", 18170192, 0.8732),
    Claim("neg_kl_grad", "float64", "avx512", "log_alpha in [-inf, inf]", 0.797, ("-0x1.9e88ab40a7aafp-1",), "search", 18170192, 0.8732),
    Claim("neg_kl_grad", "float64", "baseline", "log_alpha in [-inf, inf]", 0.912, ("-0x1.9e7b43ee34d66p-1",), "search", 18182480, 0.9915),
    Claim("neg_kl_grad", "float64", "inductor", "log_alpha in [-inf, inf]", 1.499, ("0x1.62d27e08ea6c1p+2",), "search", 9174271),
    Claim("neg_kl_grad", "float64", "jax", "log_alpha in [-inf, inf], subnormal results 0", 2.24, ("0x1.ed80b6393a984p+4",), "search", 9154174),
    Claim("neg_kl_grad", "float64", "neon", "log_alpha in [-inf, inf]", 0.797, ("-0x1.9e88ab40a7aafp-1",), "search", 297488, 0.8732),
    Claim("neg_kl_grad", "float64", "python", "log_alpha in [-inf, inf]", 1.624, ("0x1.366580d7847dep+2",), "search", 18173855),
    Claim("neg_kl_grad", "float64", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 2.24, ("0x1.ed80b6393a984p+4",), "search", 9151295),
    Claim("neg_kl_grad", "float64", "torch", "log_alpha in [-inf, inf]", 1.624, ("0x1.366580d7847dep+2",), "search", 9171807),
    Claim("neg_kl_hess", "bfloat16", "avx2", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "avx512", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "baseline", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "inductor", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "neon", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "python", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "bfloat16", "torch", "log_alpha in [-inf, inf]", 0.5, ("-0x1.da00000000000p-7",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "avx2", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "avx512", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "baseline", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "inductor", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "jax", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "neon", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "python", "log_alpha in [-inf, inf]", 0.5, ("0x1.2100000000000p-8",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float16", "torch", "log_alpha in [-inf, inf]", 0.501, ("0x1.6c80000000000p-5",), "exhaustive", 65536),
    Claim("neg_kl_hess", "float32", "arrays", "log_alpha in [-inf, inf]", 0.501, ("0x1.3fbdee0000000p-20",), "search", 18151482),
    Claim("neg_kl_hess", "float32", "avx2", "log_alpha in [-inf, inf]", 0.505, ("-0x1.d8c2c00000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_hess", "float32", "avx512", "log_alpha in [-inf, inf]", 0.505, ("-0x1.d8c2c00000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_hess", "float32", "baseline", "log_alpha in [-inf, inf]", 0.505, ("-0x1.d8c2c00000000p+1",), "exhaustive", 4294967296),
    Claim("neg_kl_hess", "float32", "inductor", "log_alpha in [-inf, inf]", 3.517, ("0x1.c080f00000000p-7",), "search", 18182970),
    Claim("neg_kl_hess", "float32", "jax", "log_alpha in [-inf, inf], subnormal results 0", 3.231, ("0x1.8068140000000p-11",), "search", 18183066),
    Claim("neg_kl_hess", "float32", "neon", "log_alpha in [-inf, inf]", 0.505, ("-0x1.d8c2c00000000p+1",), "search", 588634),
    Claim("neg_kl_hess", "float32", "python", "log_alpha in [-inf, inf]", 0.501, ("0x1.3fbdee0000000p-20",), "search", 18151482),
    Claim("neg_kl_hess", "float32", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 3.511, ("0x1.6e78640000000p-12",), "search", 18183098),
    Claim("neg_kl_hess", "float32", "torch", "log_alpha in [-inf, inf]", 3.525, ("0x1.c080ec0000000p-7",), "search", 18183162),
    Claim("neg_kl_hess", "float64", "avx2", "log_alpha in [-inf, inf]", 0.934, ("-0x1.f9b37b3af0e04p+0",), "search", 18174540, 0.9626),
    Claim("neg_kl_hess", "float64", "avx512", "log_alpha in [-inf, inf]", 0.934, ("-0x1.f9b37b3af0e04p+0",), "search", 18174540, 0.9626),
    Claim("neg_kl_hess", "float64", "baseline", "log_alpha in [-inf, inf]", 1.091, ("-0x1.f9e805c381eb8p+0",), "search", 18179180, 1.1148),
    Claim("neg_kl_hess", "float64", "inductor", "log_alpha in [-inf, inf]", 2.188, ("-0x1.5a4a98364f6ccp+1",), "search", 9185898),
    Claim("neg_kl_hess", "float64", "jax", "log_alpha in [-inf, inf], subnormal results 0", 3.418, ("-0x1.90f102242bb9ap+1",), "search", 9183884),
    Claim("neg_kl_hess", "float64", "neon", "log_alpha in [-inf, inf]", 0.934, ("-0x1.f9b37b3af0e04p+0",), "search", 296141, 0.9626),
    Claim("neg_kl_hess", "float64", "python", "log_alpha in [-inf, inf]", 2.355, ("-0x1.5e5400f589e95p+1",), "search", 18186412),
    Claim("neg_kl_hess", "float64", "tensorflow", "log_alpha in [-inf, inf], subnormal results 0", 3.418, ("-0x1.90f102242bb9ap+1",), "search", 9183852),
    Claim("neg_kl_hess", "float64", "torch", "log_alpha in [-inf, inf]", 2.355, ("-0x1.5e5400f589e95p+1",), "search", 9186090),
    Claim("neg_kl_normal", "float16", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.c100000000000p+11", "0x1.c980000000000p+3",), "search", 18201547),
    Claim("neg_kl_normal", "float16", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.c100000000000p+11", "0x1.c980000000000p+3",), "search", 18201547),
    Claim("neg_kl_normal", "float16", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.c100000000000p+11", "0x1.c980000000000p+3",), "search", 18201547),
    Claim("neg_kl_normal", "float16", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.eb40000000000p+9", "0x1.7dc0000000000p+3",), "search", 18201658),
    Claim("neg_kl_normal", "float16", "neon", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.c100000000000p+11", "0x1.c980000000000p+3",), "search", 319578),
    Claim("neg_kl_normal", "float16", "python", "mu, log_sigma2 in [-inf, inf]", 0.5, ("-0x1.f440000000000p+2", "-0x1.7900000000000p+3",), "search", 18201402),
    Claim("neg_kl_normal", "float16", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.eb40000000000p+9", "0x1.7dc0000000000p+3",), "search", 18201466),
    Claim("neg_kl_normal", "float16", "torch", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.eb40000000000p+9", "0x1.7dc0000000000p+3",), "search", 18201690),
    Claim("neg_kl_normal", "float32", "arrays", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.75192e0000000p-4", "-0x1.d0ba760000000p+4",), "search", 18200771),
    Claim("neg_kl_normal", "float32", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.505, ("-0x1.4876f20000000p-2", "0x1.f3d6c80000000p-2",), "search", 18201264),
    Claim("neg_kl_normal", "float32", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.505, ("-0x1.4876f20000000p-2", "0x1.f3d6c80000000p-2",), "search", 18201264),
    Claim("neg_kl_normal", "float32", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.505, ("-0x1.4876f20000000p-2", "0x1.f3d6c80000000p-2",), "search", 18201264),
    Claim("neg_kl_normal", "float32", "inductor", "mu, log_sigma2 in [-inf, inf]", 3.593, ("-0x1.a7bb020000000p-11", "-0x1.f5371a0000000p+3",), "search", 18200867),
    Claim("neg_kl_normal", "float32", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.593, ("-0x1.a7bb020000000p-11", "-0x1.f5371a0000000p+3",), "search", 18200834),
    Claim("neg_kl_normal", "float32", "neon", "mu, log_sigma2 in [-inf, inf]", 0.505, ("-0x1.4876f20000000p-2", "0x1.f3d6c80000000p-2",), "search", 319555),
    Claim("neg_kl_normal", "float32", "python", "mu, log_sigma2 in [-inf, inf]", 0.501, ("0x1.75192e0000000p-4", "-0x1.d0ba760000000p+4",), "search", 18200771),
    Claim("neg_kl_normal", "float32", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.661, ("0x1.7324fc0000000p-10", "-0x1.d24f460000000p+3",), "search", 18200962),
    Claim("neg_kl_normal", "float32", "torch", "mu, log_sigma2 in [-inf, inf]", 3.593, ("-0x1.a7bb020000000p-11", "-0x1.f5371a0000000p+3",), "search", 18200675),
    Claim("neg_kl_normal", "float64", "avx2", "mu, log_sigma2 in [-inf, inf]", 1.37, ("-0x1.77b1d6898bc4cp+0", "-0x1.b871ac99135b4p+0",), "search", 18200460, 1.4893),
    Claim("neg_kl_normal", "float64", "avx512", "mu, log_sigma2 in [-inf, inf]", 1.37, ("-0x1.77b1d6898bc4cp+0", "-0x1.b871ac99135b4p+0",), "search", 18200460, 1.4893),
    Claim("neg_kl_normal", "float64", "baseline", "mu, log_sigma2 in [-inf, inf]", 1.37, ("-0x1.77b1d6898bc4cp+0", "-0x1.b871ac99135b4p+0",), "search", 18200716, 1.4896),
    Claim("neg_kl_normal", "float64", "inductor", "mu, log_sigma2 in [-inf, inf]", 3.002, ("0x1.de53a9b3e5254p+12", "0x1.5fb4feb1403dcp+9",), "search", 9199260),
    Claim("neg_kl_normal", "float64", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.977, ("-0x1.a83cc46b86831p+3", "0x1.5c77229d76f4cp+9",), "search", 9199384),
    Claim("neg_kl_normal", "float64", "neon", "mu, log_sigma2 in [-inf, inf]", 1.37, ("-0x1.77b1d6898bc4cp+0", "-0x1.b871ac99135b4p+0",), "search", 318860, 1.4893),
    Claim("neg_kl_normal", "float64", "python", "mu, log_sigma2 in [-inf, inf]", 3.008, ("-0x1.ef26ec060ca11p-10", "0x1.31fee88b4f6ddp+9",), "search", 18199513),
    Claim("neg_kl_normal", "float64", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.977, ("-0x1.a83ccf27d056ap+3", "0x1.5c77229d76f4cp+9",), "search", 9199352),
    Claim("neg_kl_normal", "float64", "torch", "mu, log_sigma2 in [-inf, inf]", 3.008, ("-0x1.ef26ec1a10bbdp-10", "0x1.31fee88b4f6ddp+9",), "search", 9199132),
    Claim("neg_kl_normal.dmu", "float16", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.f040000000000p+5", "-0x1.b1c0000000000p+2",), "search", 18201736),
    Claim("neg_kl_normal.dmu", "float16", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.f040000000000p+5", "-0x1.b1c0000000000p+2",), "search", 18201736),
    Claim("neg_kl_normal.dmu", "float16", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.f040000000000p+5", "-0x1.b1c0000000000p+2",), "search", 18201736),
    Claim("neg_kl_normal.dmu", "float16", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.1b00000000000p-12", "-0x1.5e80000000000p+4",), "search", 18201463),
    Claim("neg_kl_normal.dmu", "float16", "neon", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.f040000000000p+5", "-0x1.b1c0000000000p+2",), "search", 319319),
    Claim("neg_kl_normal.dmu", "float16", "python", "mu, log_sigma2 in [-inf, inf]", 0.5, ("0x1.8f40000000000p-1", "0x1.eec0000000000p+1",), "search", 18200503),
    Claim("neg_kl_normal.dmu", "float16", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.5580000000000p-3", "0x1.bf40000000000p+0",), "search", 18201399),
    Claim("neg_kl_normal.dmu", "float16", "torch", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.1b00000000000p-12", "-0x1.5e80000000000p+4",), "search", 18201463),
    Claim("neg_kl_normal.dmu", "float32", "arrays", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.1233100000000p+2", "-0x1.a158260000000p+4",), "search", 18202670),
    Claim("neg_kl_normal.dmu", "float32", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.cfa0c80000000p-7", "-0x1.6a75bc0000000p+2",), "search", 18201307),
    Claim("neg_kl_normal.dmu", "float32", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.cfa0c80000000p-7", "-0x1.6a75bc0000000p+2",), "search", 18201307),
    Claim("neg_kl_normal.dmu", "float32", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.cfa0c80000000p-7", "-0x1.6a75bc0000000p+2",), "search", 18201307),
    Claim("neg_kl_normal.dmu", "float32", "inductor", "mu, log_sigma2 in [-inf, inf]", 3.221, ("-0x1.e641e80000000p-14", "-0x1.28bd380000000p+4",), "search", 18200686),
    Claim("neg_kl_normal.dmu", "float32", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.221, ("-0x1.e641e80000000p-14", "-0x1.28bd380000000p+4",), "search", 18200653),
    Claim("neg_kl_normal.dmu", "float32", "neon", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.cfa0c80000000p-7", "-0x1.6a75bc0000000p+2",), "search", 320878),
    Claim("neg_kl_normal.dmu", "float32", "python", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.1233100000000p+2", "-0x1.a158260000000p+4",), "search", 18202670),
    Claim("neg_kl_normal.dmu", "float32", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.258, ("-0x1.ea3dce0000000p-1", "-0x1.f2444c0000000p-2",), "search", 18200077),
    Claim("neg_kl_normal.dmu", "float32", "torch", "mu, log_sigma2 in [-inf, inf]", 3.221, ("-0x1.e641e80000000p-14", "-0x1.28bd380000000p+4",), "search", 18200526),
    Claim("neg_kl_normal.dmu", "float64", "avx2", "mu, log_sigma2 in [-inf, inf]", 1.218, ("-0x1.236a1b881d521p-14", "-0x1.3f1ba41283741p+4",), "search", 18200608, 1.3893),
    Claim("neg_kl_normal.dmu", "float64", "avx512", "mu, log_sigma2 in [-inf, inf]", 1.218, ("-0x1.236a1b881d521p-14", "-0x1.3f1ba41283741p+4",), "search", 18200608, 1.3893),
    Claim("neg_kl_normal.dmu", "float64", "baseline", "mu, log_sigma2 in [-inf, inf]", 1.432, ("-0x1.21ebfcd5fb90cp-11", "-0x1.f9f1c75f03b49p+3",), "search", 18200512, 2.067),
    Claim("neg_kl_normal.dmu", "float64", "inductor", "mu, log_sigma2 in [-inf, inf]", 3.076, ("0x1.3634860d91d71p+392", "0x1.0edbaefc78dc8p+9",), "search", 9198989),
    Claim("neg_kl_normal.dmu", "float64", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.894, ("-0x1.68fbdb4ebc86cp-3", "0x1.087dccb72a3c1p+0",), "search", 9199179),
    Claim("neg_kl_normal.dmu", "float64", "neon", "mu, log_sigma2 in [-inf, inf]", 1.218, ("-0x1.236a1b881d521p-14", "-0x1.3f1ba41283741p+4",), "search", 318272, 1.3893),
    Claim("neg_kl_normal.dmu", "float64", "python", "mu, log_sigma2 in [-inf, inf]", 3.054, ("-0x1.3587f9356c87dp+330", "0x1.c7c39c6cf5a89p+8",), "search", 18198829),
    Claim("neg_kl_normal.dmu", "float64", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.894, ("-0x1.68fbdb4ebc86cp-3", "0x1.087dccb72a3c1p+0",), "search", 9199405),
    Claim("neg_kl_normal.dmu", "float64", "torch", "mu, log_sigma2 in [-inf, inf]", 3.054, ("-0x1.3587f9356c87dp+330", "0x1.c7c39c6cf5a89p+8",), "search", 9198189),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.5200000000000p-9", "-0x1.38c0000000000p+4",), "search", 18201383),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.5200000000000p-9", "-0x1.38c0000000000p+4",), "search", 18201383),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.5200000000000p-9", "-0x1.38c0000000000p+4",), "search", 18201383),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.9a00000000000p+3", "0x1.3240000000000p+3",), "search", 18200981),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "neon", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.5200000000000p-9", "-0x1.38c0000000000p+4",), "search", 319125),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "python", "mu, log_sigma2 in [-inf, inf]", 0.5, ("-0x1.c100000000000p+8", "0x1.b180000000000p+2",), "search", 18200917),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 0.501, ("-0x1.9a00000000000p+3", "0x1.3240000000000p+3",), "search", 18200885),
    Claim("neg_kl_normal.dlog_sigma2", "float16", "torch", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.9a00000000000p+3", "0x1.3240000000000p+3",), "search", 18200981),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "arrays", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.a39c440000000p-14", "-0x1.18715e0000000p+5",), "search", 18200302),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.77bc7a0000000p+6", "0x1.7ad9900000000p+3",), "search", 18201243),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.77bc7a0000000p+6", "0x1.7ad9900000000p+3",), "search", 18201243),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "baseline", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.77bc7a0000000p+6", "0x1.7ad9900000000p+3",), "search", 18201243),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "inductor", "mu, log_sigma2 in [-inf, inf]", 3.559, ("-0x1.a1fc340000000p+12", "0x1.13fbac0000000p+4",), "search", 18200367),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.559, ("-0x1.a1fc340000000p+12", "0x1.13fbac0000000p+4",), "search", 18200303),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "neon", "mu, log_sigma2 in [-inf, inf]", 0.504, ("-0x1.77bc7a0000000p+6", "0x1.7ad9900000000p+3",), "search", 318895),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "python", "mu, log_sigma2 in [-inf, inf]", 0.501, ("-0x1.a39c440000000p-14", "-0x1.18715e0000000p+5",), "search", 18200302),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.559, ("-0x1.a1fc340000000p+12", "0x1.13fbac0000000p+4",), "search", 18200431),
    Claim("neg_kl_normal.dlog_sigma2", "float32", "torch", "mu, log_sigma2 in [-inf, inf]", 3.559, ("-0x1.a1fc340000000p+12", "0x1.13fbac0000000p+4",), "search", 18200527),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "avx2", "mu, log_sigma2 in [-inf, inf]", 0.916, ("-0x1.49a5b6e7c2ecep+2", "0x1.3bf84b0368d75p+1",), "search", 18200712, 1.0314),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "avx512", "mu, log_sigma2 in [-inf, inf]", 0.916, ("-0x1.49a5b6e7c2ecep+2", "0x1.3bf84b0368d75p+1",), "search", 18200712, 1.0314),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "baseline", "mu, log_sigma2 in [-inf, inf]", 1.009, ("0x1.abac2727801a0p-3", "-0x1.f82950b89e44ap+1",), "search", 18200904, 1.1497),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "inductor", "mu, log_sigma2 in [-inf, inf]", 2.865, ("0x1.d51aaf7d39daep+718", "0x1.a37f713d9dba8p+10",), "search", 9198901),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "jax", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.998, ("-0x1.aa3555028430dp+11", "0x1.57f8d6572c51bp+9",), "search", 9199377),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "neon", "mu, log_sigma2 in [-inf, inf]", 0.916, ("-0x1.49a5b6e7c2ecep+2", "0x1.3bf84b0368d75p+1",), "search", 317128, 1.0314),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "python", "mu, log_sigma2 in [-inf, inf]", 3.062, ("0x1.f7cdc036496d3p+2", "0x1.472652edca3b9p+9",), "search", 18199187),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "tensorflow", "mu, log_sigma2 in [-inf, inf], subnormals 0", 3.998, ("-0x1.aa3555028430dp+11", "0x1.57f8d6572c51bp+9",), "search", 9199667),
    Claim("neg_kl_normal.dlog_sigma2", "float64", "torch", "mu, log_sigma2 in [-inf, inf]", 3.062, ("0x1.f7cdc036496d3p+2", "0x1.472652edca3b9p+9",), "search", 9198549),
)
# fmt: on
