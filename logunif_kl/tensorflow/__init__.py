"""The exact -KL for TensorFlow, differentiable any number of times.

The functions take tensors and variables, in eager mode, in a `tf.function` and compiled by XLA. If
`logunif_kl.neg_kl` or another function of the package gets a TensorFlow tensor, it calls the
function of the same name in this module. The gradient of each derivative calls the function that
computes the next derivative, so the second and third derivatives lose no digits. Higher derivatives
can lose one digit near the arguments where one approximation replaces another.
"""

try:
    import tensorflow as _tensorflow  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "tensorflow":
        raise
    raise ImportError(
        "logunif_kl.tensorflow needs TensorFlow, which is not installed: "
        "pip install 'logunif_kl[tensorflow]'"
    ) from None

from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal
from ._arguments import converted as _converted  # noqa: F401
from ._arguments import formula as _formula  # noqa: F401

__all__ = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
