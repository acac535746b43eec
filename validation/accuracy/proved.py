"""The bounds that are claimed to be proved, in ulp, for kernels with FMA and without."""

CLAIMS = {
    "kl_gap": {"fused": 0.8659, "unfused": 0.9565},
    "kl_gap_grad": {"fused": 0.7632, "unfused": 0.8377},
    "kl_gap_hess": {"fused": 0.8469, "unfused": 0.9295},
    "neg_kl": {"fused": 1.0045, "unfused": 1.0947},
    "neg_kl_grad": {"fused": 0.8732, "unfused": 0.9915},
    "neg_kl_hess": {"fused": 0.9626, "unfused": 1.1148},
    "neg_kl_normal": {"fused": 1.4893, "unfused": 1.4896},
    "neg_kl_normal.dmu": {"fused": 1.3893, "unfused": 2.0670},
    "neg_kl_normal.dlog_sigma2": {"fused": 1.0314, "unfused": 1.1497},
}

# For the float32 kernels of training, which PyTorch calls. Not claimed for the rows of `torch`,
# because nothing is proved where these kernels scale their arguments.
FLOAT32_CLAIMS = {
    "neg_kl_normal": {"fused": 5.2032, "unfused": 6.1246},
    "neg_kl_normal.dmu": {"fused": 4.2588, "unfused": 4.9861},
    "neg_kl_normal.dlog_sigma2": {"fused": 5.0934, "unfused": 6.0117},
}

# The kernels by their arithmetic: with fused multiply-add, or without.
KERNELS = {"fused": ("avx512", "avx2", "neon"), "unfused": ("baseline",)}


def proved(function: str, dtype: str, kernel: str) -> float | None:
    """Return the bound that is claimed to be proved for a kernel, or None."""
    if dtype != "float64":
        return None
    found = (CLAIMS[function][name] for name, kernels in KERNELS.items() if kernel in kernels)
    return next(found, None)
