r"""Proposition 1: the normaliser.

One weight under C/|w|, C = 1, on a < |w| < b. If the likelihood at 0 is L(0) > 0, the normaliser is
2 L(0) log(1/a) plus a constant.

By the proof, the normaliser exceeds 2 r log(d/a) where L > r on |w| < d. For the paper's logistic
regression with one observation Z = log(b/a), because the sigmoids of w and of -w add up to 1. The
left side is log(1/a)/2 + c and the right one log(1/a)/2 + log b - c, where c = (log(pi/2) -
gamma)/2.

A network has one input, one hidden unit and one output. With both cut-offs at a, its normaliser is
a quadratic in log(1/a) with the leading term 4 L(0) log(1/a)^2. With only the first weight's
cut-off at a, it is linear, and its slope is 2 times the normaliser of the rest of the network at w
= 0.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import columns, number, rounded
from validation.output import track
from validation.papers.hron2017.models import (
    LOGISTIC,
    MODELS,
    STEP,
    Array,
    Model,
    finite_part,
    normaliser,
)

B = 1e3  # the right cut-off while the left one varies
FLOATS = {"float32": (2.0**-126, 2.0**128), "float64": (2.0**-1022, 2.0**1023)}


def radius(model: Model, share: float) -> float:
    """Find the largest d for which L > share L(0) on all of |w| < d."""
    level = math.log(share) + float(model.log_likelihood(0.0))
    grid = np.linspace(0.0, 50.0, 200_001)
    found = []
    for sign in (1.0, -1.0):
        below = np.flatnonzero(model.log_likelihood(sign * grid) <= level)
        if below.size:
            ends = sign * grid[below[0] - 1], sign * grid[below[0]]
            found.append(abs(brentq(lambda w: float(model.log_likelihood(w)) - level, *ends)))
    return min(found, default=50.0)


def around_zero(name: str, powers: list[int]) -> Record:
    model = MODELS[name]
    a = [10.0**-power for power in powers]
    z = [normaliser(model, each, B) for each in a]
    slope = 2.0 * model.at_zero
    # The constant is the mass at the least a, minus the logarithm.
    constant = math.log(B) if name == "logistic" else z[-1] - slope * math.log(1.0 / a[-1])
    d, half = radius(model, 0.5), 0.5 * model.at_zero
    rows: list[Record] = []
    for cut, found in zip(a, z, strict=True):
        row = {
            "cut_off": cut,
            "normaliser": found,
            "predicted": slope * math.log(1.0 / cut) + constant,
            "bound_of_the_proof": 2.0 * half * math.log(d / cut) if cut < d else None,
            "slope_from_the_row_above": None,
        }
        if rows:
            steps = math.log(rows[-1]["cut_off"] / cut)
            row["slope_from_the_row_above"] = (found - rows[-1]["normaliser"]) / steps
        if name == "logistic":
            sides = {"right": math.log(B) - finite_part(), "left": finite_part()}
            for side, sign in (("right", 1), ("left", -1)):
                row[side] = normaliser(model, cut, B, [sign])
                row[f"{side}_predicted"] = 0.5 * math.log(1.0 / cut) + sides[side]
        rows.append(row)
    return {
        "model": name,
        "title": model.title,
        "likelihood_at_zero": model.at_zero,
        "slope_predicted": slope,
        "constant": constant,
        "constant_is_predicted": name == "logistic",
        "radius_of_the_proof": d,
        "rows": rows,
    }


def tail(powers: list[int]) -> Iterator[Record]:
    for k in (0.1, 1.0, 10.0):
        lost = normaliser(LOGISTIC, k, 1e4, [-1])  # the whole tail beyond k
        for power in powers:
            great = k * 10.0**power
            log = math.log(great / k)
            yield {
                "k": k,
                "cut_off": great,
                "right": normaliser(LOGISTIC, k, great, [1]),
                "predicted": log - lost,
                "lower_bound_of_the_paper": log / (1.0 + math.exp(-k)),
                "upper_bound": log,
                "left": normaliser(LOGISTIC, k, great, [-1]),
            }


def other_tails(powers: list[int]) -> Iterator[Record]:
    """Measure how each model's mass beyond 1 grows with the power of the cut-off, by side."""
    low, high = 10.0 ** powers[-2], 10.0 ** powers[-1]
    sides = (("right", 1), ("left", -1))
    for (name, model), (side, sign) in itertools.product(MODELS.items(), sides):
        # The limit of the likelihood in this tail: 1 if every observation agrees, otherwise 0.
        agrees = model.noise is None and all(
            sign * x * y > 0 for x, y in zip(model.x, model.y, strict=True)
        )
        yield {
            "model": name,
            "side": side,
            "slope": normaliser(model, low, high, [sign]) / math.log(high / low),
            "slope_predicted": float(agrees),
            "mass_beyond_1": None if agrees else normaliser(model, 1.0, high, [sign]),
        }


