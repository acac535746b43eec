"""Compute -KL of any continuous posterior (Kingma's Eq. 38), in closed form or by quadrature."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, Literal, TypedDict, Unpack, overload

from .._convention import PROPER_CONSTANT, ZERO_AT_INFINITY, additive_constant, positive
from .._errors import shown
from ._closed_forms import closed_form
from ._density import checked_points
from ._distribution import Standardised, standardised
from ._priors import TruncatedLogUniform, correction, holds
from ._quadrature import Side, signed_entropies, total

METHODS = ("auto", "closed", "quadrature")
REFUSED_FROM = 1e-6


class _Options(TypedDict, total=False):
    zero_at: float
    log_c: float | None
    method: str
    points: Iterable[float]
    prior: Any


@overload
def neg_kl_posterior(
    dist: Any, *, return_error: Literal[False] = ..., **options: Unpack[_Options]
) -> float: ...


@overload
def neg_kl_posterior(
    dist: Any, *, return_error: Literal[True], **options: Unpack[_Options]
) -> tuple[float, float]: ...


def neg_kl_posterior(
    dist: Any,
    *,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    method: str = "auto",
    points: Iterable[float] = (),
    prior: Any = None,
    return_error: bool = False,
) -> float | tuple[float, float]:
    r"""-KL(q || p) of any continuous posterior q, with p(w) = C/|w|: *maximise* it (ELBO sign).

    With the differential entropy H(q) ([1]_, Eq. 38):

    .. math::

        -\mathrm{KL} = \log c + \log\tfrac12 + H(q) - \mathrm{E} \log\lvert w\rvert
        = \log C + H(q) - \mathrm{E} \log\lvert w\rvert

    Here c is the prior density of log|w|. Each sign has half of the prior's mass, so C = c/2 and
    p(w) = c/(2 |w|).

    Parameters
    ----------
    dist : frozen distribution, gaussian_kde or Density
        One of:

        - a frozen continuous distribution with scalar parameters, of `scipy.stats`, such as
          ``stats.laplace(0.3, 0.1)``, or of your own subclass of `scipy.stats.rv_continuous`;
        - one of SciPy's new distributions, such as ``stats.Normal(mu=0.3, sigma=0.1)``;
        - a kernel density estimate from samples of one weight, `scipy.stats.gaussian_kde`;
        - a density as a function, `logunif_kl.posteriors.Density`.
    zero_at : float, optional
        The alpha at which -KL of the *Gaussian* vanishes, as in `logunif_kl.neg_kl`. Every
        posterior gets the same constant, so that posteriors can be compared. With the default,
        infinity, a zero-mean Gaussian has -KL = 0, and -KL increases with the joint entropy of
        log|w| and the sign of w.
    log_c : float, optional
        The logarithm of the prior's C, in place of `zero_at`.
    method : {"auto", "closed", "quadrature"}, optional
        "auto" uses the closed form if there is one, and quadrature otherwise.
    points : iterable of float, optional
        Weights at which the density jumps or is singular, such as the edges of a histogram
        (`scipy.stats.rv_histogram`), or where it has a narrow peak. The ends of the support, 0,
        `loc` and the median are known already. Only the quadrature uses these points.
    prior : TruncatedLogUniform, HorseshoePrior, PowerPrior or frozen scipy.stats.t, optional
        A prior in place of C/|w|. The `loc` of Student's t must be 0. As its df tends to 0,
        -KL - log(df/2) tends to the -KL of C/|w| with ``log_c=0``.
        `logunif_kl.posteriors.TruncatedLogUniform` has a similar limit ([2]_, section 3).
    return_error : bool, optional
        Whether to return an error estimate too.

    Returns
    -------
    value : float
        -KL.
    error : float
        Only with ``return_error=True``: an estimate that should be at least the absolute error. For
        a closed form it bounds the rounding error. For the quadrature it includes the effect of
        probability that the quadrature missed. If more than 1e-9 is missing, the error is infinite,
        because that probability may be in an arbitrarily narrow spike. Errors of SciPy's ``logpdf``
        are not included.

    Raises
    ------
    TypeError
        If `dist` is not one of these, or if another argument is of a wrong type.
    ValueError
        If a parameter of `dist` is an array, or a value that SciPy does not accept; if `dist` is a
        von Mises distribution on the circle, or an estimate in several dimensions; if `method` is
        unknown; if it is "closed" and no closed form is known; if `prior` is not symmetric, or is
        given with `zero_at` or `log_c`; or if `logunif_kl.neg_kl` rejects `zero_at` or `log_c`.
    ArithmeticError
        If the density integrates to more than 1, or if the error exceeds 1e-6 max(1, |value|) and
        `return_error` is false. In the second case, either log|w| is spread beyond the range of
        float64, so that -KL may be infinite, or the quadrature missed part of the probability.

    Notes
    -----
    H(q) - E log|w| can be finite when H(q) and E log|w| are infinite. One integral therefore
    computes the difference.

    Closed forms are known for norm, uniform, laplace, expon and cauchy with any `loc`, and with
    ``loc=0`` for arcsine, beta, betaprime, burr, burr12, chi, chi2, dgamma, dweibull, erlang, f,
    fisk, gamma, gengamma, gennorm, halfcauchy, halfgennorm, halflogistic, halfnorm, invgamma,
    invweibull, levy, logistic, loglaplace, lognorm, loguniform, maxwell, nakagami, pareto,
    powerlaw, rayleigh, semicircular, t, weibull_max and weibull_min; each is tested against the
    quadrature. A closed form takes microseconds. The quadrature takes tenths of a second, and its
    error is typically below 1e-12.

    References
    ----------
    .. [1] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
       Reparameterization Trick" (2015), appendix C.
    .. [2] J. Hron, A. Matthews, Z. Ghahramani, "Variational Bayesian Dropout: Pitfalls and Fixes"
       (2018).

    Examples
    --------
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import neg_kl_posterior
    >>> round(neg_kl_posterior(stats.norm(1.0, 1.0)), 13)
    -0.426685604296
    >>> round(neg_kl_posterior(stats.laplace(1.0, 0.5)), 12)
    -0.899542909484
    >>> value, error = neg_kl_posterior(stats.gumbel_r(0.2, 0.1), log_c=0.0, return_error=True)
    >>> round(value, 9), error < 1e-11
    (0.760462111, True)
    """
    constant = additive_constant(zero_at, log_c)
    named = checked_points(points)
    read = standardised(dist, named)
    if prior is not None:
        if log_c is not None or zero_at is not ZERO_AT_INFINITY:
            raise ValueError(
                "prior was given with zero_at or log_c, but with a prior there is no constant to "
                "choose: pass only one of the three"
            )
        if isinstance(prior, TruncatedLogUniform):
            if not holds(prior, read):
                return (-math.inf, 0.0) if return_error else -math.inf
            constant = additive_constant(log_c=prior.log_c)
        else:
            # Use quadrature, because no closed form is known for this prior.
            read = replace(read, over=correction(prior))
            method = "quadrature" if method == "auto" else method
            constant = PROPER_CONSTANT
    value, error, mass = centred(read, method, named)
    refuse_mass(mass, read)
    value += constant
    error += 2.0**-52 * (abs(constant) + abs(value))
    if return_error:
        return value, error
    refuse_above(error, value, mass, read)
    return value


def _negative(found: Any) -> Any:
    """Negate a value, but not its error. Return 0, not -0, for 0."""
    return (0.0 - found[0], found[1]) if isinstance(found, tuple) else 0.0 - found


kl_posterior: Final = positive(
    neg_kl_posterior,
    """
    >>> from scipy import stats
    >>> from logunif_kl.posteriors import kl_posterior
    >>> round(kl_posterior(stats.laplace(1.0, 0.5)), 12)
    0.899542909484
    """,
    _negative,
)


def centred(
    dist: Standardised, method: str, points: tuple[float, ...]
) -> tuple[float, float, float]:
    """Return -KL for ``zero_at=inf``, its error, and the probability that the quadrature found."""
    if method not in METHODS:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, but {shown(method)} was given: pass one "
            "of these, or leave it out"
        )
    unknown = method == "quadrature" or dist.over is not None
    known = None if unknown else closed_form(dist)
    if known is not None:
        return *known, 1.0
    if method == "closed":
        prior = "" if dist.over is None else " and this prior"
        raise ValueError(
            f'no closed form of -KL is known for {dist.text}{prior}: pass method="auto" or '
            'method="quadrature"'
        )
    return from_sides(dist, signed_entropies(dist, points))


def from_sides(dist: Standardised, sides: tuple[Side, Side]) -> tuple[float, float, float]:
    """Return what `centred` returns, given the integrals over negative and positive weights."""
    entropy, error, mass = total(dist, sides)
    return entropy - PROPER_CONSTANT, error, mass


def refuse_mass(mass: float, dist: Standardised) -> None:
    """Raise ArithmeticError if the density integrates to more than 1."""
    if mass > 1.0 + REFUSED_FROM:
        agree = "" if dist.is_function else ", and pass a distribution whose pdf and cdf agree"
        raise ArithmeticError(
            f"the density of {dist.text} integrates to {mass:.6g} or more, but it must integrate "
            f"to 1: divide its pdf by that number{agree}"
        )


def refuse_above(error: float, value: float, mass: float, dist: Standardised) -> None:
    """Raise ArithmeticError if the error is too large to return the value alone."""
    if error < math.inf and error <= REFUSED_FROM * max(1.0, abs(value)):
        return
    divide = "divide it by its integral if that is not 1, " if dist.is_function else ""
    raise ArithmeticError(
        f"-KL of {dist.text} was found only to within {error:.1e}, with {mass:.9g} of the "
        "probability: name the jumps, singularities and narrow peaks of its density in points=, "
        f"{divide}or get the value and its error by neg_kl_posterior(..., return_error=True)"
    )
