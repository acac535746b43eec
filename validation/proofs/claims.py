"""The bounds that are claimed to be proved, in ulp, for kernels with FMA and without."""

CLAIMS = {
    "kl_gap": {"fused": 0.8659, "unfused": 0.9565},
    "kl_gap_grad": {"fused": 0.7632, "unfused": 0.8381},
    "kl_gap_hess": {"fused": 0.8469, "unfused": 0.9295},
    "neg_kl": {"fused": 1.1320, "unfused": 1.2222},
    "neg_kl_grad": {"fused": 1.0217, "unfused": 1.1400},
    "neg_kl_hess": {"fused": 2.1684, "unfused": 2.2514},
    "neg_kl_normal": {"fused": 2.0023, "unfused": 2.0914},
    "neg_kl_normal.dmu": {"fused": 2.4813, "unfused": 2.6638},
    "neg_kl_normal.dlog_sigma2": {"fused": 1.5231, "unfused": 1.5545},
}
