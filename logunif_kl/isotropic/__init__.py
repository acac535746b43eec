"""-KL of complex weights and of groups of weights to priors like the log-uniform one.

A weight w in k dimensions with an isotropic Gaussian posterior and the prior C/|w|^k has
-KL = constant - F_k(u), F_k(u) = u 2F2(1, 1; k/2+1, 2; -u), u = |mu|^2/(2 sigma^2), where sigma^2
is the variance of one coordinate. k = 1 is `logunif_kl.neg_kl`. k = 2 is a complex weight, with
Ein(u) instead of F_k. `logunif_kl` has these functions too. Tensors are passed to
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
