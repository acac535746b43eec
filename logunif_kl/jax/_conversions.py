"""The conversions of `logunif_kl.log_alpha` for arrays of JAX: plain operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ._arguments import arguments, finished


class _Namespace:
    """The functions of an array namespace that the conversions call."""

    abs = staticmethod(jnp.abs)
    exp = staticmethod(jnp.exp)
    isinf = staticmethod(jnp.isinf)
    log = staticmethod(jnp.log)
    log1p = staticmethod(jnp.log1p)
    ones_like = staticmethod(jnp.ones_like)
    where = staticmethod(jnp.where)
    zeros_like = staticmethod(jnp.zeros_like)


_xp = _Namespace()


def converted(arithmetic: Callable[..., Any], **given: Any) -> Any:
    """Check the arguments, whose names serve the messages, and compute in float32 or float64."""
    arrays, dtype = arguments(**given)
    return finished(arithmetic(_xp, *arrays), 0.0, "none", dtype)
