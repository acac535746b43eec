"""The transforms under which every function is tried.

Each takes a function and its arguments, and gives the derivatives that it finds, element by
element: the orders in each argument -> the tensor.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import func
from torch.autograd import forward_ad

Found = dict[tuple[int, ...], torch.Tensor]


def _unit(i: int, n: int) -> tuple[int, ...]:
    return tuple(int(k == i) for k in range(n))


def _plus(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _units(n: int) -> list[tuple[int, ...]]:
    return [_unit(i, n) for i in range(n)]


def _added(f: Callable) -> Callable:
    return lambda *x: f(*x).sum()


def value(f: Callable, x: list) -> Found:
    return {(0,) * len(x): f(*x)}


def _backwards(times: int) -> Callable[[Callable, list], Found]:
    def row(f: Callable, x: list) -> Found:
        x = [a.detach().requires_grad_() for a in x]
        found = {(0,) * len(x): f(*x)}
        for _ in range(times):
            further: Found = {}
            for orders, y in found.items():
                slopes = torch.autograd.grad(y.sum(), x, create_graph=True)
                for unit, slope in zip(_units(len(x)), slopes, strict=True):
                    further[_plus(orders, unit)] = slope
            found = further
        return {orders: y.detach() for orders, y in found.items()}

    return row


def grad(f: Callable, x: list) -> Found:
    slopes = func.grad(_added(f), argnums=tuple(range(len(x))))(*x)
    return dict(zip(_units(len(x)), slopes, strict=True))


def vmap(f: Callable, x: list) -> Found:
    return {(0,) * len(x): func.vmap(f)(*x)}


def vmap_grad(f: Callable, x: list) -> Found:
    slopes = func.vmap(func.grad(f, argnums=tuple(range(len(x)))))(*x)
    return dict(zip(_units(len(x)), slopes, strict=True))


def vmap_grad_grad(f: Callable, x: list) -> Found:
    n = len(x)
    return {
        _plus(_unit(i, n), _unit(j, n)): func.vmap(func.grad(func.grad(f, argnums=i), argnums=j))(
            *x
        )
        for i in range(n)
        for j in range(n)
    }


def grad_grad_grad(f: Callable, x: list) -> Found:
    n = len(x)

    def slope(g: Callable, i: int) -> Callable:
        return func.grad(_added(g), argnums=i)

    return {
        _plus(_plus(_unit(i, n), _unit(j, n)), _unit(j, n)): slope(slope(slope(f, i), j), j)(*x)
        for i in range(n)
        for j in range(n)
    }


def _diagonals(transform: Any) -> Callable[[Callable, list], Found]:
    def row(f: Callable, x: list) -> Found:
        found = transform(f, argnums=tuple(range(len(x))))(*x)
        return {u: j.diagonal() for u, j in zip(_units(len(x)), found, strict=True)}

    return row


def jvp(f: Callable, x: list) -> Found:
    return {
        unit: func.jvp(
            f, tuple(x), tuple(o * torch.ones_like(a) for o, a in zip(unit, x, strict=True))
        )[1]
        for unit in _units(len(x))
    }


def jvp_of_jvp(f: Callable, x: list) -> Found:
    def slope(g: Callable, unit: tuple[int, ...]) -> Callable:
        return lambda *y: func.jvp(
            g, tuple(y), tuple(o * torch.ones_like(a) for o, a in zip(unit, y, strict=True))
        )[1]

    n = len(x)
    return {_plus(u, v): slope(slope(f, u), v)(*x) for u in _units(n) for v in _units(n)}


def jvp_of_grad(f: Callable, x: list) -> Found:
    n = len(x)
    found = {}
    for i in range(n):
        slope = func.grad(_added(f), argnums=i)
        found |= {_plus(_unit(i, n), u): y for u, y in jvp(slope, x).items()}
    return found


def hessian(f: Callable, x: list) -> Found:
    n = len(x)
    blocks = func.hessian(_added(f), argnums=tuple(range(n)))(*x)
    return {
        _plus(_unit(i, n), _unit(j, n)): blocks[i][j].diagonal() for i in range(n) for j in range(n)
    }


def forward_mode(f: Callable, x: list) -> Found:
    found = {}
    for unit in _units(len(x)):
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(a, torch.ones_like(a)) if o else a
                for o, a in zip(unit, x, strict=True)
            ]
            found[unit] = forward_ad.unpack_dual(f(*duals)).tangent
    return found


def forward_over_reverse(f: Callable, x: list) -> Found:
    found = {}
    n = len(x)
    for unit in _units(n):
        with forward_ad.dual_level():
            leaves = [a.detach().requires_grad_() for a in x]
            duals = [
                forward_ad.make_dual(a, torch.ones_like(a)) if o else a
                for o, a in zip(unit, leaves, strict=True)
            ]
            slopes = torch.autograd.grad(f(*duals).sum(), duals, create_graph=True)
            for i, slope in enumerate(slopes):
                tangent = forward_ad.unpack_dual(slope).tangent
                found[_plus(_unit(i, n), unit)] = tangent.detach()
    return found


EAGER: dict[str, Callable[[Callable, list], Found]] = {
    "value": value,
    "backward": _backwards(1),
    "second backward": _backwards(2),
    "third backward": _backwards(3),
    "forward mode": forward_mode,
    "forward over reverse": forward_over_reverse,
}
TRANSFORMS: dict[str, Callable[[Callable, list], Found]] = {
    "grad": grad,
    "grad(grad(grad))": grad_grad_grad,
    "vmap": vmap,
    "vmap(grad)": vmap_grad,
    "vmap(grad(grad))": vmap_grad_grad,
    "jacrev": _diagonals(func.jacrev),
    "jacfwd": _diagonals(func.jacfwd),
    "jvp": jvp,
    "jvp(vmap)": lambda f, x: jvp(func.vmap(f), x),
    "grad(vmap)": lambda f, x: grad(func.vmap(f), x),
    "hessian(vmap)": lambda f, x: hessian(func.vmap(f), x),
    "jvp(jvp)": jvp_of_jvp,
    "jvp(grad)": jvp_of_grad,
    "hessian": hessian,
}
