"""Evaluate a fitted formula with any array namespace, or write it as source code.

With softplus(y) = log(1 + exp(y)) and sigmoid(y) = exp(-softplus(-y)), the two families are

    polynomial:  constant + x/2 + c1 alpha + ... + cn alpha^n,            alpha = exp(x)
    sigmoid:     constant - softplus(-x)/2 - sum_i k1_i sigmoid(-k2_i - k3_i x)

The second formula, with one term, is Molchanov's k1 sigmoid(k2 + k3 x) - 1/2 log(1 + 1/alpha) - k1.
In the form above no digits cancel as x -> inf, and no exponential overflows, even in derivatives.
"""

from __future__ import annotations

import dataclasses
import keyword
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import shown

POLYNOMIAL, SIGMOID = "polynomial", "sigmoid"
#: The largest degree of a polynomial, and the largest number of sigmoids.
MOST = {POLYNOMIAL: 60, SIGMOID: 5}
NAME = "neg_kl"
Writer = Callable[["Formula", str, bool, str], str]


@dataclass(frozen=True, slots=True)
class Formula:
    """A family's name and a formula's constants. `value` and `slope` take any array namespace."""

    family: str
    constant: float
    coefficients: tuple[float, ...]

    def terms(self) -> list[tuple[float, float, float]]:
        """Group the coefficients of sigmoids by term, as (k1, k2, k3)."""
        c = self.coefficients
        return list(zip(c[0::3], c[1::3], c[2::3], strict=True))

    def value(self, xp: Any, x: Any) -> Any:
        """Return -KL at x = log alpha, computed with the namespace `xp`."""
        if self.family == POLYNOMIAL:
            return 0.5 * x + (_horner(xp.exp(x), self.coefficients) + self.constant)
        zero = xp.zeros_like(x)
        total = -0.5 * xp.logaddexp(zero, -x)
        for k1, k2, k3 in self.terms():
            total = total - k1 * xp.exp(-xp.logaddexp(zero, k2 + k3 * x))
        return total + self.constant if self.constant else total

    def slope(self, xp: Any, x: Any) -> Any:
        """Return d(-KL)/dx at x = log alpha."""
        if self.family == POLYNOMIAL:
            scaled = tuple(k * c for k, c in enumerate(self.coefficients, 1))
            return 0.5 + _horner(xp.exp(x), scaled)
        zero = xp.zeros_like(x)
        total = 0.5 * xp.exp(-xp.logaddexp(zero, x))
        for k1, k2, k3 in self.terms():
            z = k2 + k3 * x
            total = total + k1 * k3 * xp.exp(-xp.logaddexp(zero, z) - xp.logaddexp(zero, -z))
        return total


def _horner(alpha: Any, coefficients: tuple[float, ...]) -> Any:
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + alpha * total
    return alpha * total


def shifted(formula: Formula, constant: float) -> Formula:
    """Add a constant to a formula."""
    if math.isinf(formula.constant + constant):
        raise ValueError(
            f"the constant of the formula, {formula.constant:g}, plus {constant:g} leaves the "
            "range of a double: pass a log_c closer to 0"
        )
    return dataclasses.replace(formula, constant=formula.constant + constant)


def check_language(language: str, gradient: bool, dtype: str, name: Any) -> None:
    """Raise ValueError if a formula cannot be written in the language, with these options."""
    if language not in WRITERS:
        raise ValueError(
            f"there is no language {shown(language)}: choose from {', '.join(WRITERS)}"
        )
    if gradient and language == "latex":
        raise ValueError("gradient=True was given with language 'latex': choose 'c' or 'python'")
    if dtype != "float64" and language != "c":
        raise ValueError(
            f"dtype={dtype!r} was given with language {language!r}, but only C code has a type of "
            "its own: leave dtype out, or choose 'c'"
        )
    if name != NAME and language == "latex":
        raise ValueError(
            f"name={name!r} was given with language 'latex', which has no function: leave name out"
        )
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"name must be an identifier, but {shown(name)} was given")


