"""The bounds of -KL and its derivatives from (mu, log sigma^2), in the rare form of the kernels.

After the first steps the rare form is the usual one (`normal_forms.py`). So the proof of the usual
form is one of the rare form, on pieces of u, m and y, with y for all t. Where n is clipped, the
functions of u are those at 0 or at infinity to within 2^-290. Only the logarithm in the value for
u > 2^300 needs another proof. The bounds lie on pieces of q 2^n with the clipped n.
"""

from functools import cache
from typing import Any

import numpy as np
from flint import arb, fmpq

from .algebra import Number, Pieces, Poly, binade
from .bounds import Bound, check_cover, compare, cut_result, join
from .graph import Graph
from .normal import (
    MAY_BE_CLIPPED,
    NAME,
    Boxes,
    Exponentials,
    exponentials,
    products,
    prove_between,
)
from .normal_forms import CLIP_N, CLIP_T, EXPONENTS, check_form, label, largest_n
from .rare import below
from .scaling import error_of_assemble
from .stages import hook_log, log_error, reciprocal
from .truth import beyond, errors

OF_ZERO = 2.0**-148  # exp(x) is 1 to within it, if the rare form takes 0 for x
LEAST_U, MOST_U = 2.0**-301, 2.0**304  # q is between 1/2 and 16


def prove_rare(graph: Graph, suffix: str) -> Bound:
    """Prove one result: ``""`` (the value), ``".dmu"`` or ``".dlog_sigma2"``."""
    check_form(graph, suffix)
    if_subnormal = scaling_error(graph)
    y = all_exponentials(graph)
    found = far_values(graph, y) if suffix == "" else []
    found.append(prove_between(graph, suffix, y, LEAST_U, MOST_U, _change_by_clipping()))
    bound = join(found)
    more = np.full(len(bound.ulp), if_subnormal)
    bound = bound._replace(ulp=bound.ulp + more, parts={**bound.parts, "if subnormal": more})
    check_cover(bound.lo, bound.hi, LEAST_U, below(MOST_U))
    return bound


@cache
def all_exponentials(graph: Graph) -> Exponentials:
    y = exponentials(graph, CLIP_T)
    return y._replace(eta=y.eta + OF_ZERO)


@cache
def scaling_error(graph: Graph) -> float:
    return error_of_assemble(graph)


def _change_by_clipping() -> float:
    """Bound how much F/u, F' and u F' change where n is clipped, relative to themselves.

    There both u are below 2^-296 or both are above 2^299.
    """
    low, high = MAY_BE_CLIPPED
    at_zero = [
        float(errors(name, (fmpq(1),), fmpq(0), 0.0, low, False, 0, 1).error[0])
        for name in ("F/u", "g")
    ]
    return 2.5 * max(*at_zero, beyond("Ug", [fmpq(1, 2)], 0, high))


# ---- the value for u > 2^300


def far_values(graph: Graph, y: Exponentials) -> list[Bound]:
    """-KL = -(log(u)/2 + limit) for n > 300, where u = f 2^K.

    The kernel takes log(u)/2 from q and n, and the rest from q 2^300.
    """
    K, j = (x.ravel() for x in np.meshgrid(np.arange(CLIP_N - 2, largest_n() + 3), np.arange(8)))
    pieces = Pieces(graph, len(K))
    pieces.set_v((np.zeros(len(K)), np.zeros(len(K))))
    _put_far_polynomial(pieces)
    hook_log(pieces, NAME, 1 + j / 8, np.nextafter(1 + (j + 1) / 8, 0))
    for name in ("log.exponent", "log.k"):
        i = label(graph, "", name)
        pieces.values[i] = pieces.point(i, K * 1.0)
    result, scale = cut_result(pieces, graph.label(NAME))
    result = {key: [-x for x in c] for key, c in result.items()}
    c = pieces.main(result)[()][0]
    limit = arb(2).log() + arb.const_euler() / 2
    truth, error = log_error(pieces, NAME, result, limit - arb(c))
    truth = pieces.add(truth, {(): [c]})
    q, _, eta = products(graph, y, _any_boxes(y))
    of_u = float((eta + q.error + q.low_word)[0])  # relative, and so twice as much as of log(u)/2
    error = error + beyond("F", [limit], 1, MAY_BE_CLIPPED[1]) + of_u
    at = np.full(len(K), MAY_BE_CLIPPED[1]), np.full(len(K), below(MOST_U))
    bound = compare(pieces, at, result, truth, approximation=error, absolute=True, scale=scale)
    clipped = np.log(2) * (K - 2 * EXPONENTS[0] + 4) >= CLIP_T
    value = tuple(x[clipped] for x in pieces.interval(result))
    worst = bound.choose(slice(i := int(np.argmax(bound.ulp)), i + 1))
    return [worst, worst._replace(ulp=_with_removed(value, bound.choose(clipped)), parts={})]


