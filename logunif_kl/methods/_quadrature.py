"""Quadrature of E log|eps|, by two rules that treat the singularity and one that ignores it.

-KL is a constant minus the one-dimensional integral E log|z + r|, z ~ N(0, 1), r = alpha^(-1/2).
Two rules integrate over |z + r| > 0, so that the singularity is at an end of the range. They reach
15 digits with 160 nodes (tanh-sinh) or 100 nodes (Gauss-Legendre); see `_quadrature_rules`.

Gauss-Hermite quadrature, the usual choice for a normal density, is exact for polynomials only. Its
sum of log|z + r| is infinite where r is a node, and too small where r is between nodes. With n
nodes the root mean square of the error over log alpha in [-10, 10] is 0.7/sqrt(n). The rule is
included to show this error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._dispatch import Operation, formula, without_tensors
from .._errors import shown
from . import _quadrature_rules
from ._arguments import choice, integer
from ._method import EVERYWHERE, Declared, Method
from ._operation import operation, pair, value

#: The default number of nodes of each rule.
NODES = {"tanh_sinh": 160, "gauss_legendre": 100, "gauss_hermite": 32}
MOST = 1000


@dataclass(frozen=True)
class _Rule:
    """A function of an array of log alpha that returns -F(u), or u F'(u) if `gradient`."""

    rule: str
    n: int
    gradient: bool = False

    def __call__(self, xp: Any, x: np.ndarray) -> np.ndarray:
        return _quadrature_rules.integrate(self.rule, self.n, x, self.gradient)


# Error estimates are differences from this rule. The error of this rule relative to max(1, |-KL|)
# is below _ROUNDING (measured: 6e-16).
_FINE = _Rule("tanh_sinh", 320)
_ROUNDING = 2e-15


def _operation(rule: Any, n: Any, gradient: bool) -> Operation:
    """Check the caller's arguments, and make an operation from a rule."""
    choice("rule", rule, NODES)
    usual = NODES[rule]
    n = usual if n is None else integer("n", n, 2, MOST, f"pass n={usual}, or leave it out")
    return pair(_Rule(rule, n), _Rule(rule, n, True), on_host=True)[gradient]


def quadrature(
    log_alpha: Any,
    *,
    rule: str = "tanh_sinh",
    n: int | None = None,
    zero_at: float = ZERO_AT_INFINITY,
    log_c: float | None = None,
    dps: int | None = None,
    return_error: bool = False,
) -> Any:
    r"""-KL(q || p) by numerical quadrature of E log|eps|, eps ~ N(1, alpha).

    .. math:: -\mathrm{KL} = \text{constant} + \mathrm E\log|z|
              - \int_{-\infty}^\infty \log|z + r|\, \varphi(z)\, dz,
              \qquad r = \alpha^{-1/2},\quad z \sim N(0, 1)

    Parameters
    ----------
    log_alpha, zero_at, log_c
        The same as for `series`.
    rule : {"tanh_sinh", "gauss_legendre", "gauss_hermite"}, optional
        The first two integrate over |z + r| > 0, and allow for the singularity at |z + r| = 0.
        ``"gauss_hermite"`` is the plain sum w_1 log|z_1 + r| + ... + w_n log|z_n + r|.
    n : int, optional
        The number of nodes, 2 to 1000. The defaults for these three rules are 160, 100 and 32.
    dps : int, optional
        The number of decimal digits, 1 to 1,000, for tanh-sinh quadrature in mpmath with as many
        nodes as needed. Double precision by default.
    return_error : bool, optional
        Whether to return an error estimate as well.

    Returns
    -------
    value : array or scalar
        The same as for `series`; infinite if a node of ``"gauss_hermite"`` hits the singularity.
    error : float64 array or scalar
        With ``return_error=True``: an upper bound of the error, including the rounding to the type
        of the value; 0 at infinite ``log_alpha``. The bound is always a NumPy array or scalar.

    Raises
    ------
    TypeError, ValueError, OverflowError
        The same as for `series`, or if `rule` is unknown or `n` is not an int in its range. With
        `dps`, also if `n`, ``return_error=True`` or a rule other than tanh-sinh is given.

    Notes
    -----
    The worst error relative to max(1, abs(-KL)), for every log alpha, is 1.2e-15 for
    ``"tanh_sinh"`` and 1.0e-15 for ``"gauss_legendre"``. As alpha -> inf, with the default
    constant, these bounds also hold relative to -KL itself. The error of ``"gauss_hermite"``
    has no bound, because the sum is infinite where r is a node. Its root mean square over log alpha
    in [-10, 10] is 0.12 with 32 nodes and 0.07 with 100. The error does not vanish as alpha -> inf.

    The error estimate is the difference from tanh-sinh with 320 nodes, plus a bound on the rounding
    errors.

    References
    ----------
    The integral: D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
    Reparameterization Trick", NIPS 2015, arXiv:1506.02557, appendix C (after Eq. 42). The rule:
    H. Takahasi, M. Mori, "Double exponential formulas for numerical integration", Publications of
    the RIMS 9 (1974).

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.quadrature(0.0):.14f}")
    -0.42668560429604
    >>> naive, error = lk.methods.quadrature(0.0, rule="gauss_hermite", return_error=True)
    >>> print(f"{naive:.3f}, give or take {error:.3f}")
    -0.486, give or take 0.059
    """
    if dps is not None:
        given = {"rule": rule != "tanh_sinh", "n": n is not None, "return_error": return_error}
        if any(given.values()):
            name = next(name for name, is_given in given.items() if is_given)
            raise ValueError(
                f"{name} was given with dps={shown(dps)}, which always uses tanh-sinh with as many "
                f"nodes as the digits need: leave out {name} or dps"
            )
        from .arbitrary_precision import precision, quadrature

        integer("dps", dps, 1, quadrature.MAX_DPS, "use logunif_kl.methods.series for more")
        return precision.neg_kl(quadrature.gap, log_alpha, zero_at, log_c, dps)
    if return_error:
        without_tensors({"log_alpha": log_alpha})
    result = value(_operation(rule, n, gradient=False), log_alpha, zero_at, log_c)
    if not return_error:
        return result
    return result, _error(result, log_alpha, additive_constant(zero_at, log_c))


