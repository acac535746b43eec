"""-KL of complex weights, and of groups of weights, for PyTorch.

The functions of `logunif_kl.isotropic` for tensors: differentiable any number of times, in every
transform of `torch.func` and under `torch.compile`.
"""

from ._api import (
    kl_complex,
    kl_complex_normal,
    neg_kl_complex,
    neg_kl_complex_grad,
    neg_kl_complex_hess,
    neg_kl_complex_normal,
    neg_kl_vector,
    neg_kl_vector_grad,
)

__all__ = [
    "kl_complex",
    "kl_complex_normal",
    "neg_kl_complex",
    "neg_kl_complex_grad",
    "neg_kl_complex_hess",
    "neg_kl_complex_normal",
    "neg_kl_vector",
    "neg_kl_vector_grad",
]
