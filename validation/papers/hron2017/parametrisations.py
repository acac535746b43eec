r"""Section 4: additive and multiplicative.

KL is least at μ = 0 for every σ. Gradient flow reaches that at a σ that is known beforehand; in
multiplicative coordinates the flow goes to α = ∞, with KL as 1/t.

Additive is q(w) = N(mu, sigma^2), multiplicative N(theta, alpha theta^2). Gradient flow of KL in
(mu, log sigma^2) keeps log sigma^2 + mu^2/4, since dKL/dlog sigma^2 = -mu/2 dKL/dmu. In (mu, log
sigma) it keeps log sigma + mu^2/2, in (mu, sigma) sigma^2 + mu^2. At its end mu = 0, and KL falls
as e^(-2 t/sigma^2). In log alpha dalpha/dt = D(sqrt u)/(2 sqrt u) -> 1/2; in alpha itself alpha^3
grows as 3t/2.

With data, the expected log-likelihood is -kappa/2 [(mu - 1)^2 + sigma^2]. Where the gradient is 0,
mu = 1/(1 + alpha) and

    kappa = 2 u F'(u) (1 + alpha)^2/alpha,    u = 1/(2 alpha),

which falls from inf to 1 as alpha rises from 0 to inf. So a weight is kept if kappa > 1, at an
alpha near 1/kappa for large kappa and near (5/3)/(kappa - 1) for kappa near 1.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq

import logunif_kl as lk
import logunif_kl.torch as lkt
from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import columns, number, rounded
from validation.output import track
from validation.papers.hron2017.flows import PRUNED, WAYS, flow, log_alpha

# The quantity that gradient flow of the divergence conserves, as log sigma^2 at mu = 0.
END: dict[str, Callable[[float, float], float]] = {
    "log_sigma2": lambda mu, rho: rho + 0.25 * mu**2,
    "log_sigma": lambda mu, rho: rho + mu**2,
    "sigma": lambda mu, rho: math.log(math.exp(rho) + mu**2),
}


def of_the_divergence_alone(sizes: Record) -> Iterator[Record]:
    """Follow the gradient flow of KL from each start in each coordinate system."""
    decades = np.concatenate([[0.0], np.logspace(-2, sizes["decades"], sizes["decades"] + 3)])
    for start in sizes["starts"]:
        for name, way in WAYS.items():
            end = END[name](*start) if way.additive else 0.0
            # Measure the final decay after the flow has reached the neighbourhood of mu = 0 in time
            # mu_0^2.
            last = np.linspace(0.0, start[0] ** 2 + 20.0 * math.exp(end), 801)[1:]
            times = np.union1d(decades, last[last < decades[-1]])
            path, _ = flow(way, start, times, 0.0, sizes["tolerance"])
            kl = lk.kl_normal(path[:, 0], path[:, 1])
            row: Record = {
                "start": start,
                "way": name,
                "mu_at_the_end": path[-1, 0],
                "log_sigma2_at_the_end": path[-1, 1],
                "kl": {f"{t:g}": float(v) for t, v in zip(times, kl, strict=True) if _decade(t)},
            }
            if way.additive:
                row["log_sigma2_predicted"] = end
                # Where sigma has its final value, and mu is above the tolerance.
                falls = (path[:, 0] ** 2 < 1e-3) & (path[:, 0] ** 2 > 1e-8)
                t, logs = times[falls], np.log(kl[falls])
                row["rate"] = float((logs[0] - logs[-1]) / (t[-1] - t[0]))
                row["rate_predicted"] = 2.0 * math.exp(-end)
            else:
                alpha = math.exp(log_alpha(*path[-1]))
                predicted = {"log_alpha": times[-1] / 2, "alpha": (1.5 * times[-1]) ** (1 / 3)}
                row["alpha_at_the_end"] = alpha
                row["alpha_over_its_limit"] = alpha / predicted[name]
                row["theta_moved_by"] = float(np.abs(path[:, 0] - start[0]).max())
            yield row


def _decade(t: float) -> bool:
    return t >= 1.0 and math.isclose(math.log10(t), round(math.log10(t)), abs_tol=1e-9)


def at_the_minimum() -> Record:
    """Measure KL, its gradient and its curvature at mu = 0, and at large alpha."""

    def kl(p: torch.Tensor) -> torch.Tensor:
        return lkt.kl_normal(p[0], p[1])

    def additive(rho: float) -> Record:
        point = torch.tensor([0.0, rho], dtype=torch.float64)
        return {
            "log_sigma2": rho,
            "kl": float(kl(point)),
            "gradient": torch.func.grad(kl)(point).tolist(),
            "hessian": torch.func.hessian(kl)(point).tolist(),
            "curvature_predicted": math.exp(-rho),
        }

    def multiplicative(x: float) -> Record:
        u, value, slope = 0.5 * math.exp(-x), float(lk.kl(x)), -float(lk.neg_kl_grad(x))
        return {
            "log_alpha": x,
            "kl": value,
            "gradient": slope,
            "kl_over_u": value / u,
            "gradient_over_minus_u": -slope / u,
        }

    return {
        "additive_at_mu_0": list(map(additive, (-20.0, -4.0, 0.0, 3.0))),
        "multiplicative_far_out": list(map(multiplicative, (3.0, 10.0, 100.0, 700.0))),
    }


def kappa_of(x: float) -> float:
    """Compute the kappa for which log alpha = x is stationary."""
    alpha = math.exp(x)
    return 2.0 * float(lk.neg_kl_grad(x)) * (1.0 + alpha) * (1.0 + 1.0 / alpha)


def stationary(kappa: float) -> float | None:
    """Find the log alpha where the gradient with data is 0, or return None."""
    if kappa <= 1.0:
        return None
    return float(brentq(lambda x: kappa_of(x) - kappa, -30.0, 30.0, xtol=1e-14))


def threshold() -> Record:
    grid = np.linspace(-25.0, 25.0, 5001)
    values = np.array([kappa_of(x) for x in grid])
    near = 1e-3
    just_above, far_above = stationary(1.0 + near), stationary(1e4)
    assert just_above is not None
    assert far_above is not None
    return {
        "kappa_falls_everywhere": bool(np.all(np.diff(values[grid <= 12.0]) < 0.0)),
        "kappa_at_log_alpha_25": float(values[-1]),
        "alpha_times_kappa_less_1_near_1": math.exp(just_above) * near,
        "alpha_times_kappa_less_1_predicted": 5.0 / 3.0,
        "alpha_times_kappa_at_1e4": math.exp(far_above) * 1e4,
    }


def with_data(sizes: Record) -> Iterator[Record]:
    """Follow the gradient flow of both parametrisations with data of each kappa."""
    times = np.concatenate([[0.0], np.logspace(-2, sizes["decades"], 60)])
    start = tuple(sizes["start_with_data"])
    steps = {name: adam(name, sizes) for name in ("log_sigma2", "log_alpha")}
    for index, kappa in enumerate(track(sizes["kappas"], "data", len(sizes["kappas"]))):
        x = stationary(kappa)
        for name in ("log_sigma2", "log_alpha"):
            path, pruned_at = flow(WAYS[name], start, times, kappa, sizes["tolerance"])
            mu, rho = (float(v) for v in path[-1])
            loss = 0.5 * kappa * ((mu - 1.0) ** 2 + math.exp(rho))
            yield {
                "kappa": kappa,
                "way": name,
                "log_alpha_at_the_end": log_alpha(mu, rho),
                "log_alpha_predicted": x,
                "mu_at_the_end": mu,
                "mu_predicted": 0.0 if x is None else 1.0 / (1.0 + math.exp(x)),
                "log_sigma2_at_the_end": rho,
                "objective_at_the_end": loss + float(lk.kl_normal(mu, rho)),
                "objective_where_pruned": 0.5 * kappa,
                "time_to_log_alpha_3": pruned_at,
                "steps_of_adam_to_log_alpha_3": steps[name][index],
            }


def adam(name: str, sizes: Record) -> list[int | None]:
    """Count Adam's steps until log alpha stays above 3, for all kappa at once.

    In additive coordinates mu may pass through 0, where log alpha exceeds 3 for a few steps.
    """
    way, count = WAYS[name], len(sizes["kappas"])
    state = [
        torch.full((count,), value, dtype=torch.float64, requires_grad=True)
        for value in way.start(*sizes["start_with_data"])
    ]
    kappa = torch.tensor(sizes["kappas"], dtype=torch.float64)
    last = torch.zeros(count, dtype=torch.int64)  # the last step with log alpha at most 3
    optimizer = torch.optim.Adam(state, lr=sizes["learning_rate"])
    for step in range(1, sizes["steps"] + 1):
        optimizer.zero_grad()
        mu, second = state
        if way.additive:
            variance, kl = second.exp(), lkt.kl_normal(mu, second)
        else:
            variance, kl = second.exp() * mu.square(), lkt.kl(second)
        loss = (0.5 * kappa * ((mu - 1.0).square() + variance) + kl).sum()
        torch.autograd.backward(loss)
        optimizer.step()
        with torch.no_grad():
            x = second - 2.0 * mu.abs().log() if way.additive else second
        last[x <= PRUNED] = step
    return [None if step == sizes["steps"] else step + 1 for step in last.tolist()]


def draw(record: Record) -> Any:
    figure, (left, right) = subplots((9.6, 4.4), 1, 2)
    mu, rho = np.meshgrid(np.linspace(-3.2, 3.2, 101), np.linspace(-6.0, 6.0, 101))
    levels = [0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    options = {"levels": levels, "cmap": "Greys", "extend": "max"}
    left.contourf(mu, rho, lk.kl_normal(mu, rho), **options)
    drawn = right.contourf(mu, rho, lk.kl(rho), **options)
    figure.colorbar(drawn, ax=[left, right], label="KL less its least value, in nats")
    times = np.concatenate([[0.0], np.logspace(-4, 2.5, 2000)])
    looks = (("log_sigma2", "#0072B2", "-", "o"), ("log_alpha", "#D55E00", "--", "^"))
    for index, start in enumerate([(3.0, -4.0), (1.5, -3.0), (-2.5, -1.0), (-1.0, -5.0)]):
        for name, colour, line, marker in looks:
            way = WAYS[name]
            found, _ = flow(way, start, times, 0.0, record["settings"]["tolerance"])
            x = np.array([log_alpha(*each) for each in found])
            label = f"gradient flow, {way.title}" if index == 0 else None
            left.plot(found[:, 0], found[:, 1], line, color=colour, linewidth=1.6, label=label)
            right.plot(found[:, 0], x, line, color=colour, linewidth=1.6)
            left.plot(*found[-1], marker, color=colour, markersize=6, clip_on=True)
            if x[-1] < 6.0:
                right.plot(found[-1, 0], x[-1], marker, color=colour, markersize=6)
    left.axvline(0.0, color="#0072B2", linewidth=0.8, linestyle=":")
    left.set(xlabel="μ", ylabel="log σ²", xlim=(-3.2, 3.2), ylim=(-6.0, 6.0))
    right.set(xlabel="θ", ylabel="log α", xlim=(-3.2, 3.2), ylim=(-6.0, 6.0))
    left.set_title("additive: least on the line μ = 0", fontsize="medium")
    right.set_title("multiplicative: falls to α = ∞", fontsize="medium")
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    return figure


def show(record: Record) -> str:
    additive = [row for row in record["flows"] if "rate" in row]
    others = [row for row in record["flows"] if "rate" not in row]
    near, far = record["additive_at_mu_0"], record["multiplicative_far_out"]
    away = [(row["kl"], *row["gradient"], row["hessian"][0][1], *row["hessian"][1]) for row in near]
    zero = "not 0" if any(map(any, away)) else "exactly 0"
    ratios = (f"{row['hessian'][0][0] / row['curvature_predicted']:.15g}" for row in near)
    at, kl = (number(row["log_alpha"]) for row in far), (number(row["kl"], 4) for row in far)
    parts = [
        f"At μ = 0, KL, its gradient and the row of its Hessian in log σ² are {zero}. Its "
        f"curvature in μ, divided by 1/σ², is {', '.join(ratios)}. In multiplicative coordinates "
        f"KL is never 0: at log α = {', '.join(at)} it is {', '.join(kl)}.",
        "Gradient flow of KL alone, in additive coordinates:",
        columns(
            additive,
            ("from (μ, log σ²)", _start),
            ("in", _way),
            ("μ at the end", rounded("mu_at_the_end", 1)),
            ("log σ²", "{log_sigma2_at_the_end:.8f}"),
            ("predicted", "{log_sigma2_predicted:.8f}"),
            ("rate", rounded("rate", 5)),
            ("predicted", rounded("rate_predicted", 5)),
        ),
        f"In multiplicative coordinates, until t = 10^{record['settings']['decades']}:",
        columns(
            others,
            ("from (μ, log σ²)", _start),
            ("in", _way),
            ("θ moved by", rounded("theta_moved_by")),
            ("α over its limit", "{alpha_over_its_limit:.5f}"),
            ("KL at the end", lambda row: number(list(row["kl"].values())[-1])),
        ),
        "With data of squared signal κ. A weight is kept if κ > 1, and then both parametrisations "
        "reach the predicted α. The time and the Adam steps count until log α stays above 3:",
        columns(
            record["with_data"],
            ("κ", rounded("kappa")),
            ("in", _way),
            ("log α at the end", lambda row: _log_alpha(row, row["log_alpha_at_the_end"])),
            ("predicted", lambda row: _log_alpha(row, row["log_alpha_predicted"])),
            ("μ", rounded("mu_at_the_end", 6)),
            ("predicted", rounded("mu_predicted", 6)),
            ("time", rounded("time_to_log_alpha_3")),
            ("Adam", rounded("steps_of_adam_to_log_alpha_3", 5)),
        ),
    ]
    return "\n\n".join(parts)


def _way(row: Record) -> str:
    return WAYS[row["way"]].title.partition("(")[2].rstrip(")")


def _start(row: Record) -> str:
    return ", ".join(f"{value:g}" for value in row["start"])


def _log_alpha(row: Record, value: float | None) -> str:
    """Write a log alpha, with 8 decimals if one is predicted; ∞ if the data have no signal."""
    if value is None:
        return "∞"
    return number(value) if row["log_alpha_predicted"] is None else f"{value:.8f}"


def measure(settings: Record, parts: Parts) -> Record:
    return {
        **at_the_minimum(),
        "flows": list(of_the_divergence_alone(settings)),
        "threshold": threshold(),
        "with_data": list(with_data(settings)),
    }


FULL = {  # starting points and lengths of paths
    "starts": [(2.0, -2.0), (1.0, -4.0), (3.0, 0.0), (-2.0, 1.0)],
    "decades": 6,
    "kappas": [0.0, 0.25, 0.5, 0.9, 1.1, 1.5, 2.0, 4.0, 9.0, 25.0],
    "steps": 20_000,
    "start_with_data": (1.0, -4.0),
    "learning_rate": 1e-2,
    "tolerance": 1e-10,
}
QUICK = {"starts": [(2.0, -2.0)], "decades": 3, "kappas": [0.5, 4.0], "steps": 300}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=4, draw=draw)
EXPERIMENT.run(__name__)
