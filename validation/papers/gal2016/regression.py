"""A regression in one dimension.

Points of sin(2x) + x/2 on two intervals, with noise of standard deviation 0.1; networks
1-100-100-1. The standard deviation is that of the samples; the interval and the log density include
the noise of the data. Means over the seeds, on points that were not trained on: in the intervals
(data), between them, and beyond.

Binary and Gaussian dropout of a fixed rate p minimise the risk with the L2 term of Gal and
Ghahramani (2016), section 3: for N points, noise of variance 1/tau and a prior N(0, 1/l^2) of the
weights W,

    (tau/2N) sum_n (y_n - f(x_n))^2 + (l^2/2N) (E|W|^2 + |b|^2).

There W is M with some rows dropped. Here the other rows are divided by 1 - p, as in torch, so
E|W|^2 is |M|^2/(1 - p), as with Gaussian noise. Variational dropout maximises its bound.
"""

# mypy: allow-untyped-calls
import math
import statistics
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from logunif_kl.torch import nn
from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import columns, rounded
from validation.training.loop import seeded

METHODS = {
    "none": "no dropout",
    "binary": "binary dropout",
    "gaussian_a": "Gaussian dropout A",
    "variational_a": "variational dropout A",
    "process": "Gaussian process",
}
SIGMA, LENGTH, RATE = 0.1, 0.5, 0.1
POSTERIOR = nn.Correlated(max_log_alpha=0.0, initial=math.log(RATE / (1.0 - RATE)))
SEEN = ((-3.0, -1.0), (0.5, 2.5))
RANGES = {"data": SEEN, "between": ((-1.0, 0.5),), "beyond": ((-5.0, -3.0), (2.5, 4.5))}
NORMAL_95 = 1.959963984540054

Array = npt.NDArray[np.float64]


def function(x: Array) -> Array:
    return np.asarray(np.sin(2.0 * x) + 0.5 * x)


