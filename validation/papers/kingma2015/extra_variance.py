r"""Appendix D: the variance that weight samples add.

One layer, a minibatch of one: the gradient in σ² by weight samples and by local reparameterisation.
The slope of the measured difference of their variances on the second term of Eq. 45, with its
standard error: 1 is agreement.

For one example the gradient of the log-likelihood L in sigma_ij^2 is g_j eps_ij a_i / (2 sigma_ij)
with weight samples (Eq. 43) and g_j zeta_j a_i^2 / (2 sqrt(delta_j)) with local reparameterisation
(Eq. 44), where g_j = dL/db_j. Given b_j, zeta_j is known and eps_ij is normal with variance 1 -
a_i^2 sigma_ij^2/delta_j. So weight samples add

    E[g_j^2] Var[eps_ij | b_j] a_i^2 / (4 sigma_ij^2).

Eq. 45 prints the variance of eps^2 instead of eps. The inputs are the brightest pixels of a few
training images; with one pixel, eps is known given b, and nothing is added.
"""

import math
from typing import Any, NamedTuple

import torch

from logunif_kl.torch import nn
from validation.experiment import Experiment, Parts, Record, subplots
from validation.markdown import number, table, with_error
from validation.output import track
from validation.training.data import CLASSES, Dataset
from validation.training.loop import seeded

LOG_SIGMA2 = -6.0, -2.0


class Layer(NamedTuple):
    """A layer with one example: its inputs a, its label, and moments of its outputs."""

    layer: nn.VariationalLinear
    a: torch.Tensor
    label: int

    @property
    def sigma2(self) -> torch.Tensor:
        return self.layer.get_parameter("log_sigma2").detach().exp()

    @property
    def gamma(self) -> torch.Tensor:
        return torch.nn.functional.linear(self.a, self.layer.weight, self.layer.bias).detach()

    @property
    def delta(self) -> torch.Tensor:
        return torch.nn.functional.linear(self.a.square(), self.sigma2)

    def likelihood(self, b: torch.Tensor) -> torch.Tensor:
        labels = torch.full(b.shape[:-1], self.label)
        return nn.categorical_log_likelihood(b, labels)


def make(dataset: Dataset, image: int, inputs: int, seed: int) -> Layer:
    generator = seeded(seed, 2)
    x = torch.from_numpy(dataset.train.x[image])
    a = x[torch.argsort(x, descending=True, stable=True)[:inputs]].double()
    with torch.random.fork_rng(devices=[]):
        layer = nn.VariationalLinear(inputs, CLASSES, dtype=torch.float64)
    low, high = LOG_SIGMA2
    with torch.no_grad():
        layer.weight.normal_(0.0, 1.0 / math.sqrt(inputs), generator=generator)
        layer.get_parameter("log_sigma2").uniform_(low, high, generator=generator)
        assert layer.bias is not None
        layer.bias.zero_()
    return Layer(layer, a, int(dataset.train.y[image]))


