"""Statements of Molchanov et al. about Eq. 14."""

import numpy as np

import logunif_kl as lk
from logunif_kl.methods import METHODS, measure
from logunif_kl.methods._molchanov import K1
from validation.papers.statement import ABOUT, ACCURATE, STEEP, Found, statement

SIGMOID = METHODS["molchanov"]


@statement("molchanov-tight", "Eq. 14", "the approximation is tight for all alpha")
def tight() -> Found:
    found = measure(SIGMOID, SIGMOID.domain)
    gradient = found.gradient
    assert gradient is not None
    worst, slope = abs(found.value.error), abs(gradient.error)
    return Found(
        holds=worst < ACCURATE and slope < STEEP,
        measured={
            "value": worst,
            "value_at_log_alpha": found.value.log_alpha,
            "gradient_relative": slope,
            "gradient_at_log_alpha": gradient.log_alpha,
        },
        note=f"off by {worst:.2e} at most (log alpha = {found.value.log_alpha:.2f}), its gradient "
        f"by {slope:.1%} (log alpha = {gradient.log_alpha:.2f}), and by less at both ends. Less "
        f"than {ACCURATE:g}, and {STEEP:.0%} in the gradient, counts as tight",
    )


@statement(
    "molchanov-constants",
    "Eq. 14",
    "k1 = 0.63576, k2 = 1.87320, k3 = 1.48695 are about as good as constants of this form can be",
    stated=False,
)
def constants() -> Found:
    fit = lk.fit_sigmoid(1, norm="minimax")
    published = abs(measure(SIGMOID, SIGMOID.domain).value.error)
    return Found(
        holds=published < ABOUT * fit.max_error,
        measured={
            "published": published,
            "minimax": fit.max_error,
            "minimax_coefficients": [float(c) for c in fit.coefficients],
        },
        note=f"the minimax constants of the same form halve the error, {published:.2e} to "
        f"{fit.max_error:.2e}. Up to {ABOUT:g} times counts as about as good",
    )


@statement(
    "molchanov-limit",
    "Eq. 14, C = -k1",
    "with C = -k1 the value vanishes as alpha -> inf, and k1 is what -KL + log(1 + 1/alpha)/2 "
    "falls by",
)
def limit() -> Found:
    exact = (np.euler_gamma + np.log(2.0)) / 2.0
    at_top = abs(float(SIGMOID.function(np.inf)))
    return Found(
        holds=at_top == 0.0 and abs(K1 - exact) < 1e-3,
        measured={"k1": K1, "(gamma + log 2)/2": float(exact), "difference": float(K1 - exact)},
        note=f"k1 is a fit of (gamma + log 2)/2, too large by {K1 - exact:.1e}: as alpha -> 0 the "
        "error does not vanish",
    )