OBSERVED, OUTPUT_NOISE = 1.0, 1.0


def _hidden(w: Any, activation: str) -> Any:
    return np.maximum(w, 0.0) if activation == "relu" else 0.5 * (1.0 + np.tanh(0.5 * w))


def _likelihood(output: Any) -> Any:
    scale = math.sqrt(2.0 * math.pi) * OUTPUT_NOISE
    return np.exp(-0.5 * ((OBSERVED - output) / OUTPUT_NOISE) ** 2) / scale


def network_normaliser(activation: str, firsts: float, seconds: float, b: float) -> float:
    """Integrate over two weights, with the cut-offs ``firsts`` and ``seconds``, and b."""
    points, weights = np.polynomial.legendre.leggauss(8)

    def grid(a: float) -> tuple[Array, Array]:
        edges = np.linspace(math.log(a), math.log(b), math.ceil(math.log(b / a) / STEP) + 1)
        half = np.diff(edges)[:, None] / 2.0
        return (edges[:-1, None] + half * (1.0 + points)).ravel(), (half * weights).ravel()

    (t1, v1), (t2, v2) = grid(firsts), grid(seconds)
    total = 0.0
    for sign in (1.0, -1.0):
        hidden = _hidden(sign * np.exp(t1), activation)[:, None]
        for other in (1.0, -1.0):
            values = _likelihood(hidden * (other * np.exp(t2)))
            total += float(v1 @ values @ v2)
    return total


def networks(powers: list[int]) -> Iterator[Record]:
    b, fixed = 10.0, 1e-2
    (step,) = set(np.diff(powers).tolist())
    width = step * math.log(10.0)
    for activation in ("relu", "sigmoid"):
        cuts = [10.0**-power for power in powers]
        both = [network_normaliser(activation, a, a, b) for a in cuts]
        alone = [network_normaliser(activation, a, fixed, b) for a in cuts]
        # The rest of the network at w_1 = 0, integrated over the second weight.
        rest = _rest(float(_hidden(0.0, activation)), fixed, b)
        yield {
            "activation": activation,
            "cut_offs": cuts,
            "both": both,
            "first_alone": alone,
            "quadratic_coefficient": (np.diff(both, 2) / (2.0 * width**2)).tolist(),
            "quadratic_coefficient_predicted": 4.0 * float(_likelihood(0.0)),
            "slope_of_the_first": (np.diff(alone) / width).tolist(),
            "slope_of_the_first_predicted": 2.0 * rest,
        }


def _rest(hidden: float, a: float, b: float) -> float:
    """Integrate the likelihood over only the second weight, with a fixed hidden unit."""
    return sum(
        quad(
            lambda t, sign=sign: float(_likelihood(hidden * sign * math.exp(t))),
            math.log(a),
            math.log(b),
            epsabs=1e-13,
            epsrel=1e-13,
            limit=200,
        )[0]
        for sign in (1.0, -1.0)
    )


def floats(errors: list[int]) -> Iterator[Record]:
    for z in errors:
        # One observation z of the weight with noise 1 is z standard errors from 0.
        model = Model("", (1.0,), (float(z),), 1.0)
        row: Record = {"standard_errors": z}
        for name, (a, b) in FLOATS.items():
            row[name] = normaliser(model, a, 0.1) / normaliser(model, a, min(b, 1e3))
        # The share is one half if the masses inside and outside are equal.
        without, least = normaliser(model, 0.1, 1e3), 1e-3
        inside = normaliser(model, least, 0.1)
        more = (without - inside) / (2.0 * model.at_zero)
        row["log10_cut_off_for_one_half"] = (math.log(least) - more) / math.log(10.0)
        yield row