def _any_boxes(y: Exponentials) -> Boxes:
    """One piece, with all u, m and y."""
    return Boxes(*(np.array([x]) for x in (1.0, 2.0, 1.0, 2.0, y.lo.min(), y.hi.max())))


def _put_far_polynomial(pieces: Pieces) -> None:
    """Compute the polynomial on one piece, 2^299 < u < 2^304, and put it on all pieces."""
    graph, nodes = pieces.graph, pieces.graph.nodes
    one = Pieces(graph, 1)
    ends = np.array([MAY_BE_CLIPPED[1]]), np.array([MOST_U])
    one.set_v((np.nextafter(1 / ends[1], 0), np.nextafter(1 / ends[0], 1)))
    u = label(graph, "", "u")
    one.values[u] = Number(one.atom("u", ends), binade(ends[0]) - 52, box=ends)
    reciprocal(one, label(graph, "", "w"), u, *ends, 0.0, "e")
    in_first_range, _, value = nodes[nodes[graph.label(NAME)].operands[0]].operands
    total, rest = nodes[value].operands
    log, high = nodes[total].operands
    low, _ = nodes[nodes[rest].operands[1]].operands
    for mask in (in_first_range, nodes[log].operands[0]):
        pieces.values[mask] = np.broadcast_to(one.get(mask), (pieces.count,))
    for i in (high, low):
        poly = one.get(i).poly
        main: Poly = {(): [one.main(poly)[()][0]]}
        error = pieces.error(f"far{i}", one.magnitude(one.add(poly, main, -1)))
        grid = np.broadcast_to(one.get(i).grid, (pieces.count,))
        pieces.values[i] = Number(pieces.add(main, error), grid)


def _with_removed(value: Any, bound: Bound) -> Any:
    """The value where t is clipped to 4500: RN(V + RN(x - 4500)/2) for x = -log sigma^2.

    V errs by at most c ulp of the exact V, and is between 2^10 and 2^12. A piece that holds 2^11
    counts in ulp of what is below. Let s = V + RN(x - 4500)/2. Up to x = 2^55, x - 4500 is exact.

    - If s is in the binade of V, s is exact, because x is below 2^14. So the result errs by c ulp.
    - Otherwise an ulp of s is at least two of V. If the exact result is in the binade of s or
      above, the result errs by c/2 + 1/2 ulp.
    - Otherwise a power of two P lies above the exact result, and s - P is below 2 ulp of V, as c
      is. In the next binade after V, s is a multiple of an ulp of V. Above, half an ulp of s is at
      least 2 ulp of V. So s is rounded to P, which errs less than s: by c ulp at most.

    Above 2^55, x - 4500 is less than twice the exact result. So each of both roundings errs by half
    an ulp of the exact result at most. The error of V is below 2^-10 ulp there. At x = inf both
    results are infinite.
    """
    c = bound.worst
    near = [abs(x / 2.0**11 - 1) < 2.0**-30 for x in value]
    if not (c < 2 and value[0].min() > 2.0**10 and value[1].max() < 2.0**12) or np.any(near):
        raise AssertionError("the value where t is clipped is not as expected")
    return np.array([max(c, c / 2 + 0.5, 1 + 2.0**-10)])
