r"""Proposition 1: chains.

The same posteriors by NumPyro. With cut-offs, their mean moves with the cut-off. Without cut-offs,
log|w| is a random walk. The walk of the linear model is reflected near its start: T √n is its limit
for many draws.

With cut-offs, NUTS draws log|w|, with the sign summed over. Without them, HMC has trajectories of
length T. Where the density is flat, each moves log|w| by T times a standard normal number, so that
after n draws the root mean square is T sqrt(n) and the mean magnitude T sqrt(2 n/pi). At last NUTS
with adaptation draws w itself under `ImproperLogUniform`, and R-hat shows whether a user would
notice.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import columns, measured, rounded, with_error
from validation.output import require, track
from validation.papers.hron2017.models import MODELS, Model, integral, normaliser

Array = npt.NDArray[np.float64]
NEAR = 1e-3  # a weight below this counts as zero
B = 1e3
LENGTH = 1.0  # of an HMC trajectory in log|w|, in ten steps


def expected(model: Model, a: float, b: float) -> dict[str, float]:
    low, high, mass = math.log(a), math.log(b), normaliser(model, a, b)

    def moment(power: int) -> float:
        with np.errstate(over="ignore"):
            return integral(lambda t: t**power * np.exp(model.of_log_magnitude(t)), low, high)

    mean = moment(1) / mass
    return {
        "mean": mean,
        "deviation": math.sqrt(moment(2) / mass - mean**2),
        "share_near_0": normaliser(model, a, NEAR) / mass,
    }


def _drawn(
    kernel: Any, name: str, counts: Record, seed: int, starts: Any = None, also: str = "diverging"
) -> tuple[Any, Any]:
    """Return the draws of a number, and another field of each draw, by chain."""
    import jax
    from numpyro.infer import MCMC

    sampler = MCMC(
        kernel,
        num_warmup=counts["warmup"],
        num_samples=counts["draws"],
        num_chains=counts["chains"],
        chain_method="vectorized",
        progress_bar=False,
    )
    start = None if starts is None else {name: starts}
    sampler.run(jax.random.key(seed), init_params=start, extra_fields=(also,))
    draws = sampler.get_samples(group_by_chain=True)[name]
    fields = sampler.get_extra_fields(group_by_chain=True)[also]
    return np.asarray(draws), np.asarray(fields)


def proper(model: Model, sizes: Record, seed: int) -> list[Record]:
    """Draw log|w| between B and each cut-off 10^-power by NUTS, one weight for each cut-off."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions
    from numpyro.diagnostics import summary
    from numpyro.infer import NUTS

    lows, high = -np.array(sizes["powers"]) * math.log(10.0), math.log(B)

    def weights() -> None:
        t = numpyro.sample("t", distributions.Uniform(jnp.asarray(lows), high).to_event(1))
        numpyro.factor("likelihood", model.of_log_magnitude(t, jnp).sum())

    every, diverging = _drawn(NUTS(weights, target_accept_prob=0.9), "t", sizes, seed)

    def row(index: int, power: int) -> Record:
        draws = every[..., index]
        near = (draws < math.log(NEAR)).astype(float)
        told = summary({"t": draws, "near": near}, group_by_chain=True)
        of_t, of_near = told["t"], told["near"]
        found = expected(model, 10.0**-power, B)
        return {
            "cut_off": 10.0**-power,
            **{f"{name}_predicted": value for name, value in found.items()},
            "mean": float(draws.mean()),
            "mean_standard_error": float(of_t["std"] / math.sqrt(of_t["n_eff"])),
            "deviation": float(draws.std()),
            "share_near_0": float(near.mean()),
            "share_standard_error": float(of_near["std"] / math.sqrt(of_near["n_eff"])),
            "r_hat": float(of_t["r_hat"]),
            "effective_draws": float(of_t["n_eff"]),
            "draws": int(draws.size),
            "divergences_at_all_cut_offs": int(diverging.sum()),
            "distance_of_distributions": _distance(model, draws.ravel(), lows[index], high),
        }

    return list(itertools.starmap(row, enumerate(sizes["powers"])))


