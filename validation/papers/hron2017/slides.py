r"""Slides about Kingma et al. 2015.

Statements of the slides that the paper does not make or that Hron et al. deny. The slides are
"Variational Dropout and the Local Reparameterization Trick", dated 2/21/2024; our copy names
neither an author nor an address.

``decided_elsewhere`` names what decides the other statements.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from scipy import stats
from scipy.optimize import minimize

import logunif_kl as lk
from validation.experiment import Experiment, Parts, Record
from validation.markdown import table
from validation.output import track
from validation.papers.definition import NODES, WEIGHTS
from validation.papers.hron2017.models import MODELS, Model, normaliser
from validation.papers.kingma2015 import printed
from validation.papers.statement import Found

ELSEWHERE = {
    "the KL divergence cannot be analytically evaluated": "kingma-not-tractable",
    "the authors prove that the cubic approximates it": "kingma-cubic-accurate",
    "the KL divergence does not depend on theta": "kingma-independent-of-theta",
    "the gradients of both estimators": "kingma2015/extra_variance",
    "the time of an epoch": "kingma2015/speed",
}


def minibatches(sizes: Record, seed: int) -> Found:
    rng, rho = np.random.default_rng([seed, 1]), 0.1

    def row(size: int) -> Record:
        # Likelihoods of variance 1, with the covariance rho of a common noise.
        shape = sizes["draws"] // size, size
        common = math.sqrt(rho) * rng.standard_normal((shape[0], 1))
        means = (common + math.sqrt(1.0 - rho) * rng.standard_normal(shape)).mean(1)
        predicted = 1.0 / size + (size - 1) / size * rho
        return {
            "minibatch": size,
            "of_the_variance": 1.0 / size,
            "of_the_covariance": (size - 1) / size,
            "measured": float(means.var()),
            "standard_error": predicted * math.sqrt(2.0 / shape[0]),
            "predicted": predicted,
        }

    rows = list(map(row, (1, 2, 10, 100)))
    # From M = 2 on, the covariances' part rises towards the whole covariance, as the variances'
    # part falls to 0.
    falls = [row["of_the_variance"] for row in rows]
    stays = [row["of_the_covariance"] for row in rows[1:]]
    return Found(
        holds=falls == sorted(falls, reverse=True) and stays == sorted(stays),
        measured={"covariance": rho, "rows": rows},
        note="the slide's next bullet says what is meant, in the paper's words: “The contribution "
        "of the covariance between data points is not reduced by increasing the minibatch size.” "
        "In the variance of the mean the variances have the factor 1/M, and the covariance "
        "(M - 1)/M, which never falls",
    )


def draws() -> Found:
    # Of a layer of 1000 by 1000, and 1000 examples.
    numbers = {
        "weight sample per data point": 1000**3,
        "weight sample per minibatch, the slides' standard": 1000**2,
        "local reparameterisation": 1000**2,
    }
    per_example, standard, local = numbers.values()
    seconds = printed.SECONDS_AN_EPOCH
    return Found(
        holds=seconds["per_example"] / seconds["local"] > 50.0 and per_example / local > 50.0,
        measured={
            "random_numbers_of_a_layer_and_a_step": numbers,
            "paper_ratio_of_seconds": seconds["per_example"] / seconds["local"],
            "ratio_of_numbers_per_data_point": per_example / local,
            "ratio_of_numbers_standard": standard / local,
        },
        note="the paper calls it so, too: “the regular SGVB estimator, with separate weight "
        "samples per datapoint”, “took 1635 seconds per epoch” (section 5, Speed). For a "
        f"layer of 1000 by 1000 and 1000 examples it draws {per_example / local:.0f} times as many "
        "random numbers. What the slides' table calls standard is another estimator, with one "
        "sample for each minibatch",
    )


# Slide "Variance", in the order of `printed`: top layer after 10 and 100 epochs, bottom layer.
SHOWN = {
    "local": (7.8e3, 1.2e3, 1.9e2, 1.1e2),
    "per_example": (1.4e4, 2.6e3, 4.3e2, 2.5e2),
    "per_batch": (4.9e4, 4.3e3, 8.5e2, 3.3e2),
    "none": (2.8e3, 5.9e1, 1.3e2, 9.0e0),
}


def lowest_variance() -> Found:
    table, shown = printed.GRADIENT_VARIANCE["independent"], printed.keyed(SHOWN)
    other = [key for key, value in shown.items() if table[key] != value]
    ratios = {
        f"{layer}, {epochs} epochs": min(
            table[(name, layer, epochs)] / table[("local", layer, epochs)]
            for name in ("per_example", "per_batch")
        )
        for layer, epochs in itertools.product(printed.LAYERS, printed.EPOCHS)
    }
    return Found(
        holds=not other and min(ratios.values()) > 1.0,
        measured={"numbers_that_differ": len(other), "next_lowest_over_local": ratios},
        note="the slides' numbers are the paper's, and in each column the next estimator with "
        f"dropout noise has {min(ratios.values()):.2f} times the variance or more",
    )


def only_prior() -> Found:
    alpha, step = 0.25, 1e-3
    slopes = {}
    for power in (0.5, 0.9, 1.0, 1.1, 2.0):
        ends = [_kl_of_power(alpha, math.exp(s * step), power) for s in (-1.0, 1.0)]
        slopes[f"|w|^-{power:g}"] = (ends[1] - ends[0]) / (2.0 * step)
    predicted = {name: float(name.removeprefix("|w|^-")) - 1.0 for name in slopes}
    away = max(abs(slopes[name] - predicted[name]) for name in slopes)
    with mpmath.workdps(20):
        # E |eps|^(i nu) = (2 alpha)^(i nu/2) Gamma((1 + i nu)/2)/sqrt(pi) M(-i nu/2; 1/2; -u).
        least = min(
            float(abs(mpmath.hyp1f1(mpmath.mpc(0, -nu / 2), 0.5, -1 / (2 * mpmath.mpf(a)))))
            for a in (0.05, 0.1, 0.25, 0.5, 1.0, 4.0)
            for nu in np.linspace(0.0, 30.0, 61).tolist()
        )
    sided = float(np.log(2.0) * (2.0 * stats.norm.cdf(1.0 / math.sqrt(alpha)) - 1.0))
    return Found(
        holds=away < 1e-6 and least > 0.0,
        measured={
            "alpha": alpha,
            "slope_in_log_theta": slopes,
            "predicted": predicted,
            "least_magnitude_of_kummers_function": least,
            "difference_between_signs_of_theta_if_c_is_twice_as_large_for_positive_weights": sided,
        },
        note="for |w|^-c the divergence has slope c - 1 in log|theta|. E|eps|^(i nu), which would "
        "have to vanish for a prior that waves in log|w|, has no zero: M(a; 1/2; -u) has zeros at "
        "real a alone. With one C for positive and another for negative weights log|w| is still "
        "uniform, and the divergence depends on the sign of theta alone",
    )


def _kl_of_power(alpha: float, theta: float, power: float) -> float:
    """Compute KL of N(theta, alpha theta^2) from |w|^-power, with E log|w| from `kl_normal`."""
    log_sigma2 = math.log(alpha) + 2.0 * math.log(theta)
    of_the_log_uniform = float(lk.kl_normal(theta, log_sigma2, log_c=0.0))
    entropy = 0.5 * (math.log(2.0 * math.pi * math.e) + log_sigma2)
    return of_the_log_uniform + (power - 1.0) * (of_the_log_uniform + entropy)


def lower_bound(sizes: Record) -> Found:
    b = 1e3

    def row(name: str, model: Model) -> Record:
        best, where = _greatest_elbo(model)
        logs = {
            f"1e-{power}": math.log(normaliser(model, 10.0**-power, b)) for power in sizes["powers"]
        }
        values = list(logs.values())
        return {
            "model": name,
            "greatest_elbo": best,
            "at_mu_and_log_sigma2": where,
            "log_marginal_likelihood_by_cut_off": logs,
            "gap_at_the_least_cut_off": values[-1] - best,
            "growth_at_the_end": values[-1] - values[-2],
        }

    rows = list(itertools.starmap(row, MODELS.items()))
    jensen = list(itertools.starmap(_jensen, MODELS.items()))
    return Found(
        holds=all(row["gap"] >= 0.0 for row in jensen)
        and all(row["gap_at_the_least_cut_off"] > 0.0 for row in rows),
        measured={
            "by_jensen": jensen,
            "with_the_log_uniform_prior": {"right_cut_off": b, "log_c": 0.0, "rows": rows},
        },
        note="the slide cites previous work: Wang and Manning (2013), section 5, as the paper does "
        "in section 1. There the noise itself is the prior: by Jensen E_q log p(y|w) <= log E_q "
        "p(y|w), and the gaps here, at alpha = 0.25, are "
        + ", ".join(f"{row['gap']:.3f}" for row in jensen)
        + ". With the log-uniform prior of Eq. 12 the marginal likelihood is infinite (Hron et "
        "al., Proposition 1), so any objective is below it: with C = 1 and the cut-offs 1e-300 and "
        "1e3 its logarithm is "
        + ", ".join(f"{row['gap_at_the_least_cut_off']:.2f}" for row in rows)
        + " above the greatest objective over all Gaussian posteriors, and it grows as log "
        "log(1/a) without end",
    )


def _jensen(name: str, model: Model) -> Record:
    """Compare E_q log p(y|w) with log E_q p(y|w), for Gaussian dropout of a weight of mean 1."""
    theta, alpha = 1.0, 0.25
    logs = model.log_likelihood(theta * (1.0 + math.sqrt(alpha) * NODES))
    expected, evidence = float(WEIGHTS @ logs), math.log(float(WEIGHTS @ np.exp(logs)))
    return {
        "model": name,
        "expected_log_likelihood": expected,
        "log_marginal_likelihood": evidence,
        "gap": evidence - expected,
    }


def _greatest_elbo(model: Model) -> tuple[float, list[float] | None]:
    """Maximise E log L - KL over N(mu, sigma^2), C = 1; None for the limit at mu = sigma = 0."""
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()

    def negative(q: Any) -> float:
        mu, rho = float(q[0]), float(np.clip(q[1], -60.0, 12.0))
        expected = float(weights @ model.log_likelihood(mu + math.exp(0.5 * rho) * points))
        return float(lk.kl_normal(mu, rho, log_c=0.0)) - expected

    starts = [(mu, rho) for mu in (-1.0, 0.1, 1.0, 4.0) for rho in (-3.0, 0.0, 3.0)]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    tried = [minimize(negative, s, method="Nelder-Mead", options=options) for s in starts]
    best = min(tried, key=lambda each: each.fun)
    at_zero = math.log(model.at_zero) - float(lk.kl_normal(0.0, 0.0, log_c=0.0))
    if -best.fun <= at_zero + 1e-7:
        return at_zero, None
    return -float(best.fun), [float(v) for v in best.x]


def show(record: Record) -> str:
    said = table(
        ["the slides", "the paper", "verdict", "why"],
        (
            (found["says"], found["paper"], found["verdict"], found["note"].replace("|", "\\|"))
            for found in record["statements"]
        ),
    )
    others = table(["the slides", "decided by"], record["decided_elsewhere"].items())
    return f"{said}\n\nThese pages test the statements that are also in the paper:\n\n{others}"


def measure(settings: Record, parts: Parts) -> Record:
    seed = settings["seeds"][0]
    statements: list[tuple[str, str, str, Callable[[], Found]]] = [
        (
            "Variance of the SGVB estimator",
            "increasing the minibatch size only impacts the contribution of variance; that of the "
            "covariance is not reduced",
            "“the total contribution by the covariances does not decrease with M” (section 2.2)",
            lambda: minibatches(settings, seed),
        ),
        (
            "Speed",
            "the regular SGVB estimator takes 1635 seconds an epoch",
            "“the regular SGVB estimator, with separate weight samples per datapoint” (section "
            "5, Speed)",
            draws,
        ),
        (
            "Variance",
            "local reparameterisation has the lowest variance of all that use dropout",
            "Table 1",
            lowest_variance,
        ),
        (
            "Dropout prior and posterior",
            "the only prior that can be used is the log-uniform one",
            "the only prior consistent with dropout (appendix C)",
            only_prior,
        ),
        (
            "Motivation for the paper",
            "Gaussian dropout optimises a lower bound on the marginal likelihood of the data",
            "“In section 5 of [22] it is shown that Gaussian dropout optimizes a lower bound on "
            "the marginal likelihood of the data” (section 1)",
            lambda: lower_bound(settings),
        ),
    ]
    records = [
        {"slide": slide, "says": said, "paper": paper, **decide().record()}
        for slide, said, paper, decide in track(statements, "slides", len(statements))
    ]
    return {"statements": records, "decided_elsewhere": ELSEWHERE}


FULL = {"draws": 400_000, "powers": [1, 3, 10, 30, 100, 300]}
QUICK = {"draws": 20_000, "powers": [1, 3, 300]}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=6, packages=())
EXPERIMENT.run(__name__)
