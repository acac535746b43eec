"""Statements of the blog post after Gal 2016."""

import itertools
import math

import numpy as np

from validation.papers.definition import NODES, WEIGHTS, log_sigmoid
from validation.papers.statement import Found, statement


@statement(
    "gal-point-mass",
    "MAP Variational inference relation",
    "the KL of a point mass from N(0, 1/lambda) is lambda/2 theta^2 + 1/2 log(2 pi/lambda)",
)
def point_mass() -> Found:
    theta, precision = 0.7, 2.0
    printed = precision / 2.0 * theta**2 + 0.5 * math.log(2.0 * math.pi / precision)
    deviations = (1.0, 1e-2, 1e-4, 1e-8)
    # KL of N(theta, s^2), which tends to the point mass
    kl = [
        0.5 * (precision * (theta**2 + s * s) - 1.0 - math.log(precision * s * s))
        for s in deviations
    ]
    return Found(
        holds=abs(kl[-1] - printed) < 1e-3,
        measured={"standard_deviations": deviations, "kl": kl, "printed": printed},
        note=f"that of N(theta, s^2) tends to infinity as s -> 0: {kl[-1]:.1f} at s = 1e-8, and "
        f"{printed:.2f} is printed. The entropy of a point mass is minus infinity, not zero; it "
        "does not depend on theta, so the minimum is still the MAP estimate",
    )


@statement(
    "gal-number-of-terms",
    "Approximate distribution dropout",
    "with dropout on both layers the expected log-likelihood is a sum of 2^(inputs + hidden) terms",
)
def number_of_terms() -> Found:
    inputs, hidden = 4, 3
    rng = np.random.default_rng(1)
    x, first, second = (rng.standard_normal(s) for s in (inputs, (inputs, hidden), hidden))
    masks = [
        (np.array(a), np.array(b))
        for a in itertools.product((0.0, 1.0), repeat=inputs)
        for b in itertools.product((0.0, 1.0), repeat=hidden)
    ]
    outputs = [float(np.tanh((x * a) @ first) * b @ second) for a, b in masks]
    different = len(set(outputs))
    assert different == (2**inputs - 1) * (2**hidden - 1) + 1
    return Found(
        holds=len(masks) == 2 ** (inputs + hidden),
        measured={"inputs": inputs, "hidden": hidden, "terms": len(masks), "different": different},
        note=f"2^({inputs} + {hidden}) = {len(masks)} masks; those that drop every input or every "
        f"hidden unit give the same output, so {different} = (2^{inputs} - 1) (2^{hidden} - 1) + 1 "
        "terms differ",
    )


@statement(
    "gal-reparametrisation",
    "Variational Inference Approach",
    "the reparametrisation trick and the log-derivative trick both give the derivative of an "
    "expectation; for log p = log sigmoid(w) and a Gaussian w the first has the smaller variance",
    stated=False,
)
def reparametrisation() -> Found:
    theta, sigma = 0.4, 0.5
    w = theta + sigma * NODES

    def expected(t: float) -> float:
        return float(np.sum(WEIGHTS * log_sigmoid(t + sigma * NODES)))

    exact = (expected(theta + 1e-5) - expected(theta - 1e-5)) / 2e-5
    rows = {
        "reparametrisation": 1.0 / (1.0 + np.exp(w)),
        "log_derivative": log_sigmoid(w) * NODES / sigma,
    }
    means = {name: float(np.sum(WEIGHTS * g)) for name, g in rows.items()}
    variances = {
        name: float(np.sum(WEIGHTS * g * g)) - means[name] ** 2 for name, g in rows.items()
    }
    ratio = variances["log_derivative"] / variances["reparametrisation"]
    return Found(
        holds=all(abs(mean - exact) < 1e-8 for mean in means.values()) and ratio > 1.0,
        measured={"exact": exact, "means": means, "variances": variances},
        note="for log p = log sigmoid(w), w ~ N(0.4, 0.25), by quadrature both means are the "
        f"derivative; the variance of the log-derivative estimate is {ratio:.0f} times as large",
    )
