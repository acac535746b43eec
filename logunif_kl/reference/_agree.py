"""Evaluate two definitions of a value with rising precision until they agree."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import libmp

from .._errors import shown
from .._mpmath import LOCK as LOCK
from ._input import Raw, magnitude

GUARD = 12
"""The number of bits that must agree beyond the requested bits."""

ROUNDS = 10
"""The most rounds. Each round adds at least as many bits as were missing."""

Definition = Callable[[int], Raw]


def agree(first: Definition, second: Definition, dps: int, what: str, *at: object) -> Raw:
    """Return the value on which both definitions agree to ``dps`` digits and `GUARD` more bits.

    The value must not be zero. Each definition is called with a precision in bits. It reads its
    arguments at that precision, and should return the value to about as many bits. The second
    definition gets 16 bits more, so that the rounding of an argument affects the two differently.
    ``what.format(*at)`` names the value in the error message.
    """
    prec = libmp.dps_to_prec(dps)
    wp = prec + 2 * GUARD
    with LOCK:
        for _ in range(ROUNDS):
            a, b = first(wp), second(wp + 16)
            apart = libmp.mpf_sub(a, b, 53, "n")
            if not b[1]:
                missing = wp  # no digit is known so far
            elif not apart[1]:
                missing = 0
            else:
                missing = magnitude(apart) - magnitude(b) + prec + GUARD
            if missing <= 0:
                return libmp.mpf_pos(b, prec, "n")
            wp += missing + 2 * GUARD
    where = what.format(*map(shown, at))
    raise ArithmeticError(
        f"{where}: two definitions still differ at {wp} bits, so {dps} digits are not "
        "certain: ask for fewer digits, or move the argument away from a zero of the result."
    )