def _distance(model: Model, draws: Array, low: float, high: float) -> float:
    """Compute Kolmogorov's distance between the draws and the distribution by quadrature."""
    grid = np.linspace(low, high, 4001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    with np.errstate(over="ignore"):
        cells = np.exp(model.of_log_magnitude(middle)) * np.diff(grid)
    below = np.concatenate([[0.0], np.cumsum(cells)]) / cells.sum()
    rank = (np.arange(len(draws)) + 0.5) / len(draws)
    return float(np.abs(np.interp(np.sort(draws), grid, below) - rank).max())


def walks(model: Model, sizes: Record, seed: int) -> Record:
    """Draw log|w| without cut-offs, by HMC with trajectories of length `LENGTH`, from w = 1."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions
    from numpyro.infer import HMC

    def weight() -> None:
        flat = distributions.ImproperUniform(distributions.constraints.real, (), ())
        t = numpyro.sample("t", flat)
        numpyro.factor("likelihood", model.of_log_magnitude(t, jnp))

    fixed = {"adapt_step_size": False, "adapt_mass_matrix": False}
    kernel = HMC(weight, step_size=LENGTH / 10.0, trajectory_length=LENGTH, **fixed)
    counts = {"warmup": 0, "draws": max(sizes["steps"]), "chains": sizes["walkers"]}
    starts = jnp.zeros(sizes["walkers"])
    draws, accepted = _drawn(kernel, "t", counts, seed, starts, also="accept_prob")

    def row(steps: int) -> Record:
        t = draws[:, steps - 1]
        square, size = t**2, np.abs(t)
        root = math.sqrt(square.mean())
        error = square.std(ddof=1) / (2.0 * root * math.sqrt(len(t)))
        return {
            "draws": steps,
            "root_mean_square": root,
            "root_mean_square_standard_error": float(error),
            "root_mean_square_predicted": LENGTH * math.sqrt(steps),
            "mean_magnitude": float(size.mean()),
            "mean_magnitude_standard_error": float(size.std(ddof=1) / math.sqrt(len(t))),
            "mean_magnitude_predicted": LENGTH * math.sqrt(2.0 * steps / math.pi),
            "share_beyond_1e-3_and_1e3": float((size > math.log(1e3)).mean()),
            "share_near_0": float((t < math.log(NEAR)).mean()),
        }

    between = max(1, draws.shape[1] // 300)
    return {
        "mean_acceptance": float(accepted.mean()),
        "rows": list(map(row, sizes["steps"])),
        "paths": draws[:5, ::between].round(3).tolist(),
        "draws_a_point": between,
    }


def unnoticed(model: Model, sizes: Record, seed: int) -> Record:
    """Draw w itself by NUTS with adaptation, under the improper prior."""
    import jax.numpy as jnp
    import numpyro
    from numpyro.diagnostics import summary
    from numpyro.infer import NUTS

    from logunif_kl.jax.numpyro import ImproperLogUniform

    def weight() -> None:
        w = numpyro.sample("w", ImproperLogUniform())
        numpyro.factor("likelihood", model.log_likelihood(w, jnp))

    starts = jnp.linspace(0.5, 2.0, sizes["chains"])
    kernel = NUTS(weight, max_tree_depth=sizes["tree_depth"])
    w, diverging = _drawn(kernel, "w", sizes, seed, starts)
    logs = np.log10(np.maximum(np.abs(w), 5e-324))
    told = summary({"t": logs}, group_by_chain=True)["t"]
    first, second = np.split(logs[:, : logs.shape[1] // 2 * 2], 2, axis=1)
    return {
        "r_hat": float(told["r_hat"]) if math.isfinite(told["r_hat"]) else None,
        "effective_draws": float(told["n_eff"]) if math.isfinite(told["n_eff"]) else None,
        "draws": int(logs.size),
        "divergences": int(diverging.sum()),
        "log10_magnitude_least": float(logs.min()),
        "log10_magnitude_greatest": float(logs.max()),
        "log10_magnitude_mean_by_chain": logs.mean(1).round(3).tolist(),
        "log10_magnitude_mean_of_first_half": float(first.mean()),
        "log10_magnitude_mean_of_second_half": float(second.mean()),
        "changes_of_sign": int((np.diff(np.sign(w), axis=1) != 0).sum()),
    }


def draw(found: Record) -> Any:
    figure, (left, right) = subplots((9.6, 4.2), 1, 2)
    looks = {"logistic": ("#0072B2", "-", "o"), "linear": ("#D55E00", "--", "s")}
    log10 = math.log(10.0)
    for name, part in found["without_cut_offs"].items():
        (colour, line, _), between = looks[name], part["draws_a_point"]
        for index, walk in enumerate(part["paths"]):
            x = 1 + between * np.arange(len(walk))
            label = f"{name}: 5 chains" if index == 0 else None
            y = np.array(walk) / log10
            left.plot(x, y, line, color=colour, linewidth=0.8, label=label)
    n = np.linspace(0, max(row["draws"] for row in part["rows"]), 200)
    for sign in (1, -1):
        width = sign * LENGTH * np.sqrt(n) / log10
        left.plot(n, width, "k:", label="± T √n, predicted" if sign > 0 else None)
    left.set(xlabel="draws n", ylabel="log₁₀|w|")
    left.set_title("without cut-offs: HMC wanders off", fontsize="medium")
    left.legend(fontsize="small", loc="lower left")
    for name, rows in found["with_cut_offs"].items():
        colour, _, marker = looks[name]
        x = [-math.log10(row["cut_off"]) for row in rows]
        mean = [row["mean"] / log10 for row in rows]
        predicted = [row["mean_predicted"] / log10 for row in rows]
        right.plot(x, mean, marker, color=colour, markersize=5, label=f"{name}: NUTS")
        right.plot(x, predicted, "-", color=colour, linewidth=1, label=f"{name}: quadrature")
    right.set(xlabel="log₁₀(1/a), the cut-off around 0", ylabel="posterior mean of log₁₀|w|")
    right.set_title("with cut-offs: the mean has no limit", fontsize="medium")
    right.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    sizes = record["settings"]
    within = columns(
        _rows(record["with_cut_offs"]),
        ("model", "{model}"),
        ("a", rounded("cut_off")),
        ("mean of t", measured("mean")),
        ("predicted", "{mean_predicted:.2f}"),
        (
            "share below 1e-3",
            lambda row: with_error(row["share_near_0"], row["share_standard_error"], 3),
        ),
        ("predicted", "{share_near_0_predicted:.3f}"),
        ("R-hat", "{r_hat:.3f}"),
    )
    walks = columns(
        _rows({name: part["rows"] for name, part in record["without_cut_offs"].items()}),
        ("model", "{model}"),
        ("draws", "{draws}"),
        ("rms of t", "{root_mean_square:.2f} ± {root_mean_square_standard_error:.2f}"),
        ("T √n", "{root_mean_square_predicted:.2f}"),
        ("mean size of t", "{mean_magnitude:.2f} ± {mean_magnitude_standard_error:.2f}"),
        ("T √(2n/π)", "{mean_magnitude_predicted:.2f}"),
    )
    unnoticed = columns(
        _rows({name: [row] for name, row in record["unnoticed"].items()}),
        ("model", "{model}"),
        ("R-hat", rounded("r_hat")),
        ("effective draws", rounded("effective_draws")),
        ("of", "{draws}"),
        ("least size of w", "10^{log10_magnitude_least:.1f}"),
        ("greatest", lambda row: f"10^{row['log10_magnitude_greatest'] + 0.0:.1f}"),
    )
    return (
        f"With cut-offs, {sizes['chains']} chains of {sizes['draws']} draws of t = log|w|:\n\n"
        f"{within}\n\n"
        f"Without cut-offs, {sizes['walkers']} chains from w = 1:\n\n{walks}\n\n"
        f"Without cut-offs, NUTS in w itself:\n\n{unnoticed}"
    )


def _rows(of_models: Record) -> list[Record]:
    return [{"model": model, **row} for model, rows in of_models.items() for row in rows]


def measure(settings: Record, parts: Parts) -> Record:
    jax = require("jax", "jax", "this experiment")
    require("numpyro", "jax", "this experiment")
    seed = settings["seeds"][0]
    found: Record = {"trajectory_length": LENGTH}
    with jax.enable_x64(True):
        for title, (draws_of, needs) in KINDS.items():
            kept = {name: settings[name] for name in needs}
            found[title] = {}
            for name in track(settings["models"], title, len(settings["models"])):
                own = 10 * seed + list(MODELS).index(name)
                make = partial(draws_of, MODELS[name], settings, own)
                found[title][name] = parts.get(f"{title}-{name}", make, seed=own, **kept)
    return found


KINDS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "with_cut_offs": (proper, ("powers", "chains", "draws", "warmup")),
    "without_cut_offs": (walks, ("walkers", "steps")),
    "unnoticed": (unnoticed, ("chains", "draws", "warmup", "tree_depth")),
}


FULL = {
    "models": ["logistic", "linear"],
    "powers": [4, 6, 12, 24, 48, 96, 192, 300],
    "chains": 8,
    "warmup": 1000,
    "draws": 4000,
    "tree_depth": 8,
    "walkers": 500,
    "steps": [10, 30, 100, 300, 1000, 3000],
}
QUICK = {"powers": [4, 12], "chains": 4, "warmup": 300, "draws": 500, "tree_depth": 5}
QUICK |= {"walkers": 200, "steps": [10, 100]}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, QUICK, place=2, draw=draw, packages=("jax", "numpyro")
)
EXPERIMENT.run(__name__)
