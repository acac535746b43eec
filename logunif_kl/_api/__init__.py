"""The public functions of real weights: KL, -KL, and derivatives of -KL."""

from ._kl import kl, kl_normal
from ._neg_kl import neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal

__all__ = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
