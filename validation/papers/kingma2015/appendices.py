"""Statements of Kingma et al. in section 5 about Table 1, and in appendices D and F."""

import json
import math
from typing import Any

import numpy as np

from validation.papers.definition import NODES, WEIGHTS
from validation.papers.statement import Found, by_one_network, statement
from validation.paths import RESULTS

LAYERS = ("top", "bottom")


def table_1() -> dict[tuple[str, str, int], tuple[float, float]]:
    """Read the variances of our Table 1 and their standard errors, for one network."""
    path = RESULTS / "kingma2015" / "gradient_variance.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["table_1"]["each"]
    seed = min(row["seed"] for row in rows)
    return {
        (row["estimator"], row["layer"], row["epochs"]): (row["variance"], row["standard_error"])
        for row in rows
        if row["seed"] == seed
    }


def ratios(over: str, under: str) -> dict[str, tuple[float, float]]:
    """Return the ratios of two estimators' variances, with errors, after 10 and 100 epochs."""
    of, found = table_1(), {}
    for layer in LAYERS:
        for epochs in (10, 100):
            (a, of_a), (b, of_b) = of[over, layer, epochs], of[under, layer, epochs]
            found[f"{layer}_{epochs}"] = (a / b, a / b * math.hypot(of_a / a, of_b / b))
    return found


@statement(
    "kingma-factor-of-two",
    "section 5, after Table 1",
    "a weight sample for each example has about twice the variance of local reparameterisation",
)
def factor_of_two() -> Found:
    found = ratios("per_example", "local")
    low, high = (f(ratio for ratio, _ in found.values()) for f in (min, max))
    return Found(
        holds=by_one_network(low > 1.0 and high < 4.0),
        measured=found,
        note=f"in our Table 1 the ratios are {low:.2f} to {high:.2f}, in both layers after 10 and "
        "after 100 epochs of one network; a ratio from 1 to 4 counts as about 2",
    )


@statement(
    "kingma-stable-factor",
    "section 5, after Table 1",
    "this factor remains relatively stable as training progresses",
)
def stable_factor() -> Found:
    found = ratios("per_example", "local")
    said = [
        f"{layer} layer: {found[f'{layer}_10'][0]:.2f} ± {found[f'{layer}_10'][1]:.2f} after 10 "
        f"epochs, {found[f'{layer}_100'][0]:.2f} ± {found[f'{layer}_100'][1]:.2f} after 100"
        for layer in LAYERS
    ]
    changes = [found[f"{layer}_100"][0] / found[f"{layer}_10"][0] for layer in LAYERS]
    return Found(
        holds=by_one_network(all(2.0 / 3.0 < change < 1.5 for change in changes)),
        measured=found,
        note=f"in our Table 1, of one network: {'; '.join(said)}. A change by less than half "
        "counts as stable; how the paper trained its network is not known",
    )


@statement(
    "kingma-early",
    "section 5, after Table 1",
    "one weight sample for a minibatch, compared with one for each example, costs most early in "
    "training",
)
def early() -> Found:
    found = ratios("per_batch", "per_example")
    pairs = [(found[f"{layer}_10"][0], found[f"{layer}_100"][0]) for layer in LAYERS]
    said = "; ".join(
        f"{layer} layer: {a:.2f} after 10 epochs, {b:.2f} after 100"
        for layer, (a, b) in zip(LAYERS, pairs, strict=True)
    )
    return Found(
        holds=by_one_network(all(a > b for a, b in pairs)),
        measured=found,
        note=f"the ratio of their variances in our Table 1, of one network ({said})",
    )


