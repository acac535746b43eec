"""How each framework makes arrays, differentiates and compiles. Results are NumPy arrays."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

Function = Callable[..., Any]


class Ways:
    """A subclass is for one framework, whose module is `xp`."""

    name: str
    float64 = True
    half: tuple[str, ...] = ("float16", "bfloat16")
    ulp: ClassVar[dict[str, float]] = {"float64": 0.0, "float32": 0.51}
    """The largest difference from NumPy that was measured."""
    wider = 1.0
    """By what factor second derivatives differ more."""
    ulp_of_programs: ClassVar[dict[str, float]] = {}
    ulp_of_formulas = 0.0
    programs: ClassVar[dict[str, Callable[[Function], Function]]] = {}
    """What makes a program of a function of arrays, by the name in the table."""

    def __init__(self) -> None:
        self.xp = import_module(self.module)

    @property
    def module(self) -> str:
        return self.name

    def array(self, x: Any, dtype: str) -> Any:
        raise NotImplementedError

    def symbol(self, x: np.ndarray) -> Any:
        """Return an array of the framework with the dtype of a NumPy array."""
        return self.array(x, x.dtype.name)

    def numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def slope(self, function: Function, i: int) -> Function:
        """Return the derivative of the sum of a function's elements in argument number i."""
        raise NotImplementedError

    def derivative(self, function: Function, orders: tuple[int, ...]) -> Function:
        for i, order in enumerate(orders):
            for _ in range(order):
                function = self.slope(function, i)
        return function

    def run(self, function: Function, how: str, dtype: str, *arguments: Any) -> np.ndarray:
        made = self.programs[how](function) if how != "eager" else function
        return self.numpy(made(*(self.array(x, dtype) for x in arguments)))


class Mlx(Ways):
    name, module = "mlx", "mlx.core"
    ulp: ClassVar[dict[str, float]] = {"float32": 2.26}
    wider = 4.4
    ulp_of_formulas = 3.0
    float64 = False

    def __init__(self) -> None:
        super().__init__()
        mx = self.xp
        self.programs = {"compiled": mx.compile, "vmapped": mx.vmap, "forward": self.forward}

    def forward(self, function: Function) -> Function:
        mx = self.xp
        along = lambda x, *rest: [mx.ones_like(x), *map(mx.zeros_like, rest)]  # noqa: E731
        return lambda *at: mx.jvp(function, list(at), along(*at))[1][0]

    def array(self, x: Any, dtype: str) -> Any:
        return self.xp.array(np.asarray(x, "float32")).astype(getattr(self.xp, dtype))

    def numpy(self, x: Any) -> np.ndarray:
        return np.array(x.astype(self.xp.float32))

    def slope(self, function: Function, i: int) -> Function:
        return self.xp.grad(lambda *at: function(*at).sum(), argnums=i)


class Autograd(Ways):
    name = "autograd"
    ulp_of_formulas = 3.0
    half = ("float16",)

    def __init__(self) -> None:
        super().__init__()
        self.programs = {"forward": self.forward}

    def forward(self, function: Function) -> Function:
        def along_the_first(x: Any, *rest: Any) -> Any:
            return self.xp.make_jvp(lambda x: function(x, *rest))(x)(np.ones_like(x))[1]

        return along_the_first

    def array(self, x: Any, dtype: str) -> Any:
        return np.asarray(x, dtype)

    def slope(self, function: Function, i: int) -> Function:
        return self.xp.elementwise_grad(function, i)

    def run(self, function: Function, how: str, dtype: str, *arguments: Any) -> np.ndarray:
        """Trace the first argument, because NumPy arrays alone do not reach the adapter."""

        def traced(*at: Any) -> Any:
            return self.xp.make_vjp(function)(*at)[1]

        return super().run(traced if how == "eager" else function, how, dtype, *arguments)


