"""`Fit`: a fitted formula, the request that it answers, and its errors."""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._errors import shown
from ..methods import Extremum
from . import _request as request
from ._call import call
from ._error_measures import NOTHING, WIDE, Errors, fixed, measure
from ._fields import checked
from ._formula import POLYNOMIAL, Formula, text
from ._json import read, write
from ._plot import Panel, draw, title


@dataclass(frozen=True, slots=True)
class Fit:
    """A formula for -KL, made by `fit_polynomial` or `fit_sigmoid`.

    Immutable, comparable and hashable. The constructor raises a `ValueError` for a field that is
    not as below. With x = log alpha the formula is, for ``zero_at=inf``::

        polynomial:  constant + x/2 + c1 alpha + ... + cn alpha^n
        sigmoid:     sum_i k1_i sigmoid(k2_i + k3_i x) - 1/2 log(1 + 1/alpha) - sum_i k1_i

    Attributes
    ----------
    family : str
        ``"polynomial"`` or ``"sigmoid"``.
    coefficients : tuple of float
        (c1, ..., cn), or (k1, k2, k3) of each term in turn.
    constant : float
        The constant of a polynomial for ``zero_at=inf``; 0 for sigmoids, whose value vanishes as
        alpha -> inf.
    log_alpha_range : tuple of float
        Where it was fitted.
    norm, target, grid : str
        As asked for.
    weight : str or None
        As asked for; ``"callable"`` for a function.
    exact_limit : bool
        Whether the formula was held to the exact limit as alpha -> 0 (``free_constant=False``,
        ``fix_limit=True``).
    level : float
        The minimum: the largest weighted error, or the root mean square.
    extrema : tuple of Extremum
        The points where the error of a minimax fit has magnitude ``level``. The errors of a single
        quantity alternate in sign there (equioscillation).
    inside : Errors
        Measured over ``log_alpha_range``.
    wide : Errors
        Measured over log_alpha in [-10, 10], whatever the range of the fit.

    Examples
    --------
    >>> from logunif_kl.fitting import fit_sigmoid
    >>> fit = fit_sigmoid(1)
    >>> print(f"{fit.max_error:.2e}, {100 * fit.max_grad_error:.1f} %")
    4.97e-03, 3.5 %
    >>> print(f"{fit.neg_kl(0.0):.4f}")
    -0.4308
    """

    family: str
    coefficients: tuple[float, ...]
    constant: float
    log_alpha_range: tuple[float, float]
    norm: str
    target: str
    grid: str
    weight: str | None
    exact_limit: bool
    level: float
    extrema: tuple[Extremum, ...]
    inside: Errors
    wide: Errors

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in checked(given).items():
            object.__setattr__(self, name, value)

    @property
    def max_error(self) -> float:
        """Worst absolute error of -KL on the range of the fit."""
        return self.inside.max_error

    @property
    def rms_error(self) -> float:
        """Root of the mean square error of -KL on the range, uniformly in the grid's variable."""
        return self.inside.rms_error

    @property
    def max_grad_error(self) -> float:
        """Worst relative error of d(-KL)/d log alpha on the range of the fit."""
        return self.inside.max_grad_error

    @property
    def terms(self) -> int:
        """The polynomial's degree, or the number of sigmoids."""
        n = len(self.coefficients)
        return n if self.family == POLYNOMIAL else n // 3

    def neg_kl(
        self, log_alpha: Any, *, zero_at: float = ZERO_AT_INFINITY, log_c: float | None = None
    ) -> Any:
        """Evaluate the fitted -KL: *maximise* it (ELBO sign).

        Parameters
        ----------
        log_alpha : array_like or array
            Of any shape, from NumPy, dask, xarray, an array-API namespace, PyTorch or JAX.
        zero_at, log_c : float, optional
            The constant, as in `logunif_kl.neg_kl`. It adds the same number to the fit and to the
            exact value, so the error is the same under every convention.

        Returns
        -------
        array or scalar
            Of the shape, floating type and library of `log_alpha`; a tensor or JAX array can be
            differentiated.

        Raises
        ------
        TypeError, ValueError
            As for `logunif_kl.neg_kl`.
        """
        return call(self._formula, "value", log_alpha, additive_constant(zero_at, log_c))

    def neg_kl_grad(self, log_alpha: Any) -> Any:
        """Evaluate the derivative of the fitted -KL in log alpha; see `neg_kl`."""
        return call(self._formula, "slope", log_alpha, 0.0)

    def formula(
        self,
        language: str = "python",
        *,
        zero_at: float = ZERO_AT_INFINITY,
        log_c: float | None = None,
    ) -> str:
        r"""Write the formula as source code that does not need this library.

        Parameters
        ----------
        language : {"python", "numpy", "torch", "jax", "c", "latex"}
            All but ``"latex"`` define a function ``neg_kl(log_alpha)`` that gives the same numbers
            up to rounding. With ``"python"`` and ``"c"`` it takes one float.
        zero_at, log_c : float, optional
            The constant of the written formula, as in `neg_kl`.

        Returns
        -------
        str
            Every number is written with enough digits to read back to the same double.

        Raises
        ------
        ValueError
            If there is no such language, or for a convention as in `logunif_kl.neg_kl`.

        Examples
        --------
        >>> from logunif_kl.fitting import fit_polynomial
        >>> print(fit_polynomial(1).formula("python"))
        import math
        <BLANKLINE>
        <BLANKLINE>
        def neg_kl(log_alpha):
            # -KL(q || p), to be maximised; for log_alpha in [-2.99573, 0]
            # worst error 6.7e-02, of the gradient 91 %
            alpha = math.exp(log_alpha)
            return 0.5 * log_alpha + (alpha * 0.19069... - 0.55015...)
        <BLANKLINE>
        """
        constant = additive_constant(zero_at, log_c)
        low, high = self.log_alpha_range
        every = math.isinf(low) and math.isinf(high)
        where = "every log_alpha" if every else f"log_alpha in [{low:.6g}, {high:.6g}]"
        note = (
            f"-KL(q || p), to be maximised; for {where}\n"
            f"worst error {self.max_error:.1e}, of the gradient {100.0 * self.max_grad_error:.2g} %"
        )
        return text(self._formula, language, constant, note)

    def rounded(self, digits: int) -> Fit:
        """Round every number to a number of significant digits, and measure the errors again.

        Parameters
        ----------
        digits : int
            From 1 to 17. ``level`` and ``extrema`` remain those of the fit before rounding.

        Returns
        -------
        Fit

        Examples
        --------
        >>> from logunif_kl.fitting import fit_sigmoid
        >>> short = fit_sigmoid(1).rounded(4)
        >>> short.coefficients, f"{short.max_error:.2e}"
        ((0.6302, 1.869, 1.498), '4.98e-03')
        """
        if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 17:
            raise ValueError(
                f"digits must be a whole number from 1 to 17, but {shown(digits)} was given: "
                "pass how many significant digits to keep"
            )
        formula = Formula(
            self.family,
            float(f"{self.constant:.{digits - 1}e}"),
            tuple(float(f"{c:.{digits - 1}e}") for c in self.coefficients),
        )
        return dataclasses.replace(
            self,
            coefficients=formula.coefficients,
            constant=formula.constant,
            inside=measure(formula, *self.log_alpha_range, self.grid),
            wide=measure(formula, *WIDE, self.grid),
        )

    def errors(
        self,
        log_alpha_range: Any = None,
        high: float | None = None,
        *,
        low: float | None = None,
    ) -> Errors:
        """Measure the errors over any other range of log alpha.

        Parameters
        ----------
        log_alpha_range : (float, float)
            The range; an end may be infinite.
        high, low : float, optional
            .. deprecated:: 0.2.0
               ``errors(low, high)``; pass one pair.

        Returns
        -------
        Errors

        Raises
        ------
        TypeError, ValueError
            If it is no pair of numbers that ascend, or does not meet [-20, 20].

        Examples
        --------
        >>> from logunif_kl.fitting import fit_sigmoid
        >>> print(f"{fit_sigmoid(1).errors((-2.0, 0.0)).max_error:.2e}")
        4.97e-03
        """
        if high is not None:
            first = log_alpha_range if low is None else low
            log_alpha_range = (first, high)
            warnings.warn(
                "Fit.errors(low, high) is deprecated: pass a pair, Fit.errors((low, high))",
                DeprecationWarning,
                stacklevel=2,
            )
        low_end, high_end = request.log_alpha_range(log_alpha_range)
        return measure(self._formula, low_end, high_end, self.grid)

    def to_json(self) -> str:
        """Write the fit as JSON, from which `from_json` makes an equal `Fit`, to the last bit.

        JSON has no infinite numbers: they become strings that ``float`` reads.
        """
        return write(dataclasses.asdict(self))

    @staticmethod
    def from_json(document: str) -> Fit:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is not JSON, or does not hold a fit. The message names the wrong field.

        Examples
        --------
        >>> from logunif_kl.fitting import Fit, fit_polynomial
        >>> fit = fit_polynomial(3)
        >>> Fit.from_json(fit.to_json()) == fit
        True
        """
        return Fit(**read(document, {field.name for field in dataclasses.fields(Fit)}))

    def plot(self, path: Any = None) -> Any:
        """Draw the errors of value and gradient, with the levelled extrema.

        Parameters
        ----------
        path : str or path, optional
            The file to save to. Its suffix gives the format. An old one is replaced when the new
            one is complete.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        headings = {
            "value": f"Error of the value, at most {self.max_error:.2e}",
            "gradient": f"Relative error of the gradient, at most {self.max_grad_error:.2e}",
        }
        worst = {"value": self.max_error, "gradient": self.max_grad_error}
        panels = [
            Panel(
                quantity=q.name,
                title=headings[q.name],
                error=partial(q.error, NOTHING),
                worst=worst[q.name],
                extrema=[e.log_alpha for e in self.extrema if e.quantity == q.name],
            )
            for q in fixed(self._formula, "both", None)
        ]
        heading = title(self.family, self.terms, self.norm, self.log_alpha_range)
        return draw(heading, self.log_alpha_range, panels, path)

    @property
    def _formula(self) -> Formula:
        return Formula(self.family, self.constant, self.coefficients)