def draw(found: Record) -> Any:
    figure, (left, right) = subplots((9.6, 4.2), 1, 2)
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for colour, marker, part in zip(colours, "osD^", found["around_zero"], strict=True):
        rows = part["rows"]
        x = [math.log10(1.0 / row["cut_off"]) for row in rows]
        left.plot(x, [row["predicted"] for row in rows], "-", color=colour, linewidth=1)
        measured = [row["normaliser"] for row in rows]
        left.plot(x, measured, marker, color=colour, markersize=4, label=part["title"])
    left.set(xlabel="log₁₀(1/a), the cut-off around 0", ylabel="normaliser Z, C = 1")
    left.set_title("lines: 2 L(0) log(1/a) + constant", fontsize="medium")
    left.legend(fontsize="small")
    for k, marker, colour in zip((0.1, 1.0, 10.0), "osD", colours, strict=False):
        rows = [row for row in found["tail"] if row["k"] == k and row["cut_off"] / k <= 1e16]
        x = [math.log10(row["cut_off"] / k) for row in rows]
        mass = [row["right"] for row in rows]
        right.plot(x, mass, marker, color=colour, markersize=4, label=f"measured, k = {k:g}")
        right.plot(x, [row["predicted"] for row in rows], "-", color=colour, linewidth=1)
        bound = [row["lower_bound_of_the_paper"] for row in rows]
        right.plot(x, bound, ":", color=colour, linewidth=1.5)
    right.set(
        xlabel="log₁₀(K/k), the cut-off in the tail",
        ylabel="mass of the logistic posterior on [k, K], C = 1",
    )
    right.set_title("lines: log(K/k) − constant; dotted: the paper's bound", fontsize="medium")
    right.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    around = [
        # If no slope is predicted, the line passes through the last row.
        {**part, "middle": part["rows"][len(part["rows"]) // 2], "last": part["rows"][-1]}
        for part in record["around_zero"]
    ]
    parts = [
        columns(
            around,
            ("model", "{title}"),
            ("L(0)", rounded("likelihood_at_zero", 4)),
            ("slope in log(1/a)", "{last[slope_from_the_row_above]:.10f}"),
            ("predicted 2 L(0)", "{slope_predicted:.10f}"),
            ("a", lambda part: number(part["middle"]["cut_off"])),
            ("Z", "{middle[normaliser]:.6f}"),
            ("line", "{middle[predicted]:.6f}"),
        ),
        "The slope is measured between the two smallest cut-offs. The line has the predicted "
        "slope. Except for the first model, the line goes through Z at the smallest a, "
        f"{number(around[0]['last']['cut_off'])}.",
        "For the logistic regression with one observation, every constant is predicted. The bound "
        "comes from the proof, with r = L(0)/2:",
        columns(
            around[0]["rows"],
            ("a", rounded("cut_off")),
            ("Z", "{normaliser:.6f}"),
            ("predicted", "{predicted:.6f}"),
            ("right side", "{right:.6f}"),
            ("predicted", "{right_predicted:.6f}"),
            ("left side", "{left:.6f}"),
            ("predicted", "{left_predicted:.6f}"),
            ("bound", "{bound_of_the_proof:.3f}"),
        ),
        "The mass of its right tail, from k to the cut-off K, lies between the paper's bound and "
        "log(K/k):",
        columns(
            (row for row in record["tail"] if not 1e9 <= row["cut_off"] / row["k"] <= 1e299),
            ("k", rounded("k")),
            ("K", rounded("cut_off")),
            ("mass", "{right:.6f}"),
            ("predicted", "{predicted:.6f}"),
            ("paper's bound", "{lower_bound_of_the_paper:.6f}"),
            ("log(K/k)", "{upper_bound:.6f}"),
        ),
        "The slopes in log K of the tails of all models. If the slope is 0, the mass is finite:",
        columns(
            record["other_tails"],
            ("model", "{model}"),
            ("side", "{side}"),
            ("slope", "{slope:.6f}"),
            ("predicted", "{slope_predicted:.0f}"),
            ("mass beyond 1", rounded("mass_beyond_1", 6)),
        ),
        "Networks of two weights and one hidden unit: the coefficient of log(1/a)² if both weights "
        "are cut off at a, and the slope in log(1/a) if only the first weight is cut off at a:",
        columns(
            record["networks"],
            ("hidden unit", "{activation}"),
            ("of the square", lambda row: f"{row['quadratic_coefficient'][-1]:.9f}"),
            ("predicted 4 L(0)", "{quadratic_coefficient_predicted:.9f}"),
            ("slope", lambda row: f"{row['slope_of_the_first'][-1]:.9f}"),
            ("predicted", "{slope_of_the_first_predicted:.9f}"),
        ),
        "Floating-point numbers are cut-offs too: the share of the posterior's mass nearer to 0 "
        "than a tenth of the standard error, by how many standard errors the weight is from 0, and "
        "the power of ten of the cut-off for a share of one half:",
        columns(
            record["floats"],
            ("standard errors", "{standard_errors}"),
            ("float32", rounded("float32")),
            ("float64", rounded("float64")),
            ("cut-off for one half", "10^{log10_cut_off_for_one_half:.1f}"),
        ),
    ]
    return "\n\n".join(parts)


def measure(settings: Record, parts: Parts) -> Record:
    names = track(list(MODELS), "normalisers", len(MODELS))
    return {
        "right_cut_off": B,
        "around_zero": [around_zero(name, settings["zero"]) for name in names],
        "tail": list(tail(settings["tail"])),
        "other_tails": list(other_tails(settings["tail"])),
        "networks": list(networks(settings["network"])),
        "floats": list(floats(settings["errors"])),
    }


FULL = {  # cut-offs as powers of ten; "errors" are numbers of standard errors
    "zero": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 300],
    "tail": [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 300],
    "network": [4, 6, 8, 10, 12],
    "errors": [0, 1, 2, 3, 4, 5, 6, 8],
}
QUICK = {"zero": [2, 4, 8], "tail": [2, 4, 8], "network": [4, 6, 8], "errors": [0, 3]}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=1, draw=draw, packages=())
EXPERIMENT.run(__name__)
