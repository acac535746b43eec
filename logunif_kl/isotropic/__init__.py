"""-KL of complex weights and of groups of k weights, for the prior C/|w|^k.

If a weight w in k dimensions has an isotropic Gaussian posterior, -KL = constant - F_k(u), with
F_k(u) = u 2F2(1, 1; k/2+1, 2; -u) and u = |mu|^2/(2 sigma^2). sigma^2 is the variance of one
coordinate. For k = 1 this is `logunif_kl.neg_kl`. For k = 2, w is a complex weight, and F_k is the
exponential integral Ein. `logunif_kl` exports these functions too. They pass tensors to
`logunif_kl.torch.isotropic` and `logunif_kl.jax.isotropic`.
"""

from ._accuracy import ACCURACY
from ._api import (
    kl_complex,
    kl_complex_normal,
    kl_vector,
    neg_kl_complex,
    neg_kl_complex_grad,
    neg_kl_complex_hess,
    neg_kl_complex_normal,
    neg_kl_vector,
    neg_kl_vector_grad,
)

__all__ = [
    "ACCURACY",
    "kl_complex",
    "kl_complex_normal",
    "kl_vector",
    "neg_kl_complex",
    "neg_kl_complex_grad",
    "neg_kl_complex_hess",
    "neg_kl_complex_normal",
    "neg_kl_vector",
    "neg_kl_vector_grad",
]
