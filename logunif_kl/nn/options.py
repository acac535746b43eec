"""The option `posterior` of layers, and the words that it was before it was an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._errors import shown
from .posteriors import Additive, Correlated, Grouped, Multiplicative, Scaled
from .terms import UNITS

REPLACED = ("sharing", "noise", "max_log_alpha", "initial")
"""The options of layers that a posterior replaced."""


def of_words(
    posterior: Any = "additive",
    sharing: Any = "weight",
    noise: Any = "independent",
    max_log_alpha: Any = None,
    initial: Any = None,
) -> Additive:
    """Return the posterior that the options of before named, also in an old pickle."""
    made = {"additive": Additive, "multiplicative": Multiplicative, "scaled": Scaled}[posterior]
    if noise == "correlated":
        made = Correlated
    elif made is Additive and sharing in UNITS:
        made = Grouped
    words = {"sharing": sharing, "max_log_alpha": max_log_alpha, "initial": initial}
    return made(**{name: x for name, x in words.items() if x is not None and x != "weight"})


def check_posterior(options: Mapping[str, Any]) -> Additive:
    """Return the posterior among some options, or raise if it is given by words."""
    given = {name: options[name] for name in ("posterior", *REPLACED) if name in options}
    posterior, words = given.get("posterior"), {**given}
    words.pop("posterior", None)
    if not given or (isinstance(posterior, Additive) and not words):
        return posterior or Additive()
    try:
        if isinstance(posterior, type) and issubclass(posterior, Additive):
            posterior = posterior()
        made = replace(posterior, **words) if isinstance(posterior, Additive) else of_words(**given)
        instead = f"posterior=nn.{made!r}"
    except (KeyError, TypeError, ValueError):
        instead = "nn.Additive(), nn.Grouped(), nn.Multiplicative(), nn.Correlated() or nn.Scaled()"
    listed = ", ".join(f"{name}={shown(each)}" for name, each in given.items())
    verb = "was" if len(given) == 1 else "were"
    raise TypeError(f"{listed} {verb} given, but a posterior is an object: pass {instead}")
