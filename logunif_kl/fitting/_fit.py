"""`Fit`: a fitted formula, its errors, and the options of the fit."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .._convention import ZERO_AT_INFINITY, additive_constant
from .._display import Table, Tabular
from ..methods import Extremum
from ..methods._arguments import choice, integer
from . import _arguments as arguments
from ._call import call
from ._error_measures import WIDE, Errors, measure
from ._fields import checked, read, write
from ._formula import NAME, POLYNOMIAL, Formula, check_language, shifted, source
from ._plot import draw
from ._precision import comment, single
from ._tables import description, tables


@dataclass(frozen=True, slots=True)
class Fit(Tabular):
    r"""A fitted formula for -KL, returned by `fit_polynomial` and `fit_sigmoid`.

    A `Fit` is immutable, comparable and hashable. An invalid field raises `ValueError`.
    With x = log alpha the formula is, for ``zero_at=inf``:

    .. math::

        \text{polynomial:} \quad & \mathrm{constant} + \tfrac x2
        + c_1 \alpha + \dots + c_n \alpha^n \\
        \text{sigmoid:} \quad & \sum_i k_{1i}\, \mathrm{sigmoid}(k_{2i} + k_{3i} x)
        - \tfrac12 \log(1 + 1/\alpha) - \sum_i k_{1i}

    Attributes
    ----------
    family : str
        ``"polynomial"`` or ``"sigmoid"``.
    coefficients : tuple of float
        (c1, ..., cn), or (k1, k2, k3) of each term in turn.
    constant : float
        The constant of a polynomial for ``zero_at=inf``. For sigmoids it is 0, because the
        formula above vanishes as alpha -> inf.
    log_alpha_range : tuple of float
        The range of the fit.
    norm, target, grid : str
        The options of the fit.
    weight : str or None
        The weight of the fit; ``"callable"`` for a function.
    exact_limit : bool
        Whether the fit was constrained to be exact as alpha -> 0 (by ``free_constant=False`` or
        ``fix_limit=True``).
    level : float
        The objective at the solution: the largest weighted error, or the root mean square error.
    extrema : tuple of Extremum
        The points where the error of a minimax fit has magnitude ``level``. If ``target`` is not
        ``"both"``, the error alternates in sign there (equioscillation).
    inside : Errors
        The errors measured over ``log_alpha_range``.
    wide : Errors
        The errors measured over log_alpha in [-10, 10], whatever the range of the fit.

    Examples
    --------
    >>> from logunif_kl.fitting import fit_sigmoid
    >>> fit = fit_sigmoid(1)
    >>> print(f"{fit.max_error:.2e}, {100 * fit.max_grad_error:.1f} %, {fit.neg_kl(0.0):.4f}")
    4.97e-03, 3.5 %, -0.4308
    >>> fit
    <Fit: one sigmoid, minimax of the value, every alpha; max_error=0.00497, max_grad_error=0.0355>
    >>> print(fit)
    One sigmoid, minimax of the value, every alpha
    constant              number
    k1         0.6302...
    k2         1.8687...
    k3        1.4978...
    <BLANKLINE>
    Worst errors
    log_alpha in     value     at       rms  gradient    at
    [-inf, inf]   4.97e-03   -inf  2.93e-03    3.55 %  2.65
    [-10, 10]     4.97e-03  ...    2.93e-03    3.55 %  2.65
    <BLANKLINE>
    The error alternates at 4 points
    of     log_alpha          error
    ...
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

    def __repr__(self) -> str:
        errors = f"max_error={self.max_error:.3g}, max_grad_error={self.max_grad_error:.3g}"
        return f"<Fit: {description(self)}; {errors}>"

    def _tables(self) -> list[Table]:
        return tables(self)

    @property
    def max_error(self) -> float:
        """Worst absolute error of -KL on the range of the fit."""
        return self.inside.max_error

    @property
    def rms_error(self) -> float:
        """Root mean square error of -KL on the range, averaged over the variable ``grid``."""
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
            Of any shape: an array or a tensor of any library that `logunif_kl.neg_kl` takes.
        zero_at, log_c : float, optional
            The constant, as in `logunif_kl.neg_kl`. The exact value has the same constant, so the
            error of the fit does not depend on it.

        Returns
        -------
        array or scalar
            The fitted -KL, with the shape, floating type and library of `log_alpha`. The result
            for a tensor can be differentiated.

        Raises
        ------
        TypeError, ValueError
            The same as for `logunif_kl.neg_kl`.
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
        gradient: bool = False,
        dtype: str = "float64",
        name: str = NAME,
    ) -> str:
        r"""Write the formula as source code that does not need this library.

        Parameters
        ----------
        language : {"python", "numpy", "torch", "jax", "c", "latex"}
            All but ``"latex"`` define a function ``name(log_alpha)`` that agrees with
            `Fit.neg_kl` up to rounding. For ``"python"`` and ``"c"`` (C99) this function takes one
            float.
        zero_at, log_c : float, optional
            The constant of the written formula, as in `neg_kl`.
        gradient : bool
            Also write the derivative in log alpha, as a function ``name_grad(log_alpha)``.
        dtype : {"float64", "float32"}
            The type in which C code computes. With ``"float32"`` the errors in the comment include
            those of rounding the constants and of each operation, if ``expf`` and ``log1pf`` are
            within 2 ulp. An infinite range is cut at log alpha = +-40.
        name : str
            The name of the function.

        Returns
        -------
        str
            Every number has enough digits to read back to the same double, or float. The errors in
            the comment are rounded up.

        Raises
        ------
        ValueError
            If the language is not one of these, if `zero_at` or `log_c` is not valid, if `dtype` is
            ``"float32"`` and the language is not C, or if `name` is not an identifier or the code
            uses it otherwise.

        Examples
        --------
        >>> from logunif_kl.fitting import fit_polynomial
        >>> print(fit_polynomial(1).formula("python"))
        import math
        <BLANKLINE>
        <BLANKLINE>
        def neg_kl(log_alpha):
            # -KL(q || p), to be maximised; for log_alpha in [-2.99573, 0]
            # worst error 6.73e-02, of the gradient 90.6 %
            alpha = math.exp(log_alpha)
            return 0.5 * log_alpha + (alpha * 0.19069... - 0.55015...)
        <BLANKLINE>
        """
        choice("dtype", dtype, arguments.DTYPES)
        check_language(language, gradient, dtype, name)
        constant = additive_constant(zero_at, log_c)
        formula = shifted(self._formula, constant)
        if dtype == "float32":
            formula = single(formula)
        return source(formula, language, comment(self, dtype, constant), gradient, dtype, name)

    def rounded(self, digits: int) -> Fit:
        """Round every number to a number of significant digits, and measure the errors again.

        Parameters
        ----------
        digits : int
            From 1 to 17. ``level`` and ``extrema`` keep their values from before rounding. The
            rounded fit may miss the `max_error` of the fit: compare its own ``max_error``.

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
        integer("digits", digits, 1, 17, "pass how many significant digits to keep")
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

    def errors(self, log_alpha_range: tuple[float, float]) -> Errors:
        """Measure the errors over another range of log alpha.

        Parameters
        ----------
        log_alpha_range : (float, float)
            The range; an end may be infinite.

        Returns
        -------
        Errors

        Raises
        ------
        TypeError, ValueError
            If the range is not a pair of ascending numbers, or does not overlap [-20, 20].

        Examples
        --------
        >>> from logunif_kl.fitting import fit_sigmoid
        >>> print(f"{fit_sigmoid(1).errors((-2.0, 0.0)).max_error:.2e}")
        4.97e-03
        """
        return measure(self._formula, *arguments.log_alpha_range(log_alpha_range), self.grid)

    def to_json(self) -> str:
        """Write the fit as JSON, which `from_json` reads back exactly, to the last bit."""
        return write(dataclasses.asdict(self))

    @staticmethod
    def from_json(document: str) -> Fit:
        """Make a `Fit` from the JSON that `to_json` or ``logunif-kl fit --json`` wrote.

        The errors are read, not measured. If the text may have been edited, measure them with
        ``fit.errors(fit.log_alpha_range)``.

        Raises
        ------
        ValueError
            If the text is not JSON, or does not hold a fit. The message names an invalid field.

        Examples
        --------
        >>> from logunif_kl.fitting import Fit, fit_polynomial
        >>> fit = fit_polynomial(3)
        >>> Fit.from_json(fit.to_json()) == fit
        True
        """
        return Fit(**read(document))

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """Plot the errors of value and gradient, and mark the points in ``extrema``.

        Parameters
        ----------
        path : str or path, optional
            The file to save to. Its suffix gives the format. An existing file is only replaced once
            the new one is complete.
        ax : pair of matplotlib.axes.Axes, optional
            The axes for the value and for the gradient. By default, those of a new figure: that of
            pyplot, or a figure that is only saved if `path` is given.

        Returns
        -------
        array of matplotlib.axes.Axes
            The two axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not two axes.
        """
        return draw(self, path, ax)

    @property
    def _formula(self) -> Formula:
        return Formula(self.family, self.constant, self.coefficients)
