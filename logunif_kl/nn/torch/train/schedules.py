"""Warm-up schedules: the weight of the KL as a function of the training step."""

from __future__ import annotations

import math
from typing import Any

from ...._errors import real_number
from ...checks import check_cycle, finite


def linear_warm_up(step: float, begin: float, end: float) -> float:
    """Return a weight of the KL that rises linearly from 0 to 1.

    Parameters
    ----------
    step : float
        The training step, or the epoch, which may be fractional.
    begin, end : float
        The last step with weight 0, and the first step with weight 1.

    Returns
    -------
    float
        (step - begin)/(end - begin), clipped to [0, 1].

    Raises
    ------
    TypeError
        If an argument is not a real number.
    ValueError
        If `step` is not finite, or `end` is not after `begin`.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> [nn.linear_warm_up(step, begin=5, end=15) for step in (0, 5, 10, 15, 99)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    return _fraction(step, begin, end)


def cosine_warm_up(step: float, begin: float, end: float) -> float:
    """Return a weight of the KL that rises smoothly from 0 to 1, on half a cosine.

    Parameters
    ----------
    step, begin, end : float
        As for `linear_warm_up`.

    Returns
    -------
    float
        (1 - cos(pi t))/2, where t is the weight that `linear_warm_up` returns.

    Raises
    ------
    TypeError, ValueError
        As for `linear_warm_up`.

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> [round(nn.cosine_warm_up(step, begin=0, end=4), 3) for step in range(5)]
    [0.0, 0.146, 0.5, 0.854, 1.0]
    """
    return 0.5 * (1.0 - math.cos(math.pi * _fraction(step, begin, end)))


def cyclical_warm_up(step: float, period: float, rising: float = 0.5) -> float:
    """Return a weight of the KL that rises linearly from 0 to 1 in every period.

    The schedule is from Fu et al. (2019), "Cyclical Annealing Schedule: A Simple Approach to
    Mitigating KL Vanishing", arXiv:1903.10145.

    Parameters
    ----------
    step : float
        The training step, or the epoch, which may be fractional.
    period : float
        The length of a period; positive.
    rising : float
        The fraction of a period in which the weight rises, in (0, 1]. Afterwards the weight is 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError
        If an argument is not a real number.
    ValueError
        If `step` is not finite, `period` not positive, or `rising` not in (0, 1].

    Examples
    --------
    >>> from logunif_kl.torch import nn
    >>> [nn.cyclical_warm_up(step, period=4) for step in range(6)]
    [0.0, 0.5, 1.0, 1.0, 0.0, 0.5]
    """
    period, rising = check_cycle(period, rising)
    return _fraction(finite("step", step, "a count of steps") % period, 0.0, rising * period)


def _fraction(step: Any, begin: Any, end: Any) -> float:
    step = finite("step", step, "a count of steps")
    begin, end = real_number("begin", begin), real_number("end", end)
    if not begin < end:
        raise ValueError(
            f"end must be after begin, but begin={begin:g} and end={end:g} were given: exchange "
            "them, or leave out the warm-up"
        )
    return min(max((step - begin) / (end - begin), 0.0), 1.0)