def source(
    formula: Formula, language: str, note: str, gradient: bool, dtype: str, name: str
) -> str:
    """Write a formula as source code, with ``note`` as a comment."""
    write = WRITERS[language] if dtype == "float64" else _program(_C_FLOAT)
    used = re.search(rf"\b{name}(_grad)?\b", write(formula, "", gradient, NAME))
    if name != NAME and (used or keyword.iskeyword(name)):
        raise ValueError(f"the code uses the name {name!r} itself: choose another name")
    return write(formula, note, gradient, name)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a language writes exp, softplus, sigmoid and a function. The defaults are Python's."""

    exp: str
    softplus: str
    sigmoid_of: str  # sigmoid(-x)
    head: str
    helper: str = ""
    open: str = "def {name}(log_alpha):\n{}"
    comment: str = "    # {}\n"
    end: str = ""
    close: str = ""
    between: str = "\n\n"
    local: str = ""
    number: Callable[[float], str] = repr


_PYTHON = _Dialect(
    exp="math.exp({})",
    softplus="_softplus({})",
    sigmoid_of="math.exp(-_softplus({}))",
    head="import math\n\n\n",
    helper="def _softplus(y):\n    return max(y, 0.0) + math.log1p(math.exp(-abs(y)))\n\n\n",
)
_NUMPY = _Dialect(
    exp="np.exp({})",
    softplus="np.logaddexp(0.0, {})",
    sigmoid_of="np.exp(-np.logaddexp(0.0, {}))",
    head="import numpy as np\n\n\n",
)
_TORCH = _Dialect(
    exp="torch.exp({})",
    softplus="-torch.nn.functional.logsigmoid(-({}))",
    sigmoid_of="torch.sigmoid(-({}))",
    head="import torch\n\n\n",
)
_JAX = _Dialect(
    exp="jax.numpy.exp({})",
    softplus="jax.nn.softplus({})",
    sigmoid_of="jax.nn.sigmoid(-({}))",
    head="import jax\n\n\n",
)
_C = _Dialect(
    exp="exp({})",
    softplus="softplus({})",
    sigmoid_of="exp(-softplus({}))",
    head="#include <math.h>\n\n",
    helper="static double softplus(double y)\n{\n"
    "    return fmax(y, 0.0) + log1p(exp(-fabs(y)));\n}\n\n",
    open="{}double {name}(double log_alpha)\n{{\n",
    comment="/* {} */\n",
    end=";",
    close="}\n",
    between="\n",
    local="const double ",
)


def _float(number: float) -> str:
    """Write the shortest literal that C reads as the nearest float."""
    return f"{np.float32(number)!s}f"


_C_FLOAT = dataclasses.replace(
    _C,
    exp="expf({})",
    sigmoid_of="expf(-softplus({}))",
    helper="static float softplus(float y)\n{\n"
    "    return fmaxf(y, 0.0f) + log1pf(expf(-fabsf(y)));\n}\n\n",
    open="{}float {name}(float log_alpha)\n{{\n",
    local="const float ",
    number=_float,
)


def _program(dialect: _Dialect) -> Writer:
    def write(formula: Formula, note: str, gradient: bool, name: str) -> str:
        polynomial = formula.family == POLYNOMIAL
        code = dialect.head + ("" if polynomial else dialect.helper)
        functions = [(name, note, _value)]
        if gradient:
            functions.append((f"{name}_grad", "its derivative in log_alpha", _slope))
        parts = []
        for each, about, lines in functions:
            comments = "".join(dialect.comment.format(line) for line in about.splitlines())
            body = dialect.open.format(comments, name=each)
            if polynomial:
                exponential = dialect.exp.format("log_alpha")
                body += f"    {dialect.local}alpha = {exponential}{dialect.end}\n"
                body += f"    return {lines(formula, dialect)[0]}{dialect.end}\n"
            else:
                inner = "".join(f"        {line}\n" for line in lines(formula, dialect))
                body += f"    return (\n{inner}    ){dialect.end}\n"
            parts.append(body + dialect.close)
        return code + dialect.between.join(parts)

    return write


