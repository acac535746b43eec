"""The exact -KL for JAX, differentiable any number of times in forward and reverse mode.

If `logunif_kl.neg_kl` or another function of the package gets a JAX array or tracer, it calls the
function of the same name in this module. Each differentiation rule calls the function for the next
derivative, so the second and third derivatives lose no digits. Fourth derivatives can lose one
digit near the arguments where one approximation replaces another. The functions work under
``jit``, ``vmap``, ``grad``, ``jvp``, ``linearize``, ``checkpoint``, ``scan`` and sharding.

`logunif_kl.jax.numpyro` and `logunif_kl.jax.tfp` define the prior as a distribution, for NumPyro
and for TensorFlow Probability.

Notes
-----
The functions take what `jax.numpy` functions take: JAX and NumPy arrays, NumPy scalars and Python
numbers, promoted as by `jax.numpy.exp`. NumPy arrays become JAX arrays. (`logunif_kl.neg_kl_normal`
does not accept a NumPy array together with a JAX array.) Without
``jax_enable_x64`` float64 becomes float32, as everywhere in JAX. float16 and bfloat16 are computed
in float32 and rounded at the end.

On the CPU, XLA flushes subnormal numbers to zero, in arguments and in results: magnitudes below
1.2e-38 in float32 and 2.3e-308 in float64. XLA also fuses some multiplications with additions,
which makes the float64 functions slightly less accurate. Values and first derivatives
stay within 4 units in the last place; the last bit can depend on the program around the function.

In float32 on the CPU, jitted programs call C kernels for the values and first derivatives of
`neg_kl`, `kl`, `neg_kl_normal` and `kl_normal` if there are 512 elements or more. The kernels do
not flush subnormal numbers. On other platforms, in exported programs, and for arrays that XLA
divides among devices, XLA compiles plain operations instead. Results on one device and on several
can therefore differ by 3 units in the last place. `logunif_kl.show_config` shows whether the
kernels can be called. `jax.experimental.serialize_executable` can store a program that calls them.
A new process must import `logunif_kl.jax` before it loads that program.
"""

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "jax":
        raise
    raise ImportError(
        "logunif_kl.jax needs JAX, which is not installed: pip install 'logunif_kl[jax]'"
    ) from None

from ._api import kl, kl_normal, neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal
from ._arguments import converted as _converted  # noqa: F401
from ._arguments import formula as _formula  # noqa: F401

__all__ = ["kl", "kl_normal", "neg_kl", "neg_kl_grad", "neg_kl_hess", "neg_kl_normal"]
