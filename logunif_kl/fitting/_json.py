"""Conversion of a fit to JSON and back, exact to the last bit.

Python writes a double in the fewest digits that read back to it. JSON has no infinite numbers: they
become strings that ``float`` reads.
"""

from __future__ import annotations

import json
import math
from typing import Any

from .._refusals import shown
from ..methods import Extremum
from ._errors import Errors
from ._formula import POLYNOMIAL, SIGMOID

FORMAT = "logunif_kl.Fit"


def write(fields: dict[str, Any]) -> str:
    """Write the fields of a fit."""
    return json.dumps(_strings({"format": FORMAT, **fields}), indent=2, allow_nan=False)


def read(document: str, names: set[str]) -> dict[str, Any]:
    """Read the fields of a fit, and check that they are those named."""
    try:
        found = json.loads(document)
    except ValueError as error:
        raise ValueError(
            f"the text is not JSON ({error}): pass what Fit.to_json returned"
        ) from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise ValueError(
            f'the JSON does not hold a fit, because its "format" is not {FORMAT!r}: '
            "pass what Fit.to_json returned"
        )
    try:
        return _fields(found, names)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the JSON does not hold a fit ({type(error).__name__}: {error}): "
            "pass what Fit.to_json returned"
        ) from None


def _strings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strings(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strings(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _fields(found: dict[str, Any], names: set[str]) -> dict[str, Any]:
    if found.keys() != names:
        raise KeyError(", ".join(sorted(found.keys() ^ names)))
    if found["family"] not in (POLYNOMIAL, SIGMOID):
        raise ValueError(f"family {shown(found['family'])}")
    coefficients = tuple(float(c) for c in found["coefficients"])
    if not coefficients or (found["family"] == SIGMOID and len(coefficients) % 3):
        raise ValueError(f"{len(coefficients)} coefficients")
    return {
        "family": found["family"],
        "coefficients": coefficients,
        "constant": float(found["constant"]),
        "log_alpha_range": _range(found["log_alpha_range"]),
        "norm": str(found["norm"]),
        "target": str(found["target"]),
        "grid": str(found["grid"]),
        "weight": None if found["weight"] is None else str(found["weight"]),
        "exact_limit": bool(found["exact_limit"]),
        "level": float(found["level"]),
        "extrema": tuple(
            Extremum(float(e["log_alpha"]), float(e["error"]), str(e["quantity"]))
            for e in found["extrema"]
        ),
        "inside": _errors(found["inside"]),
        "wide": _errors(found["wide"]),
    }


def _range(ends: Any) -> tuple[float, float]:
    low, high = ends
    return float(low), float(high)


def _errors(found: dict[str, Any]) -> Errors:
    between = _range(found["log_alpha_range"])
    return Errors(between, **{k: float(v) for k, v in found.items() if k != "log_alpha_range"})
