"""Evaluate the two definitions of each function to a given number of bits."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import libmp

from ._input import Number, Raw, exp_neg
from ._series import direct, positive
from ._tail import asymptotic, expectation, is_tail

Of = Callable[[str, Raw, int], Raw]


def first(kind: str, u: Raw, wp: int) -> Raw:
    """Compute `kind` at 0 < u < inf by the asymptotic series or, at smaller u, by `direct`."""
    return asymptotic(kind, u, wp) if is_tail(u, wp) else direct(kind, u, wp)


def second(kind: str, u: Raw, wp: int) -> Raw:
    """Compute `kind` at 0 < u < inf by the expectation or, at smaller u, by `positive`."""
    return expectation(kind, u, wp) if is_tail(u, wp) else positive(kind, u, wp)


DEFINITIONS: tuple[Of, Of] = (first, second)


def u_of(log_alpha: Number, wp: int, name: str = "log_alpha") -> Raw:
    """Return exp(-log_alpha)/2."""
    return libmp.mpf_shift(exp_neg(log_alpha, wp, name), -1)


def u_of_normal(mu: Raw, log_sigma2: Number, wp: int) -> Raw:
    """Return mu^2 exp(-log_sigma2)/2."""
    over = u_of(log_sigma2, wp, "log_sigma2")
    return libmp.mpf_mul(libmp.mpf_mul(mu, mu), over, wp + 8, "n")


def times_u(of: Of, u: Raw, wp: int) -> Raw:
    """Return u F'(u), with F' from the definition `of`."""
    return libmp.mpf_mul(u, of("gap_grad", u, wp), wp + 8, "n")


def raw_constant(log_c: Number, wp: int) -> Raw:
    """Return log(pi e)/2 + log_c - psi(1/2)/2, the constant in -KL = constant - F(u)."""
    pi = libmp.mpf_log(libmp.mpf_pi(wp + 8), wp + 8, "n")
    half = libmp.mpf_add(libmp.mpf_add(pi, libmp.fone), libmp.mpf_euler(wp + 8, "n"))
    total = libmp.mpf_add(libmp.mpf_shift(half, -1), libmp.mpf_ln2(wp + 8, "n"))
    return libmp.mpf_add(total, log_c(wp + 8))
