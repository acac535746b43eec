"""Gauss-Kronrod quadrature of many short cells at once, for densities with many jumps.

Between two jumps a density is usually smooth up to both ends. One rule of 21 nodes then gives the
integrals, with QUADPACK's error estimate. All cells are evaluated together. If the estimate of a
cell is large, for example because an end is singular, `_quadrature` integrates that cell instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._distribution import Standardised

#: With at least this many special points, first try the cells between them.
MANY = 8

# QUADPACK's dqk21: the nodes of Kronrod's rule from the outermost down to 0, and their weights.
# Every second node belongs to the Gauss rule of ten nodes.
_NODES = (
    0.995657163025808080735527280689003,
    0.973906528517171720077964012084452,
    0.930157491355708226001207180059508,
    0.865063366688984510732096688423493,
    0.780817726586416897063717578345042,
    0.679409568299024406234327365114874,
    0.562757134668604683339000099272694,
    0.433395394129247190799265943165784,
    0.294392862701460198131126603103866,
    0.14887433898163121088482600112972,
    0.0,
)
_KRONROD = (
    0.011694638867371874278064396062192,
    0.03255816230796472747881897245939,
    0.05475589657435199603138130024458,
    0.07503967481091995276704314091619,
    0.093125454583697605535065465083366,
    0.109387158802297641899210590325805,
    0.123491976262065851077958109585166,
    0.134709217311473325928054001771707,
    0.142775938577060080797094273138717,
    0.147739104901338491374841515972068,
    0.149445554002916905664936468389821,
)
_GAUSS = (
    0.066671344308688137593568809893332,
    0.149451349150580593145863397657697,
    0.219086362515982043995534934228163,
    0.269266719309996355091226921569469,
    0.295524224714752870173815619188769,
)
_EPSILON = 2.0**-52


class Rule(NamedTuple):
    """The nodes on [-1, 1], with the weights of Kronrod's and of Gauss's rule."""

    at: np.ndarray
    kronrod: np.ndarray
    gauss: np.ndarray


def _rule() -> Rule:
    half, kronrod = np.array(_NODES), np.array(_KRONROD)
    gauss = np.zeros(11)
    gauss[1::2] = _GAUSS
    both = [np.concatenate([side, side[-2::-1]]) for side in (half, kronrod, gauss)]
    both[0][11:] *= -1.0
    return Rule(*both)


_RULE = _rule()


class Cells(NamedTuple):
    """Arrays with one element per cell: whether it is accepted, its integrals and their errors."""

    accepted: np.ndarray
    positive: np.ndarray
    entropy: np.ndarray
    mass: np.ndarray
    entropy_error: np.ndarray
    mass_error: np.ndarray


def integrate(dist: Standardised, ends: np.ndarray, epsabs: float, epsrel: float) -> Cells:
    """Integrate -q log(q |w|) and q over the cells between neighbouring `ends` (values of z)."""
    center, half = (ends[1:] + ends[:-1]) / 2.0, (ends[1:] - ends[:-1]) / 2.0
    z = center[:, np.newaxis] + half[:, np.newaxis] * _RULE.at
    log_q = dist.logpdfs(z)
    weight = np.abs(z - dist.zero)
    found = np.isfinite(log_q) & (weight > 0.0)
    log_q = np.where(found, log_q, -np.inf)
    q = np.exp(log_q)
    log_qw = np.where(found, log_q + np.log(np.where(found, weight, 1.0)), 0.0)
    entropy, entropy_error = _estimates(-q * log_qw, half)
    mass, mass_error = _estimates(q, half)
    accepted = np.isfinite(entropy) & np.isfinite(mass)
    accepted &= entropy_error <= np.maximum(epsabs, epsrel * np.abs(entropy))
    accepted &= mass_error <= np.maximum(epsabs, epsrel * mass)
    return Cells(accepted, center > dist.zero, entropy, mass, entropy_error, mass_error)


def _estimates(values: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the integrals by Kronrod's rule, and QUADPACK's estimates of their errors."""
    kronrod, gauss = values @ _RULE.kronrod, values @ _RULE.gauss
    around = np.abs(values - kronrod[:, np.newaxis] / 2.0) @ _RULE.kronrod * half
    size = np.abs(values) @ _RULE.kronrod * half
    error = np.abs(kronrod - gauss) * half
    scaled = np.where(around > 0.0, 200.0 * error / np.where(around > 0.0, around, 1.0), 0.0)
    error = np.where(around > 0.0, around * np.minimum(1.0, scaled**1.5), error)
    return kronrod * half, np.maximum(error, 50.0 * _EPSILON * size)
