"""Section 2.3: the recursion's mean and variance.

Small networks as torch initialises them, on one test image, against samples of all weights. Where
the recursion's assumptions hold, no output's moments differ from the samples' by 5 standard errors.
In the other networks the difference is the recursion's own.

Each example of a minibatch of equal images has its own sample of the weights, so that an output
comes from its joint distribution.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from scipy import stats

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record, subplots
from validation.markdown import columns, rounded
from validation.training.loop import seeded

SIGMAS = 5.0  # standard errors of the samples that count as agreement
FAR = 12.0  # standard deviations between compared means: more than any sample reaches
RATIOS = [-3.0, -2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0]

Tensor = torch.Tensor
IDENTITY, RELU = torch.nn.Identity, torch.nn.ReLU


class Case(NamedTuple):
    """A network, made for an input length, and whether the recursion is exact for it."""

    title: str
    make: Callable[[int, Any], torch.nn.Module]
    exact: bool
    log_sigma2: float = -4.0


class Shifted(torch.nn.Module):
    """Add constants to eight units, so that their order is certain."""

    def forward(self, x: Any) -> Any:
        return x + FAR * (1.0 - 2.0 * (torch.arange(8) % 2))


def _mlp(layers: int, between: Callable[[], torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    def make(inputs: int, made: Any) -> torch.nn.Module:
        found: list[torch.nn.Module] = [nn.VariationalLinear(inputs, 8, **made)]
        for index in range(1, layers):
            outputs = 3 if index == layers - 1 else 8
            found += [between(), nn.VariationalLinear(8, outputs, **made)]
        return torch.nn.Sequential(*found)

    return make


def _pooled(before: Callable[[], torch.nn.Module], pool: Callable[[], torch.nn.Module]) -> Any:
    def make(inputs: int, made: Any) -> torch.nn.Module:
        return torch.nn.Sequential(
            nn.VariationalLinear(inputs, 8, **made),
            before(),
            torch.nn.Unflatten(-1, (1, 8)),
            pool(),
            torch.nn.Flatten(-2),
            nn.VariationalLinear(4, 3, **made),
        )

    return make


def _on_image(layers: Callable[[Any], list[torch.nn.Module]]) -> Callable[..., torch.nn.Module]:
    """Let a network's layers take square images, and flatten their outputs."""

    def make(inputs: int, made: Any) -> torch.nn.Module:
        side = math.isqrt(inputs)
        image = torch.nn.Unflatten(-1, (1, side, side))
        return torch.nn.Sequential(image, *layers(made), torch.nn.Flatten(-3))

    return make


def _conv(made: Any, fan_in: int = 1, fan_out: int = 3, stride: int = 2) -> torch.nn.Module:
    return nn.VariationalConv2d(fan_in, fan_out, 3, stride=stride, padding=1, **made)


def _two_convs(made: Any, between: Any = IDENTITY, one_sign: bool = False) -> list[torch.nn.Module]:
    layers: list[Any] = [_conv(made), _conv(made, 3, 2)]
    for layer in layers if one_sign else ():
        layer.weight.data.abs_()  # so that the neglected covariances have the same sign
    return [layers[0], between(), layers[1]]


AVERAGE, MAXIMUM = partial(torch.nn.AvgPool1d, 2), partial(torch.nn.MaxPool1d, 2)
RECTIFIED, SHARED = "linear, ReLU, linear; log σ² =", "places share weights"
CASES = {
    "linear": Case("linear", _mlp(1, IDENTITY), True),
    "conv": Case("convolution of stride 2", _on_image(lambda made: [_conv(made)]), True),
    "two_linear": Case("linear, linear", _mlp(2, IDENTITY), True),
    "far_rectifier": Case(
        "linear, ReLU far from 0, linear",
        _mlp(2, lambda: torch.nn.Sequential(Shifted(), RELU())),
        True,
    ),
    "average": Case("linear, average pooling, linear", _pooled(IDENTITY, AVERAGE), True),
    "far_maximum": Case(
        "linear, maximum of units far apart, linear", _pooled(Shifted, MAXIMUM), True
    ),
    "rectifier_small": Case(f"{RECTIFIED} −8", _mlp(2, RELU), False, -8.0),
    "rectifier": Case(f"{RECTIFIED} −4", _mlp(2, RELU), False),
    "rectifier_large": Case(f"{RECTIFIED} −1", _mlp(2, RELU), False, -1.0),
    "three_linear": Case(
        "three linear, whose inputs are dependent", _mlp(3, IDENTITY), False, -2.0
    ),
    "four_rectified": Case("four linear, with ReLU between", _mlp(4, RELU), False),
    "maximum": Case("linear, maximum of near units, linear", _pooled(IDENTITY, MAXIMUM), False),
    "conv_average": Case(
        f"convolution, average pooling: {SHARED}",
        _on_image(lambda made: [_conv(made, stride=1), torch.nn.AvgPool2d(2)]),
        False,
    ),
    "two_conv": Case(f"convolution, convolution: {SHARED}", _on_image(_two_convs), False),
    "two_conv_one_sign": Case(
        "the same, all weights positive", _on_image(partial(_two_convs, one_sign=True)), False
    ),
    "two_conv_rectified": Case(
        "convolution, ReLU, convolution", _on_image(partial(_two_convs, between=RELU)), False
    ),
}


