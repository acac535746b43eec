"""Statements of Kingma et al. in section 5 about Table 1, and in appendices D and F."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from validation.papers.definition import NODES, WEIGHTS
from validation.papers.kingma2015 import printed
from validation.papers.statement import Found, statement
from validation.paths import RESULTS
from validation.verdict import agreement

LAYERS = ("top", "bottom")
NORMAL = 1.96  # standard errors in half the width of a 95 % interval

Estimate = tuple[float, float]  # with its standard error


def variances(table: str) -> dict[tuple[str, str, int], Estimate]:
    """Read the variances of our Table 1 or 2 and their standard errors, for one network."""
    path = RESULTS / "kingma2015" / "gradient_variance.json"
    rows = json.loads(path.read_text(encoding="utf-8"))[table]["each"]
    seed = min(row["seed"] for row in rows)
    return {
        (row["estimator"], row["layer"], row["epochs"]): (row["variance"], row["standard_error"])
        for row in rows
        if row["seed"] == seed
    }


def over(one: Estimate, other: Estimate) -> Estimate:
    """Return the ratio of two independent estimates, with its standard error."""
    ratio = one[0] / other[0]
    return ratio, abs(ratio) * math.hypot(one[1] / one[0], other[1] / other[0])


def ratios(above: str, under: str) -> dict[str, Estimate]:
    """Return the ratios of two estimators' variances, with errors, after 10 and 100 epochs."""
    of = variances("table_1")
    return {
        f"{layer}_{epochs}": over(of[above, layer, epochs], of[under, layer, epochs])
        for layer in LAYERS
        for epochs in printed.EPOCHS
    }


def within(found: Iterable[Estimate], low: float, high: float) -> bool | None:
    """Say whether the 95 % intervals of some estimates lie in a range."""
    return agreement(((value, NORMAL * error) for value, error in found), low, high)


def listed(found: Mapping[str, Estimate]) -> str:
    return ", ".join(
        f"{value:.2f} ± {NORMAL * error:.2f} ({name.replace('_', ' layer, ')} epochs)"
        for name, (value, error) in found.items()
    )


@statement(
    "kingma-factor-of-two",
    "section 5, after Table 1",
    "a weight sample for each example has about twice the variance of local reparameterisation",
)
def factor_of_two() -> Found:
    found = ratios("per_example", "local")
    return Found(
        holds=within(found.values(), 1.0, 4.0),
        measured=found,
        note=f"in our Table 1, of one network, the ratios are {listed(found)}; from 1 to 4 counts "
        "as about 2",
        networks=True,
    )


def _changed(found: Mapping[str, Estimate]) -> str:
    each = (
        f"{value:.2f} ± {NORMAL * error:.2f} times (the {layer} layer)"
        for layer, (value, error) in found.items()
    )
    return f"{' and '.join(each)} as large after 100 epochs as after 10"


def changes(above: str, under: str) -> dict[str, Estimate]:
    """Return the ratio of two estimators' variances after 100 epochs over that after 10."""
    found = ratios(above, under)
    return {layer: over(found[f"{layer}_100"], found[f"{layer}_10"]) for layer in LAYERS}


@statement(
    "kingma-stable-factor",
    "section 5, after Table 1",
    "this factor remains relatively stable as training progresses",
)
def stable_factor() -> Found:
    found = changes("per_example", "local")
    return Found(
        holds=within(found.values(), 2.0 / 3.0, 1.5),
        measured=found,
        note=f"in our Table 1, of one network, it is {_changed(found)}. A change by less than half "
        "counts as stable; how the paper trained its network is not known",
        networks=True,
    )


@statement(
    "kingma-early",
    "section 5, after Table 1",
    "one weight sample for a minibatch, compared with one for each example, costs most early in "
    "training",
)
def early() -> Found:
    found = changes("per_batch", "per_example")
    return Found(
        holds=within(found.values(), -math.inf, 1.0),
        measured=found,
        note=f"the ratio of their variances in our Table 1, of one network, is {_changed(found)}",
        networks=True,
    )


@statement(
    "kingma-noise-of-correlated-weights",
    "appendix E, before Table 2",
    "with correlated weight noise the noise level is generally much higher than with independent "
    "noise",
)
def noise_of_correlated_weights() -> Found:
    """Compare local reparameterisation, as the appendix does: Table 2 over Table 1."""
    one, two = variances("table_1"), variances("table_2")
    columns = [(layer, epochs) for layer in LAYERS for epochs in printed.EPOCHS]
    ours = {f"{la}_{n}": over(two["local", la, n], one["local", la, n]) for la, n in columns}
    table = printed.GRADIENT_VARIANCE
    paper = [
        table["correlated"]["local", la, n] / table["independent"]["local", la, n]
        for la, n in columns
    ]
    return Found(
        holds=within(ours.values(), 1.5, math.inf),
        measured={"ours": ours, "paper": paper},
        note=f"in our tables, of one network each, the variance is {listed(ours)} times as large; "
        f"the paper's numbers give {min(paper):.1f} to {max(paper):.1f} times. 1.5 times or more "
        "counts as much higher",
        networks=True,
    )


@statement(
    "kingma-table-2-caption",
    "appendix E, Table 2, caption",
    "with correlated noise a separate weight sample for each data point is the same estimator as "
    "local reparameterisation",
)
def caption_of_table_2() -> Found:
    """Draw s for each example, and compute b = a W with w_i = s_i theta_i, and (a s) theta."""
    rng = np.random.default_rng(1)
    a, s, theta = (rng.standard_normal(shape) for shape in ((6, 4), (6, 4), (4, 3)))
    upstream = rng.standard_normal((6, 3))
    of_weights = np.einsum("mi,mij->mj", a, s[:, :, None] * theta)
    of_inputs = (a * s) @ theta
    gradients = (
        np.einsum("mi,mi,mj->ij", a, s, upstream),  # by the weights of each example
        (a * s).T @ upstream,  # by the noisy inputs
    )
    away = max(
        float(np.abs(of_weights - of_inputs).max()), float(np.abs(np.subtract(*gradients)).max())
    )
    return Found(
        holds=away < 1e-14,
        measured={"largest_difference": away},
        note="(A s) theta and A W with w_i = s_i theta_i are equal for each draw of s, and so are "
        f"their gradients in theta (to {away:.0e}); both draw one s for each example and input",
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