def quadrature_grad(log_alpha: Any, *, rule: str = "tanh_sinh", n: int | None = None) -> Any:
    r"""Compute d(-KL)/d log alpha by quadrature, differentiating the density.

    .. math:: \frac{d(-\mathrm{KL})}{d\log\alpha}
              = \frac r2 \int_{-\infty}^\infty z \log|z + r|\, \varphi(z)\, dz

    Differentiating the logarithm instead would give a principal value (Dawson's function). A sum
    over nodes would then be infinite where r is a node.

    Parameters
    ----------
    log_alpha, rule, n
        The same as for `quadrature`, which raises the same errors.

    Returns
    -------
    array or scalar
        Of the shape and floating type of ``log_alpha``; 1/2 at -inf and 0 at inf. The worst
        relative error is 1.6e-15 for ``"tanh_sinh"`` and 2.2e-15 for ``"gauss_legendre"``.

    Examples
    --------
    >>> import logunif_kl as lk
    >>> print(f"{lk.methods.quadrature_grad(0.0):.14f}, exactly {lk.neg_kl_grad(0.0):.14f}")
    0.36238922950354, exactly 0.36238922950354
    """
    return formula(_operation(rule, n, gradient=True), log_alpha=log_alpha)


def _error(result: Any, log_alpha: Any, constant: float) -> Any:
    """Return a bound on the error of a result, in float64."""
    given = np.asarray(result)
    x = np.asarray(log_alpha, dtype=np.float64)
    fine = np.asarray(operation(_FINE).ufunc(x)) + constant
    # _ROUNDING * size covers the errors of `fine` and of its constant. The difference from `fine`
    # includes the rounding of the result to its own type.
    size = np.maximum(np.abs(fine), 1.0 + abs(constant))
    with np.errstate(invalid="ignore"):
        error = np.abs(given.astype(np.float64) - fine) + _ROUNDING * size
    return np.where(np.isinf(x), 0.0, error)[()]


QUADRATURE = Method(
    name="quadrature",
    function=quadrature,
    gradient=quadrature_grad,
    formula="constant + E log|z| - int log|z + alpha^(-1/2)| phi(z) dz, by tanh-sinh",
    equation="appendix C, unnumbered (after Eq. 42)",
    citation="Kingma, Salimans and Welling 2015, arXiv:1506.02557",
    claims=(Declared(EVERYWHERE, 1.2e-15, gradient=1.6e-15),),
    constant="that of the exact value",
    outside="it has no outside; the naive rule, gauss_hermite, is off by 0.1 anywhere",
    kind="numerical",
)
