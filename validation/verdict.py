"""The rule that decides the statements of the papers, on every page."""

import math
from collections.abc import Iterable

RULE = (
    "A statement holds if all that was measured agrees with it, fails if something contradicts it, "
    "and is not decided otherwise. A formula is compared within rounding errors. A statement about "
    "trained networks names a range for a quantity, such as a difference below 0. Our networks "
    "agree if the 95 % interval of the quantity (Student's t over the seeds, or the standard error "
    "of one network's gradients) lies in the range in every case, and disagree if it lies outside "
    "in one. If the interval of a case includes an end of the range, they cannot tell; nor can a "
    "single seed. Networks of ours that are not trained as the paper's can support a statement, "
    "but not contradict it: if they disagree, it is not decided."
)
"""What `agreement` and `verdict` do, as {doc}`claims` of the site prints it."""
BY_THE_RULE = "Verdicts are by the rule of “What the papers state”."

HOLDS, FAILS, NOT_DECIDED = "holds", "fails", "not decided"
_NETWORKS = {True: "agree", False: "disagree", None: "cannot tell"}


def agreement(
    intervals: Iterable[tuple[float, float]], low: float = -math.inf, high: float = 0.0
) -> bool | None:
    """Return whether intervals lie in a range: True if all do, False if one is outside, or None.

    An interval is its middle and half its width, as `validation.summary.interval` returns them. A
    width of NaN decides nothing.
    """
    found = list(intervals)
    if any(middle - half > high or middle + half < low for middle, half in found):
        return False
    inside = [low < middle - half and middle + half < high for middle, half in found]
    return True if inside and all(inside) else None


def verdict(agrees: bool | None, *, networks: bool = False) -> str:
    """Return the verdict on a statement, given whether what was measured agrees with it.

    With ``networks``, it was measured of networks that are not trained as the paper's.
    """
    if agrees is None or (networks and not agrees):
        return NOT_DECIDED
    return HOLDS if agrees else FAILS


def of_networks(agrees: bool | None) -> tuple[str, str]:
    """Return the cells of a table: what our networks do, and the verdict on the statement."""
    return _NETWORKS[agrees], verdict(agrees, networks=True)
