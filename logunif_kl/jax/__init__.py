"""The exact -KL for JAX, differentiable any number of times in either mode.

The functions of `logunif_kl` under the same names, for JAX arrays and tracers, with a ``reduction``
besides. Each has its own rule for differentiation, which calls the next derivative: the second and
third lose no digit by it, and later ones up to three at places. ``jit``, ``vmap``, ``grad``,
``jvp``, ``linearize``, ``checkpoint``, ``scan`` and sharding are JAX's. `logunif_kl.neg_kl` and the
others come here by themselves when they are given an array or a tracer of JAX.

What needs a library besides JAX has a module of its own: `logunif_kl.jax.numpyro` and
`logunif_kl.jax.tfp`, the prior as a distribution.

Notes
-----
Arguments are those of `jax.numpy` functions: JAX and NumPy arrays, NumPy scalars and Python
numbers, promoted as by `jax.numpy.exp`. Here NumPy arrays become JAX arrays, since the caller named
the framework; `logunif_kl.neg_kl_normal`, which has to choose it, refuses to mix the two. Without
``jax_enable_x64`` float64 becomes float32, as everywhere in JAX. float16 and bfloat16 are computed
in float32 and rounded at the end.

XLA flushes subnormal numbers to zero on the CPU: results below 1.2e-38 in float32 and 2.3e-308 in
float64 are 0 there, and arguments below count as 0. It also fuses multiplications with additions as
it pleases, which costs the float64 arithmetic in two words a bit: values and first derivatives stay
within 4 units in the last place, and another program around them may change the last bit.
"""

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ImportError(
        "logunif_kl.jax needs JAX, which is not installed: pip install 'logunif_kl[jax]'"
    ) from None

from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal

__all__ = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
