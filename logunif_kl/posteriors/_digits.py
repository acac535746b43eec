"""The number of significant digits that a posterior keeps (Kingma's appendix A)."""

from __future__ import annotations

import math
from typing import Any

from .._errors import real_number
from .._kl import kl


def significant_digits(log_alpha: Any, base: float = 2, *, relative_to: float | None = None) -> Any:
    r"""Compute how many significant digits the posterior N(mu, alpha mu^2) of a weight keeps.

    With d significant digits in base b, the magnitudes from b^e to b^(e+1) form b^d cells. The
    log-uniform prior gives each cell the same probability, so a cell has the width log(b)/b^d in
    log|w|. A posterior keeps d digits if J = H(q) - E log|w|, the joint entropy of log|w| and the
    sign, equals the entropy of one cell:

    .. math::

        \mathrm{digits} = \log_b \log b - \frac{J}{\log b}
        = \frac{\mathrm{KL} + \log \log b}{\log b}, \qquad \mathrm{log\_c} = 0

    Parameters
    ----------
    log_alpha : array_like or array
        The logarithm of alpha = sigma^2/mu^2, a ratio of *variances*.
    base : float, optional
        2 for bits, 10 for decimal digits, or any other number above 1.
    relative_to : float, optional
        An alpha to compare with. The result is then the number of additional digits, (KL(alpha) -
        KL(relative_to))/log b. ``relative_to=inf`` compares with a zero-mean posterior, and the
        result is never negative.

    Returns
    -------
    array or scalar
        Of the shape, type and library of `log_alpha`. The result is ``inf`` at log_alpha = -inf. It
        is negative, down to -3.49 bits or -0.53 decimal digits, if the posterior keeps less than
        the sign and the exponent. It is NaN only where `log_alpha` is NaN.

    Raises
    ------
    TypeError
        If `log_alpha` does not hold real numbers, or `base` or `relative_to` is not a real number.
    ValueError
        If `base` is not finite and above 1, or `relative_to` is not positive.

    Notes
    -----
    For a proper prior that is uniform in log|w| over n orders of magnitude (factors of b), and
    gives both signs the same probability, the KL is:

    .. math::

        \frac{\mathrm{KL}}{\log b} = \log_b 2 + \log_b n + \mathrm{digits},

    where the terms are the digits of the sign, the exponent and the mantissa. This is Eq. 13 in
    appendix A of [1]_, with its constant. The number of digits does not depend on n. As alpha -> 0,
    digits = log_b(log b) - log_b(2 pi e alpha)/2, so dividing alpha by ten adds half a decimal
    digit. For another posterior, use ``(log(log(b)) - neg_kl_posterior(dist, log_c=0.0))/log(b)``.

    Appendix A states that float32 and float64 span the magnitudes 2^+-8 and 2^+-11. But 8 and 11
    are the numbers of *bits* in their exponents; the magnitudes reach about 2^+-127 and 2^+-1023.
    What limits the digits is the significand, of 24 bits in float32 and 53 in float64. A posterior
    keeps 24 bits at log_alpha = -36.8 and 53 bits at -77.0.

    References
    ----------
    .. [1] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
       Reparameterization Trick" (2015), appendix A.

    Examples
    --------
    A weight known to one part in a thousand, alpha = 1e-6, keeps not quite three decimal digits:

    >>> import math
    >>> from logunif_kl.posteriors import significant_digits
    >>> round(float(significant_digits(math.log(1e-6), base=10)), 3)
    2.746
    >>> round(float(significant_digits(math.log(1e-6))), 3)
    7.39
    >>> round(float(significant_digits(0.0, relative_to=math.inf)), 3)
    0.616
    """
    base = real_number("base", base)
    if not 1.0 < base < math.inf:
        raise ValueError(
            f"base must be finite and above 1, but {base!r} was given: pass 2 for bits or 10 for "
            "decimal digits"
        )
    unit = math.log(base)
    if relative_to is None:
        return kl(log_alpha, log_c=-math.log(unit)) / unit
    relative_to = real_number("relative_to", relative_to)
    if not relative_to > 0.0:
        raise ValueError(
            f"relative_to must be a positive alpha = sigma^2/mu^2, or infinity, but {relative_to!r}"
            " was given: to compare with log_alpha = x, pass math.exp(x)"
        )
    return kl(log_alpha, zero_at=relative_to) / unit
