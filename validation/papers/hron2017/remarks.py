r"""Remarks 1 and 2.

KL by every method of the library in double precision, next to 30 digits.

`python -m validation.papers` decides the remarks in 40 digits.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import logunif_kl as lk
from logunif_kl import methods
from validation.experiment import Experiment, Parts, Record
from validation.markdown import columns, number, rounded, yes
from validation.output import track

VALUES: dict[str, Callable[..., Any]] = {
    "kl": lambda x, **options: -lk.kl(x, **options),
    "series": methods.series,
    "kummer": methods.kummer,
    "quadrature": methods.quadrature,
}
GRADIENTS: dict[str, Callable[..., Any]] = {
    "kl": lk.neg_kl_grad,
    "dawson": methods.dawson_grad,
    "series": methods.series_grad,
    "kummer": methods.kummer_grad,
    "quadrature": methods.quadrature_grad,
}
APPROXIMATIONS = ("kingma", "molchanov", "lower_bound")


def remark_1(sizes: Record, seed: int) -> Iterator[Record]:
    for index, u in enumerate(track(sizes["u"], "remark 1", len(sizes["u"]))):
        # The mean with this u for sigma = 1; log alpha is infinite at u = 0.
        x = math.inf if u == 0.0 else float(lk.log_alpha.from_u(u))
        true = -float(lk.reference.neg_kl(x, sizes["digits"], log_c=0.0))
        slope = float(lk.reference.kl_gap_grad(u, sizes["digits"]))
        values = {name: -float(value(x, log_c=0.0)) for name, value in VALUES.items()}
        # d(-KL)/dlog alpha = u dKL/du. At u = 0 Eq. 3 is 1 by definition.
        found = (
            {"kl_gap_grad": float(lk.special.kl_gap_grad(0.0))}
            if u == 0.0
            else {name: float(gradient(x)) / u for name, gradient in GRADIENTS.items()}
        )
        rng = np.random.default_rng([seed, index])
        sampled, error = methods.monte_carlo(x, n_samples=sizes["samples"], rng=rng, log_c=0.0)
        yield {
            "u": u,
            "log_alpha": None if u == 0.0 else x,
            "kl": true,
            "by": values,
            "greatest_difference": max(abs(value - true) for value in values.values()),
            "monte_carlo": -float(sampled),
            "monte_carlo_standard_error": float(error),
            "gradient": slope,
            "gradient_by": found,
            "greatest_relative_difference_of_gradients": max(
                abs(value / slope - 1.0) for value in found.values()
            ),
        }


def remark_2(sizes: Record) -> Iterator[Record]:
    """Measure how each method rises over log-spaced u from 1e-6 to 1e6."""
    every = np.logspace(-6.0, 6.0, sizes["points"])
    for name in (*VALUES, *APPROXIMATIONS):
        method = methods.METHODS.get(name)
        value = method.function if method and name not in VALUES else VALUES[name]
        gradient = method.gradient if method and name not in VALUES else GRADIENTS[name]
        assert gradient is not None
        # Check an approximation only in its intended range.
        u = every if method is None else every[-np.log(2.0 * every) <= method.domain.high]
        x = lk.log_alpha.from_u(u)
        kl, slope = -np.asarray(value(x)), np.asarray(gradient(x)) / u
        yield {
            "way": name,
            "exact": name in VALUES,
            "least_u": float(u[0]),
            "strictly_increases": bool(np.all(np.diff(kl) > 0.0)),
            "least_rise": float(np.diff(kl).min()),
            "least_gradient": float(slope.min()),
            "greatest_gradient": float(slope.max()),
            "gradient_at_the_least_u": float(slope[0]),
            "gradient_at_the_least_u_predicted": float(lk.special.kl_gap_grad(u[0])),
        }


def show(record: Record) -> str:
    first = columns(
        record["remark_1"],
        ("u", rounded("u")),
        ("KL, C = 1", "{kl:.12f}"),
        (
            "by samples",
            lambda row: (
                f"{row['monte_carlo']:.6f} ± {number(row['monte_carlo_standard_error'], 1)}"
            ),
        ),
        ("greatest difference", rounded("greatest_difference", 1)),
        ("dKL/du", "{gradient:.12g}"),
        ("relative", rounded("greatest_relative_difference_of_gradients", 1)),
    )
    second = columns(
        record["remark_2"],
        ("method", "{way}"),
        ("strictly increases", lambda row: yes(row["strictly_increases"])),
        ("over u from", rounded("least_u")),
        ("least dKL/du there", rounded("least_gradient", 4)),
        ("dKL/du at the least u", rounded("gradient_at_the_least_u", 7)),
        ("by Eq. 3", rounded("gradient_at_the_least_u_predicted", 7)),
    )
    ways = ", ".join(f"`{name}`" for name in record["remark_1"][0]["by"])
    return (
        f"The difference is the worst of {ways}.\n\n{first}\n\nRemark 2, that KL strictly "
        "increases in u, for u up to 10⁶ from the least u of each method's domain. dKL/du is the "
        f"method's own gradient; the last column is Eq. 3 at the least u.\n\n{second}"
    )


def measure(settings: Record, parts: Parts) -> Record:
    rows = list(remark_1(settings, settings["seeds"][0]))
    away = [
        abs(row["monte_carlo"] - row["kl"]) / row["monte_carlo_standard_error"]
        for row in rows
        if row["monte_carlo_standard_error"] > 0.0
    ]
    return {
        "remark_1": rows,
        "greatest_difference": max(row["greatest_difference"] for row in rows),
        "greatest_relative_difference_of_gradients": max(
            row["greatest_relative_difference_of_gradients"] for row in rows
        ),
        "greatest_deviation_of_monte_carlo_in_standard_errors": max(away),
        "remark_2": list(remark_2(settings)),
    }


EVERY_U = [0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 200.0, 1e3, 1e5]
FULL = {"u": EVERY_U, "points": 1001, "samples": 2**18, "digits": 30}
QUICK = {"u": EVERY_U[::4], "points": 41, "samples": 2**12}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=5, packages=())
EXPERIMENT.run(__name__)