def variances(made: Layer, estimator: str, draws: int, seed: int) -> torch.Tensor:
    """Measure the variance of the gradient in each sigma_ij^2, over draws for one example."""
    made.layer.estimator = estimator
    made.layer.train()
    held = {name: value.detach() for name, value in made.layer.named_parameters()}

    def likelihood(log_sigma2: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        b = torch.func.functional_call(made.layer, {**held, "log_sigma2": log_sigma2}, (x,))
        return made.likelihood(b).sum()

    x = made.a.expand(draws, 1, -1)
    # vmap draws its noise from the global generator, which is restored.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seeded(seed, 3).initial_seed())
        each = torch.func.vmap(
            torch.func.grad(likelihood), in_dims=(None, 0), randomness="different"
        )(held["log_sigma2"], x)
    found: torch.Tensor = (each / held["log_sigma2"].exp()).var(0)
    return found


def second_term(made: Layer, draws: int, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Compute the second term of Eq. 45, with Var[eps | b] and, as printed, with Var[eps^2 | b]."""
    a, sigma2, delta = made.a, made.sigma2, made.delta
    zeta = torch.randn(draws, CLASSES, dtype=torch.float64, generator=generator)
    b = (made.gamma + delta.sqrt() * zeta).requires_grad_()
    (g,) = torch.autograd.grad(made.likelihood(b).sum(), b)
    share = a.square() * sigma2 / delta[:, None]  # the share of delta_j due to w_ij
    variance = 1.0 - share
    factor = a.square() / (4.0 * sigma2)
    # Var[eps^2 | b] = 2 v^2 + 4 m^2 v with mean m = sqrt(share) zeta and variance v.
    g2, g2_zeta2 = g.square().mean(0)[:, None], (g * zeta).square().mean(0)[:, None]
    of_squares = 2.0 * variance.square() * g2 + 4.0 * share * variance * g2_zeta2
    return {"eps": g2 * variance * factor, "eps_squared": of_squares * factor}


def compare(made: Layer, sizes: Record, seed: int, label: str) -> Record:
    """Measure the added variance of one layer, and regress it on each reading's prediction."""
    draws, chunks = sizes["draws_a_chunk"], sizes["chunks"]
    generator = seeded(seed, 4)
    terms = [second_term(made, draws, generator) for _ in range(chunks)]
    predicted = {name: torch.stack([term[name] for term in terms]) for name in terms[0]}
    measured, locals_ = [], []
    for index in track(range(chunks), label, chunks):
        explicit = variances(made, "per_example", draws, 10_000 * seed + 2 * index)
        local = variances(made, "local", draws, 10_000 * seed + 2 * index + 1)
        measured.append(explicit - local)
        locals_.append(local)
    added, local = torch.stack(measured), torch.stack(locals_).mean(0)
    slopes = {name: _slope(added, by) for name, by in predicted.items()}
    return {
        "slope": slopes,
        "explicit_over_local": float(((added.mean(0) + local) / local).mean()),
        "greatest_added": float(added.mean(0).abs().max()),
        "greatest_local": float(local.max()),
        "points": {
            "measured": _some(added.mean(0)),
            **{name: _some(by.mean(0)) for name, by in predicted.items()},
        },
    }


def _slope(added: torch.Tensor, predicted: torch.Tensor) -> dict[str, float] | None:
    """Regress through the origin, with weights for equal relative errors; None if all are zero.

    Both sides are measured in chunks of draws. The slope is the mean over the weights of the ratio
    of the means. Its error is that of added - slope * predicted over the chunks.
    """
    mean = predicted.mean(0)
    if float(mean.max()) < 1e-12:
        return None
    kept = mean > 1e-12 * float(mean.max())
    added, predicted, mean = added[:, kept], predicted[:, kept], mean[kept]
    ratio = added.mean(0) / mean
    away = ((added - ratio * predicted) / mean).mean(1)
    return {"value": float(ratio.mean()), "standard_error": float(away.std() / len(away) ** 0.5)}


def _some(values: torch.Tensor, most: int = 100) -> list[float]:
    flat = values.flatten()
    return [float(f"{v:.6g}") for v in flat[:: max(1, len(flat) // most)].tolist()]


def draw(record: Record) -> Any:
    figure, axes = subplots((6.4, 4.4))
    looks = (("eps", "Var[ε | b]", "o"), ("eps_squared", "Var[ε² | b], as printed", "x"))
    rows = [row for row in record["rows"] if row["slope"]["eps"] is not None]
    for name, label, marker in looks:
        x = [v for row in rows for v in row["points"][name][::4]]
        y = [v for row in rows for v in row["points"]["measured"][::4]]
        axes.loglog(x, y, marker, markersize=3, label=f"second term of Eq. 45 with {label}")
    ends = [min(x), max(x)]
    axes.loglog(ends, ends, "k-", linewidth=0.8)
    axes.set(xlabel="predicted", ylabel="variance that weight samples add, measured")
    axes.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    nothing = "nothing is added"
    rows = [
        (
            str(row["image"]),
            str(row["inputs"]),
            number(row["explicit_over_local"]),
            *(
                with_error(found["value"], found["standard_error"], 4) if found else nothing
                for found in row["slope"].values()
            ),
        )
        for row in record["rows"]
    ]
    head = ["image", "inputs", "weight samples / local", "measured / Var[ε]", "measured / Var[ε²]"]
    return (
        table(head, rows)
        + "\n\nWith Var[ε | b] in the second term of Eq. 45 the slope is 1 within "
        f"{_deviation(record['rows'], 'eps'):.1f} standard errors in the worst of these layers; "
        "with Var[ε² | b], as it is printed, it is off by up to "
        f"{_deviation(record['rows'], 'eps_squared'):.1f} standard errors. "
        "With one input the weight is known given b, and nothing is added."
    )


def _deviation(rows: list[Record], name: str) -> float:
    """Return how many standard errors the slopes are away from 1 at most."""
    found = (row["slope"][name] for row in rows if row["slope"][name] is not None)
    return float(max(abs(slope["value"] - 1.0) / slope["standard_error"] for slope in found))


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    seed, rows = settings["seeds"][0], []
    bright = (dataset.train.x > 0.0).sum(1) >= max(settings["inputs"])
    for image in bright.nonzero()[0][: settings["images"]].tolist():
        for inputs in settings["inputs"]:
            label = f"image {image}, {inputs} inputs"
            found = compare(make(dataset, image, inputs, seed), settings, seed, label)
            rows.append({"image": image, "inputs": inputs, **found})
    nothing = [row["greatest_added"] / row["greatest_local"] for row in rows if row["inputs"] == 1]
    return {
        "greatest_deviation_in_standard_errors": _deviation(rows, "eps"),
        "added_over_local_with_one_input": max(nothing),
        "rows": rows,
    }


FULL = {"inputs": [1, 2, 8, 32, 128], "images": 3, "chunks": 40, "draws_a_chunk": 5000}
QUICK = {"inputs": [1, 4, 16], "images": 1, "chunks": 10, "draws_a_chunk": 2000}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=9, draw=draw)
EXPERIMENT.run(__name__)