def one_layer() -> dict[str, Any]:
    """Integrate the gradients of appendix D for two weights and log p = log sigmoid(b)."""
    a, sigma, gamma = np.array([1.0, 2.0]), np.array([0.6, 0.3]), 0.2
    delta = float(np.sum((a * sigma) ** 2))
    eps = np.meshgrid(NODES, NODES, indexing="ij")
    weight = np.outer(WEIGHTS, WEIGHTS)
    zeta = (a[0] * sigma[0] * eps[0] + a[1] * sigma[1] * eps[1]) / math.sqrt(delta)
    g = 1.0 / (1.0 + np.exp(gamma + math.sqrt(delta) * zeta))  # d log sigmoid(b)/db

    def variance(x: Any) -> float:
        return float(np.sum(weight * x * x) - np.sum(weight * x) ** 2)

    explicit = variance(g * eps[0] * a[0] / (2.0 * sigma[0]))
    local = variance(g * zeta * a[0] ** 2 / (2.0 * math.sqrt(delta)))
    share = (a[0] * sigma[0]) ** 2 / delta
    mean, left = math.sqrt(share) * zeta, 1.0 - share  # of eps given b
    factor = a[0] ** 2 / (4.0 * sigma[0] ** 2)
    of_eps = float(np.sum(weight * g * g)) * left * factor
    of_squares = float(np.sum(weight * g * g * (2.0 * left**2 + 4.0 * mean**2 * left))) * factor
    return {
        "added": explicit - local,
        "second_term": of_eps,
        "second_term_as_printed": of_squares,
        "delta": delta,
    }


@statement(
    "kingma-equation-45",
    "appendix D, Eq. 45",
    "given b, a weight sample adds E[g^2] Var[eps^2 | b] a^2/(4 sigma^2) to the variance",
)
def equation_45() -> Found:
    found = one_layer()
    printed, right = (
        found[name] / found["added"] for name in ("second_term_as_printed", "second_term")
    )
    return Found(
        holds=abs(printed - 1.0) < 1e-6,
        measured=found,
        note=f"on one layer by quadrature the printed term is {printed:.3f} times the variance "
        f"that is added; with Var[eps | b] in place of Var[eps^2 | b] it is {right:.9f} times",
    )


@statement("kingma-equation-46-q", "appendix D, Eqs. 45 and 46", "q = (b - gamma)^2 a^4/4")
def q_of_equation_46() -> Found:
    """Given b, Eq. 44 is dL/db times (b - gamma) a^2/(2 delta), whose square q has to be."""
    zeta, a, delta = 1.3, 0.7, one_layer()["delta"]
    factor = zeta * a**2 / (2.0 * math.sqrt(delta))  # of dL/db in Eq. 44
    away = math.sqrt(delta) * zeta  # b - gamma
    printed = away**2 * a**4 / 4.0
    return Found(
        holds=math.isclose(factor**2, printed),
        measured={"delta": delta, "printed": printed, "of_equation_44": factor**2},
        note=f"Eq. 44 gives q = (b - gamma)^2 a^4/(4 delta^2): at delta = {delta:.2f} the printed "
        f"q is {printed / factor**2:.3f} = delta^2 times that",
    )


@statement(
    "kingma-equation-48",
    "appendix F, Eq. 48",
    "the variance over minibatches without replacement is at most N/M (sum of L_D^2/N^2 + "
    "Var[L_i]) + 2 sum of Cov[L_i, L_j]",
)
def equation_48() -> Found:
    """Without noise: both variances are zero, and only the choice of the examples is left."""
    n, size = 1000, 50
    rng = np.random.default_rng(1)
    alike = np.full(n, -0.3) + 0.01 * rng.standard_normal(n)
    few_wrong = np.where(np.arange(n) < 20, -4.0, -0.01)  # as of a network that fits its data
    rows = {}
    for name, likelihoods in (("nearly_alike", alike), ("few_wrong", few_wrong)):
        drawn = [n / size * rng.permutation(likelihoods)[:size].sum() for _ in range(4000)]
        bound = n / size * likelihoods.sum() ** 2 / n
        exact = float(n**2 * (1.0 - size / n) / size * np.var(likelihoods, ddof=1))
        rows[name] = {"exact": exact, "drawn": float(np.var(drawn)), "printed_bound": bound}
    worst = rows["few_wrong"]["exact"] / rows["few_wrong"]["printed_bound"]
    return Found(
        holds=all(row["exact"] <= row["printed_bound"] for row in rows.values()),
        measured=rows,
        note="the step from (E L_i)^2 to (L_D/N)^2 is Jensen's inequality the wrong way. With "
        f"20 of {n} examples at log p = -4 and the others at -0.01, the variance is {worst:.1f} "
        "times the bound; if all L_i are nearly equal, the bound holds",
    )
