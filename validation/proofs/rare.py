"""The bounds of the rare form of the kernels, on the whole domain.

The domain is cut to regions, in which most choices of the rare form are decided (`special.py`).
There it is the usual form, or a constant, or it is proved as the usual form is.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq

from .algebra import Number, Pieces, binade
from .bounds import Bound, adaptively, at_shift, check_cover, compare, cut_result, join
from .graph import Graph
from .one_argument import (
    LARGEST,
    OF_U,
    OF_X_ITSELF,
    SIGN,
    WINDOW_U,
    WINDOW_X,
    prove_between,
    prove_window_of_u,
    single,
    singles,
)
from .special import ANSWERS, specialise
from .stages import hook_log, log_error, reciprocal, reciprocal_shift
from .truth import beyond, errors, taylor

TINY = 2.0**-1074
NORMAL = 2.0**-1022
ZERO_IF_BELOW = 2.0**-150  # |x|, for which the rare form takes 0
FAR_X = 630.0  # with a larger |x| the result is assembled from its bits in each lane
CLIPPED_X = 1500.0  # a larger |x| has the same exponential
LAST_LINE = -1e308  # below it, -KL is x/2 for the rare form
HUGE = 2.0**1000  # exp(CLIPPED_X)/2 is far above it
NO_ERROR = 2.0**-200
Prover = Callable[[Graph, str, float, float], list[Bound]]


class Region(NamedTuple):
    lo: float
    hi: float
    prove: Prover  # not asked where the rare form is the usual one


def below(x: float) -> float:
    return float(np.nextafter(x, -np.inf))


def above(x: float) -> float:
    return float(np.nextafter(x, np.inf))


def prove_rare(graph: Graph, name: str, usual: Bound) -> Bound:
    """Prove the rare form of a function, with the bound of its usual form."""
    argument = "u" if name in OF_U else "x"
    found = [points(graph, name, argument)]
    window = WINDOW_U if argument == "u" else (-WINDOW_X, WINDOW_X)
    for region in regions_of_u(name) if argument == "u" else regions_of_x(graph, name):
        lo, hi = region.lo, region.hi
        same = specialise(graph, name, "", argument, lo, hi)
        proved = set()
        if window[0] <= lo and hi <= window[1]:
            assert same is not None
            proved.add(same.label(name))
            found.append(usual.choose((usual.hi >= lo) & (usual.lo <= hi)))
        for form in ANSWERS:
            special = specialise(graph, name, form, argument, lo, hi) if form else None
            if special is not None and special.label(name) not in proved:
                proved.add(special.label(name))
                part = region.prove(special, name, lo, hi)
                check_cover(*join(part)[:2], lo, hi)
                found += part
    if argument == "u":  # the functions of a negative u are NaN
        for form in filter(None, ANSWERS):
            special = specialise(graph, name, form, argument, -LARGEST, -TINY)
            if special is not None and not np.isnan(constant(special, name)):
                raise AssertionError(f"{name} is not NaN for a negative u")
    bound = join(found)
    check_cover(bound.lo, bound.hi, 0.0 if argument == "u" else -LARGEST, LARGEST)
    return bound


def constant(graph: Graph, name: str) -> float:
    """What the kernel returns for each argument of a region."""
    operation, operands = graph.nodes[graph.label(name)]
    if operation != "const":
        raise AssertionError(f"{name} is not constant")
    return float(operands[0])


def everywhere(lo: float, hi: float, ulp: float) -> list[Bound]:
    return [Bound(np.array([lo]), np.array([hi]), np.array([ulp]), {})]


def in_ulp(relative: float) -> float:
    """An ulp of x is at least 2^-53 |x|."""
    return relative * 2.0**53


# ---- functions of u


def regions_of_u(name: str) -> list[Region]:
    low, high = WINDOW_U
    far = _far_log if name == "kl_gap" else _far_u
    return [
        Region(TINY, below(NORMAL), _tiny_u),
        Region(NORMAL, below(low), _tiny_u),
        Region(low, high, lambda special, name, lo, hi: prove_window_of_u(special, name)),
        Region(above(high), LARGEST, far),
    ]


def _tiny_u(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """F(u) is u, and the derivatives are those at 0."""
    if name == "kl_gap":
        if graph.nodes[graph.label(name)] != ("input", ("u",)):
            raise AssertionError("kl_gap is not u")
        of, c = "F/u", fmpq(1)
    else:
        value = constant(graph, name)
        of, c = OF_U[name], fmpq(*value.as_integer_ratio())
    error = errors(of, (c,), fmpq(0), 0.0, WINDOW_U[0], False, 0, 1).error[0]
    return everywhere(lo, hi, in_ulp(error))


def _far_log(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """F(u) = log(u)/2 + limit + O(1/u). The rare form computes the last two from another u."""
    starts = np.ldexp(np.arange(8, 16) / 8, np.arange(300, 1024)[:, None]).ravel()
    starts[0] = lo
    ends = np.append(np.nextafter(starts[1:], 0), hi)
    pieces = Pieces(graph, len(starts))
    pieces.set_v((starts, ends))
    hook_log(pieces, name, starts, ends)
    result, scale = cut_result(pieces, graph.label(name))
    (c,) = pieces.main(result)[()]
    limit = arb(2).log() + arb.const_euler() / 2
    truth, error = log_error(pieces, name, result, limit - arb(c))
    truth = pieces.add(truth, {(): [c]})
    error = error + beyond("F", [limit], 1, lo)
    return [
        compare(
            pieces,
            (starts, ends),
            result,
            truth,
            approximation=error,
            absolute=True,
            scale=scale,
        )
    ]


def _far_u(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    starts = np.ldexp(1.0, np.arange(300, 1024))
    starts[0] = lo
    ends = np.append(np.nextafter(starts[1:], 0), hi)
    return adaptively(
        partial(_far_derivative, graph, name),
        partial(singles, graph, name),
        lambda node, u: graph.run(node, u=u),
        starts,
        ends,
    )


def _far_derivative(graph: Graph, name: str, lo: Any, hi: Any) -> Bound:
    """Prove g or g' of u = x 2^shift as a multiple of w or w^2, where w = RN(1/x)."""
    output, x = graph.label(name), graph.label(f"{name}:x")
    shift = 700
    least, most = np.ldexp(lo, -shift), np.ldexp(hi, -shift)
    if (graph.run(x, u=lo) != least).any() or (graph.run(x, u=hi) != most).any():
        raise AssertionError("x is not u 2^-shift")
    pieces = Pieces(graph, len(lo))
    pieces.atoms["u"] = least, most
    pieces.hooks[x] = lambda: Number({("u",): [fmpq(1)]}, binade(least) - 52, box=(least, most))
    pieces.set_v((np.nextafter(1 / most, 0), np.nextafter(1 / least, np.inf)))
    reciprocal(pieces, graph.label(f"{name}:w"), x, least, most, 0.0, "e")
    result, scale = cut_result(pieces, output)
    main = pieces.main(result)
    c, power = main[()], 1 if name == "kl_gap_grad" else 2
    if set(main) != {()} or len(c) != power + 1 or any(c[:-1]) or (scale != -shift * power).any():
        raise AssertionError(f"{name} is not a multiple of w^{power}")
    change, size = reciprocal_shift(pieces, 0.0, "e")
    truth = at_shift(pieces, c, change, size, "t")
    error = beyond(OF_U[name], c, 0, float(lo.min()))
    return compare(
        pieces, (lo, hi), result, truth, approximation=error, absolute=False, scale=scale
    )


