"""The conversions of `logunif_kl.log_alpha` for tensors of TensorFlow: plain operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._arguments import arguments, finished


class _Namespace:
    """The functions of an array namespace that the conversions call."""

    abs = staticmethod(tf.abs)
    exp = staticmethod(tf.exp)
    isinf = staticmethod(tf.math.is_inf)
    log = staticmethod(tf.math.log)
    log1p = staticmethod(tf.math.log1p)
    ones_like = staticmethod(tf.ones_like)
    where = staticmethod(tf.where)
    zeros_like = staticmethod(tf.zeros_like)


_xp = _Namespace()


def converted(arithmetic: Callable[..., Any], **given: Any) -> Any:
    """Check the arguments, whose names serve the messages, and compute in float32 or float64."""
    tensors, dtype = arguments(**given)
    return finished(arithmetic(_xp, *tensors), 0.0, "none", dtype)
