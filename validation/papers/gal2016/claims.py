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


@statement(
    "gal-sign-of-the-error",
    "Dropout as Bayesian Neural networks, end",
    "dropout training is variational inference if err is proportional to log p(y | f(x)), where "
    "the risk, the sum of err and a regulariser, is minimised",
)
def sign_of_the_error() -> Found:
    """Compare the gradients in theta for log p = log sigmoid(theta x), by its two signs."""
    theta, x, step = 0.4, 1.5, 1e-6

    def slope(sign: float) -> float:
        ends = (sign * float(log_sigmoid((theta + s * step) * x)) for s in (1.0, -1.0))
        above, below = ends
        return (above - below) / (2.0 * step)

    wanted = slope(-1.0)  # (ELBO BNN) has the sum of -log p
    found = {"as_printed": slope(1.0) / wanted, "with_minus": slope(-1.0) / wanted}
    return Found(
        holds=math.isclose(found["as_printed"], 1.0),
        measured=found,
        note="(ELBO BNN), which is minimised, has the sum of -log p(y | f(x)), so err is -log p up "
        "to a positive factor: as printed its gradient has the opposite sign, and training would "
        "make the data less likely",
    )


@statement(
    "gal-denominator",
    "Bayesian Neural Networks basics",
    "the likelihood is the first, and the prior the second term on the denominator of Bayes' "
    "theorem",
)
def denominator() -> Found:
    """Integrate the posterior for a prior N(0, 1) and p(y | w) = sigmoid(w)."""
    likelihood = np.exp(log_sigmoid(NODES))
    evidence = float(np.sum(WEIGHTS * likelihood))
    above = float(np.sum(WEIGHTS * likelihood / evidence))
    # With likelihood and prior below, the integrand is evidence/(likelihood prior) over all w.
    w = np.linspace(-8.0, 8.0, 1601)
    below = evidence / (np.exp(log_sigmoid(w)) * np.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi))
    printed = float(np.sum(below) * (w[1] - w[0]))
    return Found(
        holds=math.isclose(printed, 1.0),
        measured={"integral_with_both_above": above, "integral_with_both_below": printed},
        note="the post's own formula, p(y | X, w) p(w)/p(y | X), has both in the numerator, where "
        f"the posterior integrates to {above:.6f}; the marginal likelihood is the denominator",
    )
