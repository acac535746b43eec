"""Conversion of a fit to JSON and back, exact to the last bit.

Python writes a double in the fewest digits that read back to it. JSON has no infinite numbers: they
become strings that ``float`` reads.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

from .._errors import shown, type_name
from ..methods import Extremum
from ._error_measures import Errors

FORMAT = "logunif_kl.Fit"
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


def write(fields: dict[str, Any]) -> str:
    """Write the fields of a fit."""
    return json.dumps(_strings({"format": FORMAT, **fields}), indent=2, allow_nan=False)


def read(document: str, names: set[str]) -> dict[str, Any]:
    """Read the fields of a fit, of the names given, for its constructor to check."""
    if not isinstance(document, (str, bytes, bytearray)):
        raise TypeError(
            f"the JSON must be a str, but {type_name(document)} was given: pass what Fit.to_json "
            "returned"
        )
    try:
        found = _floats(
            json.loads(document, parse_int=_number, parse_float=_number, parse_constant=str)
        )
    except (ValueError, RecursionError):
        raise ValueError(
            "the text is not JSON, or is nested too deeply: pass what Fit.to_json returned"
        ) from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise _no_fit(f'"format" is not {FORMAT!r}')
    _check_names("", found, names)
    made = {name: _made(Errors, name, found[name]) for name in ("inside", "wide")}
    extrema = found["extrema"]
    if isinstance(extrema, list):
        extrema = [_made(Extremum, f"extrema[{i}]", each) for i, each in enumerate(extrema)]
    return found | made | {"extrema": extrema}


def _no_fit(because: str) -> ValueError:
    return ValueError(
        f"the JSON does not hold a fit, because {because}: pass what Fit.to_json returned"
    )


def _number(text: str) -> float | str:
    """Read a number; one that no double holds remains text, which the constructor refuses."""
    return float(text) if math.isfinite(float(text)) else text


def _made(kind: Any, name: str, found: Any) -> Any:
    _check_names(f"{name}.", found, {field.name for field in fields(kind)})
    return kind(**found)


def _check_names(prefix: str, found: Any, names: set[str]) -> None:
    given = set(found) if isinstance(found, dict) else set()
    for name in sorted(given ^ names):
        what = "is missing" if name in names else "is not a field"
        raise _no_fit(f"{shown(prefix + name)} {what}")


def _floats(value: Any) -> Any:
    """Undo `_strings`."""
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
