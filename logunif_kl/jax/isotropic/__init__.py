"""-KL of complex weights, and of groups of weights, for JAX.

The functions of `logunif_kl.isotropic` for arrays and tracers of JAX: differentiable any number of
times in either mode. float32 and the half types are computed in float32.
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
