"""-KL of an isotropic Gaussian in k dimensions to the prior C/|w|^k, for an array namespace ``xp``.

With a = k/2 and T ~ Beta(1, a), of density a (1 - t)^(a-1),

    F_k(u) = u 2F2(1, 1; a+1, 2; -u) = E (1 - e^(-u T))/T,    u F_k'(u) = u E e^(-u T).

Up to a bound on u that grows with a, a quadrature gives the expectation as a sum of positive terms.
Above that bound, with psi the digamma function,

    F_k(u) = a (log u - psi(a)) - a sum_n (1-a) (2-a) ... (n-a)/(n u^n).

Every derivative follows from D = d/d log_alpha = -u d/du. D maps u^-n to n u^-n. With v = u T, D
maps u e^-v p(v) to u e^-v ((v - 1) p - v p'). ``xp`` must have ``expm1`` and the functions that
`logunif_kl._arithmetic.functions` calls.
"""

from __future__ import annotations

from typing import NamedTuple

from ..tables import Array, Namespace, constant

_LOG_2 = 0.6931471805599453


class Rule(NamedTuple):
    """Numbers that depend only on k."""

    half: float  # a = k/2
    digamma: float  # psi(a)
    nodes: tuple[float, ...]
    weights: tuple[float, ...]  # the weights sum to 1
    bound: float  # the largest u for which the quadrature is used
    tail: tuple[float, ...]  # a (1-a)_n/bound^n for n = 1, 2, ...


def derivative(xp: Namespace, x: Array, rule: Rule, order: int) -> Array:
    """Return the derivative of -F_k(u) in x = log alpha, of any order. Order 0 gives -F_k(u)."""
    u = 0.5 * xp.exp(-x)
    far = u > rule.bound
    # For tiny u use the limits -u, u, -u, ..., because u times a node could be subnormal.
    tiny = u < 2.0**-56
    inner = xp.where(far, constant(xp, x, 1.0), u)
    near = _quadrature(xp, inner, rule, order)
    w = rule.bound / xp.where(far, u, constant(xp, x, rule.bound))
    near = xp.where(tiny, u if order % 2 else -u, near)
    return xp.where(far, _tail(xp, x, w, far, rule, order), near)


def _quadrature(xp: Namespace, u: Array, rule: Rule, order: int) -> Array:
    total = 0.0 * u
    if order == 0:
        for t, weight in zip(rule.nodes, rule.weights, strict=True):
            total = total + (weight / t) * xp.expm1(-t * u)
        return total
    p = [1]
    for _ in range(order - 1):
        slope = [k * c for k, c in enumerate(p)]
        p = [a - b - c for a, b, c in zip([0, *p], [*p, 0], [*slope, 0], strict=True)]
    for t, weight in zip(rule.nodes, rule.weights, strict=True):
        v = t * u
        value = float(p[-1]) + 0.0 * v
        for c in reversed(p[:-1]):
            value = value * v + float(c)
        total = total + weight * (xp.exp(-v) * value)
    return u * total


def _tail(xp: Namespace, x: Array, w: Array, far: Array, rule: Rule, order: int) -> Array:
    series = 0.0 * w
    for n in range(len(rule.tail), 0, -1):
        factor = 1.0 / n if order == 0 else float(n) ** (order - 1)
        series = w * (factor * rule.tail[n - 1] + series)
    if order == 0:
        away = xp.where(far, x, constant(xp, x, 0.0))
        return rule.half * (away + (_LOG_2 + rule.digamma)) + series
    return rule.half + series if order == 1 else series
