"""The computation of each framework, as functions of NumPy arrays.

In float32 and float64 the composite is measured: `_arithmetic` over the framework's namespace,
which compilers see. In the half types, for TensorFlow in every type, and for complex weights and
groups, the public function is measured, and the float32 C kernels where eager PyTorch uses them.
All blocks have one length, so that nothing is compiled twice.
"""

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from .functions import COMPLEX, ISOTROPIC, Evaluate, Function, arithmetic_of

BLOCK = 1 << 14
HALVES = ("float16", "bfloat16")

Call = Callable[..., Any]


def framework(function: Function, kernel: str, dtype: str) -> Evaluate:
    """Return a framework kernel's function for a type; bfloat16 is passed as float32."""
    if dtype in HALVES and function.nin > 1 and kernel in ("inductor", "triton"):
        raise RuntimeError(f"{function.name} is not measured in {dtype} on {kernel}")
    isotropic = function.name in ISOTROPIC
    call = (
        _ISOTROPIC[kernel](function.ufunc, function.k, dtype)
        if isotropic
        else _MAKERS[kernel](function.arithmetic, dtype)
    )

    def evaluate(*args: Any) -> Any:
        parts = [
            call(*(_padded(a[i : i + BLOCK]) for a in args)) for i in range(0, len(args[0]), BLOCK)
        ]
        picked = parts if function.output is None else [part[function.output] for part in parts]
        return np.concatenate(picked)[: len(args[0])]

    return evaluate


def _padded(a: np.ndarray) -> np.ndarray:
    return np.concatenate([a, np.ones(BLOCK - len(a), a.dtype)])


def _each(convert: Call, result: Any) -> Any:
    return tuple(map(convert, result)) if isinstance(result, tuple) else convert(result)


def _composite(xp: Any, name: str) -> Call:
    function = arithmetic_of(name)

    def composite(*args: Any) -> Any:
        return function(xp, *args)

    return composite


def c_kernel(kernel: str, name: str, dtype: str) -> str | None:
    """Name the C kernel that is measured under the name of a framework, or return None."""
    if (kernel, name, dtype) != ("torch", "neg_kl_normal", "float32"):
        return None
    ufuncs = import_module("logunif_kl.torch._kernels").ufuncs()
    return None if ufuncs is None else str(ufuncs.isa)


def _in_c(*tensors: Any) -> Any:
    module = import_module("logunif_kl.torch._cpu_float32").CpuFloat32()
    return module.value(*tensors), *module.gradient(tensors[0].new_ones(()), *tensors)


def _with_gradients(value_of: Call) -> Call:
    """Return a function for -KL and its derivatives by reverse-mode differentiation."""
    import torch

    def function(*tensors: Any) -> Any:
        with torch.enable_grad():
            tensors = tuple(t.requires_grad_() for t in tensors)
            value = value_of(*tensors)
            return value.detach(), *torch.autograd.grad(value.sum(), tensors)

    return function


@cache
def _torch(name: str, dtype: str, compiled: bool = False) -> Call:
    import torch

    if dtype in HALVES:
        function = getattr(import_module("logunif_kl.torch"), name)
        function = _with_gradients(function) if name == "neg_kl_normal" else function
    elif c_kernel("inductor" if compiled else "torch", name, dtype):
        function = _in_c
    else:
        namespace = import_module("logunif_kl.torch._namespace").xp
        function = _composite(namespace, name)
    if compiled:
        function = torch.compile(function, fullgraph=True, dynamic=False)
    kind = getattr(torch, dtype)

    def call(*args: Any) -> Any:
        with torch.no_grad():
            return _each(_array, function(*(torch.from_numpy(a).to(kind) for a in args)))

    return call


def _array(tensor: Any) -> Any:
    """Convert a tensor of PyTorch to NumPy, from bfloat16 to float32."""
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()


