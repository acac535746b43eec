"""The exact -KL for TensorFlow, differentiable any number of times.

The functions of `logunif_kl` under the same names, for tensors and variables, eager, in a
`tf.function` and compiled by XLA. Each has its own rule for differentiation, which calls the next
derivative: the second and third lose no digit by it, and later ones up to three at places.
`logunif_kl.neg_kl` and the others come here by themselves when they are given a tensor.
"""

try:
    import tensorflow as _tensorflow  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    raise ImportError(
        "logunif_kl.tensorflow needs TensorFlow, which is not installed: "
        "pip install 'logunif_kl[tensorflow]'"
    ) from None

from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal

__all__ = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
