"""Check a `Fit`'s fields, and write and read them as JSON, exact to the last bit.

The constructor of `Fit` checks the fields, so every `Fit` can be written. Python writes a double in
the fewest digits that give the same double. Infinite numbers become strings that ``float`` reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from .._errors import shown, type_name
from ..methods import Extremum
from . import _arguments as arguments
from ._error_measures import Errors
from ._formula import MOST, POLYNOMIAL

FORMAT = "logunif_kl.Fit"
_SEQUENCE = (tuple, list)
_INFINITE = {"inf": math.inf, "-inf": -math.inf}

Check = Callable[[str, Any], Any]
"""A function of a field's name and its given value. It returns the value to store, or raises."""


def _refused(name: str, must: str, given: Any) -> ValueError:
    return ValueError(
        f"{name} of a Fit must be {must}, but {shown(given)} was given: take the Fit from "
        "fit_polynomial or fit_sigmoid, or its JSON from Fit.to_json"
    )


def _one_of(*known: str) -> Check:
    def check(name: str, given: Any) -> str:
        if not isinstance(given, str) or given not in known:
            raise _refused(name, f"one of {', '.join(known)}", given)
        return given

    return check


def _number(must: str, holds: Callable[[float], bool]) -> Check:
    def check(name: str, given: Any) -> float:
        try:
            if not isinstance(given, bool) and isinstance(given, Real) and holds(float(given)):
                return float(given)
        except OverflowError:
            pass
        raise _refused(name, must, given)

    return check


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        return arguments.log_alpha_range(given)
    except (TypeError, ValueError, OverflowError):
        far = arguments.FARTHEST
        must = f"two ascending numbers that span a part of [-{far:g}, {far:g}]"
        raise _refused(name, must, given) from None


def _true_or_false(name: str, given: Any) -> bool:
    if type(given) is not bool:
        raise _refused(name, "True or False", given)
    return given


def _weight(name: str, given: Any) -> str | None:
    return None if given is None else _one_of(*arguments.WEIGHTS, "callable")(name, given)


def _made_of(kind: type, checks: dict[str, Check]) -> Check:
    def check(name: str, given: Any) -> Any:
        if not isinstance(given, kind):
            raise _refused(name, f"an {kind.__name__}", given)
        return kind(**{n: check(f"{name}.{n}", getattr(given, n)) for n, check in checks.items()})

    return check


_FINITE = _number("one finite number", math.isfinite)
_SIZE = _number("one number that is not negative", lambda v: v >= 0.0)
_PLACE = _number("one number other than NaN", lambda v: not math.isnan(v))

_EXTREMUM = {
    "log_alpha": _PLACE,
    "error": _FINITE,
    "quantity": _one_of("value", "gradient"),
}
_ERRORS = {
    "log_alpha_range": _range,
    "max_error": _SIZE,
    "max_error_at": _PLACE,
    "rms_error": _SIZE,
    "max_grad_error": _SIZE,
    "max_grad_error_at": _PLACE,
}
_extremum, _errors = _made_of(Extremum, _EXTREMUM), _made_of(Errors, _ERRORS)


def _coefficients(family: str) -> Check:
    most, each = MOST[family], 1 if family == POLYNOMIAL else 3

    def check(name: str, given: Any) -> tuple[float, ...]:
        if not isinstance(given, _SEQUENCE) or len(given) not in range(each, each * most + 1, each):
            ones = f"1 to {most} numbers"
            threes = f"three numbers for each of 1 to {most} terms"
            raise _refused(name, ones if each == 1 else threes, given)
        found = tuple(_FINITE(f"{name}[{i}]", c) for i, c in enumerate(given))
        if math.isinf(sum(map(abs, found))):
            raise _refused(name, "numbers whose magnitudes have a finite sum", given)
        return found

    return check


def _extrema(name: str, given: Any) -> tuple[Extremum, ...]:
    if not isinstance(given, _SEQUENCE):
        raise _refused(name, "a tuple of Extremum", given)
    return tuple(_extremum(f"{name}[{i}]", each) for i, each in enumerate(given))


_FIT: dict[str, Check] = {
    "constant": _FINITE,
    "log_alpha_range": _range,
    "norm": _one_of(*arguments.NORMS),
    "target": _one_of(*arguments.TARGETS),
    "grid": _one_of(*arguments.GRIDS),
    "weight": _weight,
    "exact_limit": _true_or_false,
    "level": _SIZE,
    "extrema": _extrema,
    "inside": _errors,
    "wide": _errors,
}


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Check the fields of a fit, and return them with floats for numbers and tuples for lists.

    If a field is not what `Fit` documents, raise a ValueError that names the field.
    """
    family = _one_of(*MOST)("family", given["family"])
    coefficients = _coefficients(family)("coefficients", given["coefficients"])
    found = {name: check(name, given[name]) for name, check in _FIT.items()}
    return {"family": family, "coefficients": coefficients, **found}


def write(fields: dict[str, Any]) -> str:
    """Return the fields of a fit as JSON."""
    return json.dumps(_strings({"format": FORMAT, **fields}), indent=2, allow_nan=False)


def read(document: str) -> dict[str, Any]:
    """Read the fields of a fit from JSON. The constructor of `Fit` checks them."""
    if not isinstance(document, (str, bytes, bytearray)):
        raise TypeError(
            f"the JSON must be a str, but {type_name(document)} was given: pass what Fit.to_json "
            "returned"
        )
    try:
        found = _floats(
            json.loads(document, parse_int=_parsed, parse_float=_parsed, parse_constant=str)
        )
    except (ValueError, RecursionError):
        raise ValueError(
            "the text is not JSON, or is nested too deeply: pass what Fit.to_json returned"
        ) from None
    if isinstance(found, dict) and isinstance(found.get("fit"), dict):
        found = found["fit"]  # `logunif-kl fit --json` writes it among other entries.
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise _no_fit(f'"format" is not {FORMAT!r}')
    _check_names("", found, {"family", "coefficients", *_FIT})
    for name in ("inside", "wide"):
        _check_names(f"{name}.", found[name], _ERRORS)
        found[name] = Errors(**found[name])
    if isinstance(found["extrema"], list):
        for i, each in enumerate(found["extrema"]):
            _check_names(f"extrema[{i}].", each, _EXTREMUM)
            found["extrema"][i] = Extremum(**each)
    return found


def _no_fit(because: str) -> ValueError:
    return ValueError(
        f"the JSON does not hold a fit, because {because}: pass what Fit.to_json returned"
    )


def _parsed(text: str) -> float | str:
    """Read a number. If it is too large for a double, return its text, which `Fit` then rejects."""
    return float(text) if math.isfinite(float(text)) else text


def _check_names(prefix: str, found: Any, names: Iterable[str]) -> None:
    given = set(found) if isinstance(found, dict) else set()
    for name in sorted(given.symmetric_difference(names)):
        what = "is missing" if name in names else "is not a field"
        raise _no_fit(f"{shown(prefix + name)} {what}")


def _floats(value: Any) -> Any:
    """Replace strings such as "inf" by infinite numbers: the inverse of `_strings`."""
    if isinstance(value, dict):
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return _INFINITE.get(value, value) if isinstance(value, str) else value


def _strings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strings(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
