"""The exact functions of complex weights and of groups of weights, by Arb's balls, one by one."""

import math
from typing import Any

from flint import arb, ctx

from .doubledouble import Array
from .functions import COMPLEX, Function

BITS = 200


def ein(u: Any) -> Any:
    """Return gamma + log u + E1(u)."""
    if u < 1e-20:
        return u - u * u / 4 + u * u * u / 18
    bits = ctx.prec
    if u < 1:
        ctx.prec = bits + 90
    try:
        found = arb.const_euler() + u.log()
        return found + u.expint(1) if u < 300 else found
    finally:
        ctx.prec = bits


def gap(u: Any, a: Any, slope: bool) -> Any:
    """Return F_k(u), or u F_k'(u), with a = k/2, by series of positive terms or in 1/u."""
    if u < 1e-20:
        return u
    if u > 400 and u > 4 * a:
        term, total = arb(1), arb(0)
        for n in range(1, 160):
            term *= (n - a) / u
            total += term if slope else term / n
        return a * (1 + total) if slope else a * (u.log() - a.digamma() - total)
    weight, harmonic, total, n = (-u).exp(), arb(0), arb(0), 0
    top = float(u.mid())
    while n < top + 16 * math.sqrt(top) + 80:
        total += weight / (a + n) if slope else weight * harmonic
        harmonic += 1 / (a + n)
        n += 1
        weight *= u / n
    return a * u * total if slope else a * total


def value(function: Function, *at: float) -> Any:
    if function.k:
        of_slope = function.ufunc == "neg_kl_vector_grad"
        found = gap((-arb(at[0])).exp() / 2, arb(function.k) / 2, of_slope)
        return found if of_slope else -found
    if function.ufunc != COMPLEX:
        u = (-arb(at[0])).exp()
        if function.ufunc == "neg_kl_complex":
            return -ein(u)
        return -(-u).expm1() if function.ufunc == "neg_kl_complex_grad" else -u * (-u).exp()
    re, im, log_sigma2 = map(arb, at)
    square = re * re + im * im
    u = square * (-log_sigma2).exp()
    if function.output == 0:
        return -ein(u)
    slope = -(-u).expm1()
    part = {1: re, 2: im}.get(function.output or 0)
    return slope if part is None else -2 * part * slope / square


@ctx.workprec(BITS)
def parts(function: Function, *arrays: Array) -> list[tuple[float, float, int]]:
    """Return the parts of each exact value, as `truth.Truth` has them; NaN if one is not finite."""
    found = []
    for point in zip(*(a.tolist() for a in arrays), strict=True):
        if not all(map(math.isfinite, point)):
            found.append((math.nan, 0.0, 0))
            continue
        centre = value(function, *point).mid()
        man, exp = centre.man_exp()
        scale = int(exp) + int(man).bit_length()
        scaled = centre * arb(2) ** -scale
        hi = float(scaled)
        found.append((hi, float(scaled - hi), max(scale, -100_000)))  # no remainder is left
    return found