@cache
def _triton(name: str, dtype: str) -> Call:
    # Triton reads this when it is imported, and torch may import it.
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    triton: Any = import_module("logunif_kl.torch._triton.launch")
    triton.interpreting = True  # for the rest of this process, which measures nothing else
    triton._BLOCK = BLOCK  # the interpreter takes equally long for an operation of any size
    kind = getattr(torch, dtype)
    order = {"neg_kl": 0, "neg_kl_grad": 1, "neg_kl_hess": 2}.get(name)

    def run(*tensors: Any) -> Any:
        if name != "neg_kl_normal":
            return triton.unary(order, *tensors)
        return (triton.value(*tensors), *triton.gradient(torch.ones((), dtype=kind), *tensors))

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):  # the interpreter uses NumPy
            return _each(_array, run(*(torch.from_numpy(a).to(kind) for a in args)))

    return call


# The public function of at least 512 elements calls a kernel in C, which errs by more.
OF_C = "neg_kl", "float32"


@cache
def _jax(name: str, dtype: str) -> Call:
    import jax

    if dtype in HALVES or (name, dtype) == OF_C:
        function = getattr(import_module("logunif_kl.jax"), name)
        if name == "neg_kl_normal":
            both = jax.vmap(jax.value_and_grad(function, argnums=(0, 1)))

            def function_and_slopes(*arrays: Any) -> Any:
                value, slopes = both(*arrays)
                return value, *slopes

            function = function_and_slopes
    else:
        function = _composite(jax.numpy, name)
    jitted = jax.jit(function)
    kind = getattr(jax.numpy, dtype)

    def back(array: Any) -> Any:
        return np.asarray(array.astype("float32") if dtype == "bfloat16" else array)

    def call(*args: Any) -> Any:
        with jax.enable_x64(True) if dtype == "float64" else nullcontext():
            return _each(back, jitted(*(jax.numpy.asarray(a).astype(kind) for a in args)))

    return call


@cache
def _tensorflow(name: str, dtype: str) -> Call:
    """Return a public function; for two arguments, with its derivatives by a gradient tape."""
    import tensorflow as tf

    function = getattr(import_module("logunif_kl.tensorflow"), name)

    def run(*tensors: Any) -> Any:
        if len(tensors) == 1:
            return function(*tensors)
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        return (value, *tape.gradient(value, tensors))

    def back(tensor: Any) -> Any:
        return (tf.cast(tensor, tf.float32) if dtype == "bfloat16" else tensor).numpy()

    def call(*args: Any) -> Any:
        return _each(back, run(*(tf.cast(tf.constant(a), dtype) for a in args)))

    return call


_MAKERS: dict[str, Call] = {
    "torch": _torch,
    "inductor": partial(_torch, compiled=True),
    "triton": _triton,
    "jax": _jax,
    "tensorflow": _tensorflow,
}


def _public(package: str, name: str, k: float, join: Call) -> Call:
    """Return a public function of groups, or of complex weights whose mean is in parts."""
    function: Call = getattr(import_module(f"logunif_kl.{package}.isotropic"), name)
    if name == COMPLEX:
        return lambda re, im, log_sigma2: function(join(re, im), log_sigma2)
    return partial(function, k=k) if k else function


@cache
def _torch_isotropic(name: str, k: float, dtype: str) -> Call:
    import torch

    function = _public("torch", name, k, torch.complex)
    function = _with_gradients(function) if name == COMPLEX else function
    return lambda *args: _each(lambda t: t.numpy(), function(*map(torch.tensor, args)))


@cache
def _jax_isotropic(name: str, k: float, dtype: str) -> Call:
    import jax

    function = _public("jax", name, k, jax.lax.complex)
    slopes = jax.grad(lambda *args: function(*args).sum(), (0, 1, 2))
    with_slopes = jax.jit(lambda *args: (function(*args), *slopes(*args)))
    jitted = with_slopes if name == COMPLEX else jax.jit(function)

    def call(*args: Any) -> Any:
        with jax.enable_x64(dtype == "float64"):
            return _each(np.asarray, jitted(*map(jax.numpy.asarray, args)))

    return call


_ISOTROPIC: dict[str, Call] = {"torch": _torch_isotropic, "jax": _jax_isotropic}