def _value(formula: Formula, dialect: _Dialect) -> list[str]:
    number, half = dialect.number, dialect.number(0.5)
    if formula.family == POLYNOMIAL:
        nested = _nested(formula.coefficients, number)
        constant = _signed(formula.constant, number)
        return [f"{half} * log_alpha + (alpha * {nested} {constant})"]
    lines = [f"-{half} * {dialect.softplus.format('-log_alpha')}"]
    if dialect is _TORCH:
        lines = ["0.5 * torch.nn.functional.logsigmoid(log_alpha)"]
    for k1, k2, k3 in formula.terms():
        z = f"{number(k2)} {_signed(k3, number)} * log_alpha"
        lines.append(f"{_signed(-k1, number)} * {dialect.sigmoid_of.format(z)}")
    if formula.constant:
        lines.append(_signed(formula.constant, number))
    return lines


def _slope(formula: Formula, dialect: _Dialect) -> list[str]:
    number, half = dialect.number, dialect.number(0.5)
    if formula.family == POLYNOMIAL:
        scaled = tuple(k * c for k, c in enumerate(formula.coefficients, 1))
        return [f"{half} + alpha * {_nested(scaled, number)}"]
    lines = [f"{half} * {dialect.sigmoid_of.format('log_alpha')}"]
    for k1, k2, k3 in formula.terms():
        z = f"{number(k2)} {_signed(k3, number)} * log_alpha"
        both = f"{dialect.sigmoid_of.format(z)} * {dialect.sigmoid_of.format(f'-({z})')}"
        lines.append(f"{_signed(k1 * k3, number)} * {both}")
    return lines


def _nested(coefficients: tuple[float, ...], number: Callable[[float], str]) -> str:
    *before, last = coefficients
    nested = number(last)
    for c in reversed(before):
        nested = f"({number(c)} + alpha * {nested})"
    return nested


def _signed(value: float, number: Callable[[float], str]) -> str:
    return f"- {number(-value)}" if value < 0.0 else f"+ {number(value)}"


def _latex(formula: Formula, note: str, gradient: bool, name: str) -> str:
    del note, gradient, name
    x = r"\log\alpha"
    if formula.family == POLYNOMIAL:
        parts = [rf"\tfrac{{1}}{{2}} {x}", _latex_signed(formula.constant)]
        for power, c in enumerate(formula.coefficients, 1):
            raised = r"\alpha" if power == 1 else rf"\alpha^{{{power}}}"
            parts.append(rf"{_latex_signed(c)}\, {raised}")
        return rf"-\mathrm{{KL}} \approx {' '.join(parts)}"
    parts = [r"-\tfrac{1}{2} \log(1 + \alpha^{-1})"]
    for k1, k2, k3 in formula.terms():
        inner = rf"{_latex_number(k2)} {_latex_signed(k3)} {x}"
        parts.append(rf"{_latex_signed(k1)}\, \sigma({inner})")
    rest = formula.constant - sum(k1 for k1, _, _ in formula.terms())
    parts.append(_latex_signed(rest))
    return rf"-\mathrm{{KL}} \approx {' '.join(parts)}"


def _latex_number(number: float) -> str:
    mantissa, _, exponent = repr(number).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _latex_signed(number: float) -> str:
    return f"- {_latex_number(-number)}" if number < 0.0 else f"+ {_latex_number(number)}"


# The functions that write a formula, by language.
WRITERS: dict[str, Writer] = {
    "python": _program(_PYTHON),
    "numpy": _program(_NUMPY),
    "torch": _program(_TORCH),
    "jax": _program(_JAX),
    "c": _program(_C),
    "latex": _latex,
}
