"""The transforms under which every function is tried.

Each takes a function and its arguments, and gives the derivatives that it finds, element by
element: the orders in each argument -> the tensor.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import func
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

Orders = tuple[int, ...]
Found = dict[Orders, torch.Tensor]


def _plus(*orders: Orders) -> Orders:
    return tuple(map(sum, zip(*orders, strict=True)))


def _units(n: int) -> list[Orders]:
    return [tuple(int(k == i) for k in range(n)) for i in range(n)]


def _pairs(n: int) -> list[tuple[int, int, Orders]]:
    """Every pair of arguments, with the orders of the second derivative in them."""
    units = _units(n)
    return [(i, j, _plus(units[i], units[j])) for i in range(n) for j in range(n)]


def _added(f: Callable) -> Callable:
    return lambda *x: f(*x).sum()


def _slope(f: Callable, i: int) -> Callable:
    return func.grad(_added(f), argnums=i)


def _tangent(f: Callable, unit: Orders, *x: torch.Tensor) -> torch.Tensor:
    return func.jvp(f, x, tuple(o * torch.ones_like(a) for o, a in zip(unit, x, strict=True)))[1]


def _duals(x: list, unit: Orders) -> list:
    pairs = zip(unit, x, strict=True)
    return [forward_ad.make_dual(a, torch.ones_like(a)) if o else a for o, a in pairs]


def value(f: Callable, x: list) -> Found:
    return {(0,) * len(x): f(*x)}


def _backwards(times: int) -> Callable[[Callable, list], Found]:
    def row(f: Callable, x: list) -> Found:
        x = [a.detach().requires_grad_() for a in x]
        found = value(f, x)
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


def vmap_grad(f: Callable, x: list) -> Found:
    slopes = func.vmap(func.grad(f, argnums=tuple(range(len(x)))))(*x)
    return dict(zip(_units(len(x)), slopes, strict=True))


def vmap_grad_grad(f: Callable, x: list) -> Found:
    return {
        orders: func.vmap(func.grad(func.grad(f, argnums=i), argnums=j))(*x)
        for i, j, orders in _pairs(len(x))
    }


def grad_grad_grad(f: Callable, x: list) -> Found:
    units = _units(len(x))
    return {
        _plus(orders, units[j]): _slope(_slope(_slope(f, i), j), j)(*x)
        for i, j, orders in _pairs(len(x))
    }


def _diagonals(transform: Any) -> Callable[[Callable, list], Found]:
    def row(f: Callable, x: list) -> Found:
        found = transform(f, argnums=tuple(range(len(x))))(*x)
        return {u: j.diagonal() for u, j in zip(_units(len(x)), found, strict=True)}

    return row


def jvp(f: Callable, x: list) -> Found:
    return {unit: _tangent(f, unit, *x) for unit in _units(len(x))}


def jvp_of_jvp(f: Callable, x: list) -> Found:
    units = _units(len(x))
    return {_plus(u, v): _tangent(partial(_tangent, f, u), v, *x) for u in units for v in units}


def jvp_of_grad(f: Callable, x: list) -> Found:
    units = _units(len(x))
    return {orders: _tangent(_slope(f, i), units[j], *x) for i, j, orders in _pairs(len(x))}


def hessian(f: Callable, x: list) -> Found:
    blocks = func.hessian(_added(f), argnums=tuple(range(len(x))))(*x)
    return {orders: blocks[i][j].diagonal() for i, j, orders in _pairs(len(x))}


def forward_mode(f: Callable, x: list) -> Found:
    found = {}
    for unit in _units(len(x)):
        with forward_ad.dual_level():
            found[unit] = forward_ad.unpack_dual(f(*_duals(x, unit))).tangent
    return found


def forward_over_reverse(f: Callable, x: list) -> Found:
    found = {}
    units = _units(len(x))
    for unit in units:
        with forward_ad.dual_level():
            duals = _duals([a.detach().requires_grad_() for a in x], unit)
            slopes = torch.autograd.grad(f(*duals).sum(), duals, create_graph=True)
            for other, slope in zip(units, slopes, strict=True):
                found[_plus(other, unit)] = forward_ad.unpack_dual(slope).tangent.detach()
    return found


def checkpoint_of_a_forward_mode(f: Callable, x: list) -> Found:
    """The second run is outside of the mode, and saves what the first run saved."""
    x = [a.detach().requires_grad_() for a in x]
    one = torch.ones_like(x[0], requires_grad=True)
    with forward_ad.dual_level():
        found = checkpoint(lambda *x: f(*x) * one, *x, use_reentrant=False)
    return dict(zip(_units(len(x)), torch.autograd.grad(found.sum(), x), strict=True))


EAGER: dict[str, Callable[[Callable, list], Found]] = {
    "value": value,
    "backward": _backwards(1),
    "second backward": _backwards(2),
    "third backward": _backwards(3),
    "forward mode": forward_mode,
    "forward over reverse": forward_over_reverse,
    "checkpoint of a forward mode": checkpoint_of_a_forward_mode,
}
TRANSFORMS: dict[str, Callable[[Callable, list], Found]] = {
    "grad": grad,
    "grad(grad(grad))": grad_grad_grad,
    "vmap": lambda f, x: value(func.vmap(f), x),
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