# ---- functions of x


def regions_of_x(graph: Graph, name: str) -> list[Region]:
    def between(special: Graph, name: str, lo: float, hi: float) -> list[Bound]:
        return prove_between(graph, special, name, lo, hi)

    edges = [ZERO_IF_BELOW, above(WINDOW_X), above(FAR_X), above(CLIPPED_X)]
    ends = [below(x) for x in edges[1:]]
    right = [Region(lo, hi, between) for lo, hi in zip(edges[:-1], ends, strict=True)]
    left = [Region(-region.hi, -region.lo, between) for region in right]
    tiny = [
        Region(TINY, below(NORMAL), _tiny_x),
        Region(NORMAL, below(ZERO_IF_BELOW), _tiny_x),
    ]
    tiny += [Region(-region.hi, -region.lo, _tiny_x) for region in tiny]
    right.append(Region(edges[-1], LARGEST, _zero))
    far = {"neg_kl": _line, "neg_kl_grad": _half, "neg_kl_hess": _zero}[name]
    left.append(Region(above(LAST_LINE), -edges[-1], far))
    for lo, hi in ((LAST_LINE, LAST_LINE), (-LARGEST, below(LAST_LINE))):
        left.append(Region(lo, hi, _half_x if name == "neg_kl" else far))
    return tiny + right + left