class Paddle(Ways):
    name = "paddle"
    ulp_of_programs: ClassVar[dict[str, float]] = {"in a static graph": 2.0}

    def __init__(self) -> None:
        super().__init__()
        self.programs = {"compiled": self.compiled, "in a static graph": self.in_a_graph}

    def in_a_graph(self, function: Function) -> Function:
        """The lengths are not known."""
        paddle = self.xp

        def run(*at: Any) -> Any:
            paddle.enable_static()
            try:
                program = paddle.static.Program()
                with paddle.static.program_guard(program):
                    named = {f"x{i}": x for i, x in enumerate(at)}
                    given = [
                        paddle.static.data(name, [-1] * x.ndim, x.dtype)
                        for name, x in named.items()
                    ]
                    for x in given:
                        x.stop_gradient = False
                    fetched = [function(*given)]
                    executor = paddle.static.Executor(paddle.CPUPlace())
                    return executor.run(
                        feed={name: x.numpy() for name, x in named.items()}, fetch_list=fetched
                    )[0]
            finally:
                paddle.disable_static()

        return run

    def compiled(self, function: Function) -> Function:
        def one(x: Any) -> Any:
            return function(x)

        def two(x: Any, y: Any) -> Any:
            return function(x, y)

        return lambda *at: self.xp.jit.to_static(one if len(at) == 1 else two)(*at)

    def array(self, x: Any, dtype: str) -> Any:
        made = self.xp.to_tensor(np.asarray(x, "float64")).astype(dtype)
        made.stop_gradient = False
        return made

    def numpy(self, x: Any) -> np.ndarray:
        if isinstance(x, np.ndarray):
            return x
        return (x if x.dtype == self.xp.float64 else x.astype("float32")).numpy()

    def derivative(self, function: Function, orders: tuple[int, ...]) -> Function:
        each = [i for i, order in enumerate(orders) for _ in range(order)]
        for n, i in enumerate(each, 1):
            # Some operations of Paddle, such as log1p, have no second derivative.
            function = self.slope(function, i, again=n < len(each))
        return function

    def slope(self, function: Function, i: int, again: bool = False) -> Function:
        def derived(*at: Any) -> Any:
            total = function(*at).sum()
            if not self.xp.in_dynamic_mode():
                return self.xp.static.gradients([total], [at[i]])[0]
            return self.xp.grad(total, at[i], create_graph=again)[0]

        return derived


class PyTensor(Ways):
    name = "pytensor"
    half = ("float16",)

    def __init__(self) -> None:
        super().__init__()
        modes = dict.fromkeys(("compiled", "vmapped", "forward")) | {"compiled by numba": "NUMBA"}
        self.programs = {how: partial(self.program, how, mode) for how, mode in modes.items()}
        self.programs["eager"] = partial(self.program, "eager", "FAST_COMPILE")

    def program(self, how: str, mode: Any, function: Function) -> Function:
        from pytensor import tensor as pt
        from pytensor.graph.replace import vectorize_graph

        def call(*at: np.ndarray) -> Any:
            given = [
                pt.TensorType(str(x.dtype), tuple(1 if n == 1 else None for n in x.shape))()
                for x in at
            ]
            if how == "vmapped":
                single = [pt.TensorType(str(x.dtype), (None,) * (x.ndim - 1))() for x in at]
                result = vectorize_graph(function(*single), dict(zip(single, given, strict=True)))
            else:
                result = function(*given)
            if how == "forward":
                result = self.xp.gradient.Rop(result, given[0], pt.ones_like(given[0]))
            return self.xp.function(given, result, mode=mode, on_unused_input="ignore")(*at)

        return call

    def run(self, function: Function, how: str, dtype: str, *arguments: Any) -> np.ndarray:
        return super().run(self.programs[how](function), "eager", dtype, *arguments)

    def array(self, x: Any, dtype: str) -> Any:
        return np.asarray(x, dtype)

    def symbol(self, x: np.ndarray) -> Any:
        return self.xp.tensor.constant(x)

    def slope(self, function: Function, i: int) -> Function:
        return lambda *at: self.xp.grad(function(*at).sum(), at[i])


EVERY: dict[str, type[Ways]] = {each.name: each for each in (Mlx, Autograd, Paddle, PyTensor)}