def pixels(dataset: Dataset) -> Tensor:
    """Return the first test image, reduced to at most 7 by 7 pixels."""
    side = math.isqrt(dataset.pixels)
    image = torch.from_numpy(dataset.test.x[:1]).view(1, 1, side, side)
    by = max(1, side // 7)
    return torch.nn.functional.avg_pool2d(image, by).flatten(1)


def sampled(model: torch.nn.Module, x: Tensor, samples: int) -> tuple[Tensor, ...]:
    """Return means and variances of the outputs over samples, with standard errors."""
    chunk = 20_000
    outputs = []
    with torch.no_grad(), nn.sampling(model):
        for begin in range(0, samples, chunk):
            outputs.append(model(x.expand(min(chunk, samples - begin), -1)).double())
    each = torch.cat(outputs)
    mean = each.mean(0)
    squares = (each - mean).square()
    variance = squares.mean(0)
    root = samples**0.5
    return mean, variance.sqrt() / root, variance, squares.std(0) / root


def network(case: Case, seed: int, inputs: int) -> Any:
    noise = seeded(seed, 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = {"estimator": "per_example", "generator": noise}
        made["posterior"] = nn.Additive(initial=case.log_sigma2)
        return case.make(inputs, made).eval()


def spread(ratios: Tensor) -> Record:
    return {
        "least": float(ratios.min()),
        "median": float(ratios.median()),
        "greatest": float(ratios.max()),
    }


def one(name: str, seed: int, sizes: Record, x: Tensor) -> Record:
    case = CASES[name]
    model = network(case, seed, x.shape[1])
    with torch.no_grad():
        found = nn.moments(model, x)
    means, variances = found.mean[0].double(), found.variance[0].double()
    # Where a convolution sees only zeros, its output is the bias and certain.
    noisy = variances > 0.0
    mean, mean_error, variance, variance_error = (
        values[noisy] for values in sampled(model, x, sizes["samples"])
    )
    means, variances = means[noisy], variances[noisy]
    bias = (means - mean) / variance.sqrt()
    return {
        "case": name,
        "title": case.title,
        "seed": seed,
        "log_sigma2": case.log_sigma2,
        "samples": sizes["samples"],
        "exact": case.exact,
        "outputs": len(mean),
        "mean_off_in_deviations": {"least": float(bias.min()), "greatest": float(bias.max())},
        "variance_ratio": spread(variances / variance),
        "ratio_standard_error": float((variance_error / variance).max()),
        "mean_off_in_errors": float(((means - mean).abs() / mean_error).max()),
        "variance_off_in_errors": float(((variances - variance).abs() / variance_error).max()),
    }


def rectifier() -> Iterator[dict[str, float]]:
    """Compare the step with the exact moments of max(h, 0), h ~ N(r, 1)."""
    for r in RATIOS:
        above, density = float(stats.norm.cdf(r)), float(stats.norm.pdf(r))
        mean = r * above + density
        variance = (r * r + 1.0) * above + r * density - mean * mean
        ours = nn.moments(torch.nn.ReLU(), torch.tensor([r]).double(), torch.ones(1).double())
        yield {
            "ratio": r,
            "mean": ours.mean.item(),
            "exact_mean": mean,
            "variance": ours.variance.item(),
            "exact_variance": variance,
        }


def draw(record: Record) -> Any:
    rows = record["rectifier"]
    figure, both = subplots((7.2, 3.2), 1, 2)
    for axes, what in zip(both, ("mean", "variance"), strict=True):
        at = [row["ratio"] for row in rows]
        axes.plot(at, [row[f"exact_{what}"] for row in rows], "-o", label="of max(h, 0)")
        if what == "mean":
            axes.plot(at, [row[what] for row in rows], "--s", label="by the step")
        else:
            axes.step(at, [row[what] for row in rows], "--s", where="pre", label="by the step")
        axes.set(xlabel="E[h] in standard deviations of h", ylabel=what)
        axes.legend(fontsize="small")
    return figure


def show(record: Record) -> str:
    networks = columns(
        record["rows"],
        ("network", "{title}"),
        ("assumptions", lambda row: "exact" if row["exact"] else "not exact"),
        (
            "mean − sampled, in deviations",
            "{mean_off_in_deviations[least]:+.3f} to {mean_off_in_deviations[greatest]:+.3f}",
        ),
        ("in standard errors", "{mean_off_in_errors:.1f}"),
        ("variance / sampled", "{variance_ratio[least]:.3f} to {variance_ratio[greatest]:.3f}"),
        ("in standard errors", "{variance_off_in_errors:.1f}"),
    )
    alone = columns(
        record["rectifier"],
        ("E[h]/deviation of h", "{ratio:g}"),
        ("mean", rounded("mean")),
        ("of max(h, 0)", rounded("exact_mean")),
        ("variance", rounded("variance")),
        ("of max(h, 0)", rounded("exact_variance")),
    )
    return (
        f"{networks}\n\n{record['settings']['samples']:,} samples of all weights; the least and "
        "the greatest over the outputs. The rectifier alone, for h of variance 1:\n\n" + alone
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    x = pixels(dataset)
    rows = parts.by_seed("samples", list(CASES), settings, one, x)
    holding = [row for row in rows if row["exact"]]
    keys = ("mean_off_in_errors", "variance_off_in_errors")
    return {
        "inputs": x.shape[1],
        "agrees_where_exact": all(row[key] < SIGMAS for row in holding for key in keys),
        "rows": rows,
        "rectifier": list(rectifier()),
    }


FULL = {"samples": 1_000_000}
QUICK = {"samples": 20_000}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=1, draw=draw)
EXPERIMENT.run(__name__)