def data(points: int, seed: int) -> tuple[Array, Array]:
    """Draw the training points, half of them from each interval."""
    rng = np.random.default_rng([seed, 3])
    x = np.concatenate([rng.uniform(low, high, points // 2) for low, high in SEEN])
    return x, function(x) + SIGMA * rng.standard_normal(len(x))


def network(method: str, hidden: int, seed: int, noise: torch.Generator) -> torch.nn.Sequential:
    """Build a network with one input and one output, and noise before the two upper layers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[torch.nn.Module] = [torch.nn.Linear(1, hidden)]
        for outputs in (hidden, 1):
            layers.append(torch.nn.ReLU())
            if method == "binary":
                layers.append(torch.nn.Dropout(RATE))
            if method == "gaussian_a":
                layers.append(nn.GaussianDropoutA(RATE, generator=noise))
            variational = method == "variational_a"
            linear: Any = nn.VariationalLinear if variational else torch.nn.Linear
            options = {"posterior": POSTERIOR, "generator": noise} if variational else {}
            layers.append(linear(hidden, outputs, **options))
    return torch.nn.Sequential(*layers)


def decays(method: str, model: torch.nn.Module, points: int) -> list[Record]:
    """Group the parameters with weight decays that equal their L2 term in the mean over points."""
    first = next(model.parameters())
    groups = []
    for name, parameter in model.named_parameters():
        square = 1.0 if method == "none" or parameter is first else 1.0 / (1.0 - RATE)
        if method == "variational_a" and parameter is not first and name != "0.bias":
            decay = 0.0
        else:
            decay = LENGTH**2 / points * (square if name.endswith("weight") else 1.0)
        groups.append({"params": [parameter], "weight_decay": decay})
    return groups


def train(method: str, seed: int, sizes: Record) -> torch.nn.Sequential:
    noise = seeded(seed, 1)
    model = network(method, sizes["hidden"], seed, noise)
    x, y = (torch.from_numpy(a).float()[:, None] for a in data(sizes["points"], seed))
    likelihood = partial(nn.normal_log_likelihood, log_sigma2=2.0 * math.log(SIGMA))
    optimizer = torch.optim.Adam(decays(method, model, len(x)), lr=3e-3)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, sizes["steps"])
    elbo = nn.ELBO(model, likelihood, len(x)) if method == "variational_a" else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=noise)))
        for _ in range(sizes["steps"]):
            optimizer.zero_grad()
            loss = -likelihood(model(x), y).mean() if elbo is None else elbo(x, y).loss
            loss.backward()
            optimizer.step()
            falling.step()
    return model.eval()


def predicted(method: str, seed: int, sizes: Record, x: Array) -> tuple[Array, Array]:
    if method == "process":
        return _process(*data(sizes["points"], seed), x)
    model, given = train(method, seed, sizes), torch.from_numpy(x).float()[:, None]
    if method == "none":
        with torch.no_grad():
            mean = model(given)[:, 0].double().numpy()
        return mean, np.zeros_like(mean)
    found = nn.predict(
        model, given, sizes["samples"], likelihood="normal", generator=seeded(seed, 2)
    )
    return found.mean[:, 0].double().numpy(), found.variance[:, 0].double().numpy()


def _process(x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(1.0) * RBF(1.0)
    process = GaussianProcessRegressor(kernel, alpha=SIGMA**2).fit(x[:, None], y)
    mean, deviation = process.predict(at[:, None], return_std=True)
    return mean, deviation**2


def judged(x: Array, y: Array, mean: Array, variance: Array) -> dict[str, float]:
    predictive = variance + SIGMA**2
    off = y - mean
    density = -0.5 * (np.log(2.0 * math.pi * predictive) + off**2 / predictive)
    return {
        "points": len(x),
        "standard_deviation": float(np.sqrt(variance).mean()),
        "coverage_95": float((np.abs(off) <= NORMAL_95 * np.sqrt(predictive)).mean()),
        "root_mean_squared_error": float(np.sqrt((off**2).mean())),
        "log_density": float(density.mean()),
    }


def measure_one(method: str, seed: int, sizes: Record) -> Record:
    rng = np.random.default_rng([seed, 4])
    tests = {
        name: np.concatenate(
            [rng.uniform(low, high, sizes["test_points"] // len(parts)) for low, high in parts]
        )
        for name, parts in RANGES.items()
    }
    line = np.linspace(-5.0, 4.5, 191)
    mean, variance = predicted(method, seed, sizes, np.concatenate([line, *tests.values()]))
    found, begin = {}, len(line)
    for name, x in tests.items():
        here = slice(begin, begin + len(x))
        y = function(x) + SIGMA * rng.standard_normal(len(x))
        found[name] = judged(x, y, mean[here], variance[here])
        begin += len(x)
    drawn = {"x": line, "mean": mean[: len(line)], "variance": variance[: len(line)]}
    return {
        "method": method,
        "seed": seed,
        "ranges": found,
        "line": {name: np.round(values, 6).tolist() for name, values in drawn.items()},
    }


def summarised(rows: list[Record]) -> list[Record]:
    return [
        {
            "method": method,
            "title": title,
            "range": name,
            **{
                key: statistics.fmean(
                    row["ranges"][name][key] for row in rows if row["method"] == method
                )
                for key in rows[0]["ranges"][name]
                if key != "points"
            },
        }
        for method, title in METHODS.items()
        for name in RANGES
    ]


def draw(record: Record) -> Any:
    figure, axes = subplots((7.2, 4.8), 2, 3, sharex=True, sharey=True)
    for place, (method, title) in zip(axes.flat, METHODS.items(), strict=False):
        row = next(row for row in record["rows"] if row["method"] == method)
        x, mean, variance = (np.asarray(row["line"][key]) for key in ("x", "mean", "variance"))
        spread = np.sqrt(variance + record["sigma"] ** 2)
        for times in (1.0, 2.0):
            low, high = mean - times * spread, mean + times * spread
            place.fill_between(x, low, high, color="C0", alpha=0.25, linewidth=0)
        place.plot(x, mean, label="mean, ± 1 and 2 standard deviations")
        place.plot(x, function(x), "--", color="C1", lw=1, label="the function")
        place.set(title=title, ylim=(-5.0, 5.0))
    axes[-1][-1].set_axis_off()
    handles = axes[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    return figure


def show(record: Record) -> str:
    return columns(
        record["summary"],
        ("network", "{title}"),
        ("points", "{range}"),
        ("standard deviation", rounded("standard_deviation")),
        ("in the 95 % interval, %", lambda row: f"{100 * row['coverage_95']:.0f}"),
        ("error (root mean square)", rounded("root_mean_squared_error")),
        ("log density", "{log_density:.2f}"),
    )


def measure(settings: Record, parts: Parts) -> Record:
    rows = parts.by_seed("networks", list(METHODS), settings, measure_one)
    return {"sigma": SIGMA, "summary": summarised(rows), "rows": rows}


FULL = {"points": 60, "hidden": 100, "steps": 6000, "samples": 1000, "test_points": 300}
# After 300 steps the network without dropout depends on the processor's rounding.
QUICK = {"hidden": 50, "steps": 120, "samples": 50, "test_points": 60}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    QUICK,
    place=1,
    seeds=(1, 2, 3),
    draw=draw,
    packages=("torch", "scikit-learn"),
)
EXPERIMENT.run(__name__)