def _tiny_x(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """The value at 0. u = exp(-x)/2 differs from 1/2 by less than |x|."""
    ball = arb(fmpq(1, 2), arb(2) ** -149)
    truth = taylor(OF_X_ITSELF[name], ball, 0)[0] * SIGN.get(name, 1)
    constant(graph, name)
    bound = single(graph, name, "x", lo, truth)
    return everywhere(lo, hi, bound.worst)


def _zero(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """Each function is below 2 u for small u, and the second derivative is below 1/u for large u.

    Here these are less than 2^-1000 ulp.
    """
    if constant(graph, name) != 0:
        raise AssertionError(f"{name} is not zero in [{lo}, {hi}]")
    return everywhere(lo, hi, NO_ERROR)


def _half(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    c = fmpq(*constant(graph, name).as_integer_ratio())
    return everywhere(lo, hi, in_ulp(beyond("Ug", [c], 0, HUGE)))


def _line(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """-KL = x/2 - c, where the rare form computes c from another x."""
    ends = -np.ldexp(1.0, np.arange(10, 1024))
    ends[0] = hi
    starts = np.append(np.nextafter(ends[1:], 0), lo)
    pieces = Pieces(graph, len(ends))
    pieces.atoms["x"] = starts, ends
    pieces.set_v((starts, ends))
    (x,) = [i for i in graph.needed(graph.label(name)) if graph.nodes[i].operation == "input"]
    pieces.hooks[x] = lambda: Number({("x",): [fmpq(1)]}, binade(-ends) - 52, box=(starts, ends))
    result, scale = cut_result(pieces, graph.label(name))
    main = pieces.main(result)
    if set(main) != {("x",), ()} or main["x",] != [fmpq(1, 2)]:
        raise AssertionError(f"unknown terms {main}")
    error = beyond("F", [-x for x in main[()]], 2, HUGE)
    return [
        compare(
            pieces, (starts, ends), result, main, approximation=error, absolute=True, scale=scale
        )
    ]


def _half_x(graph: Graph, name: str, lo: float, hi: float) -> list[Bound]:
    """-KL = x/2 - c, where c < 2 is below 2^-900 ulp. Dividing x by 2 is exact."""
    operation, operands = graph.nodes[graph.label(name)]
    if lo == hi and constant(graph, name) == lo / 2:
        return everywhere(lo, hi, NO_ERROR)
    if operation != "mul" or {graph.nodes[k] for k in operands} != {
        ("input", ("x",)),
        ("const", (0.5,)),
    }:
        raise AssertionError("-KL is not x/2")
    return everywhere(lo, hi, NO_ERROR)


# ---- single arguments

INF, NAN = np.inf, np.nan
LIMITS = {  # at inf, -inf and NaN
    "kl_gap": (INF, NAN, NAN),
    "kl_gap_grad": (0.0, NAN, NAN),
    "kl_gap_hess": (0.0, NAN, NAN),
    "neg_kl": (0.0, -INF, NAN),
    "neg_kl_grad": (0.0, 0.5, NAN),
    "neg_kl_hess": (0.0, 0.0, NAN),
}


def points(graph: Graph, name: str, argument: str) -> Bound:
    """Check the limits, and bound the error at 0 and -0."""
    u, of = (arb(0), OF_U) if argument == "u" else (arb(fmpq(1, 2)), OF_X_ITSELF)
    truth = taylor(of[name], u, 0)[0] * SIGN.get(name, 1)
    found = []
    for form, answers in ANSWERS.items():
        if not form:
            continue

        def allowed(x: Any, form: str = form, answers: int = answers) -> bool:
            masks = [k for k in range(2) if not answers >> k & 1]
            labels = [f"{name}{form}:any{k}" for k in masks]
            return not any(
                graph.run(graph.label(label), **{argument: x})[0]
                for label in labels
                if label in graph.labels
            )

        for x, limit in zip((INF, -INF, NAN), LIMITS[name], strict=True):
            at = np.array([x])
            got = graph.run(graph.label(name + form), **{argument: at})
            if allowed(at) and not np.array_equal(got, [limit], equal_nan=True):
                raise AssertionError(f"{name}({x}) is {got[0]}")
        found += [
            single(graph, name + form, argument, x, truth)
            for x in (0.0, -0.0)
            if allowed(np.array([x]))
        ]
    return join(found)
