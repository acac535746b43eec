"""Eqs. 3 and 4: the covariances between units.

The recursion treats the outputs of a convolution as independent. With the covariances of the first
layer's outputs, the variance after an average or a second convolution is exact. After a rectifier,
the difference that remains is that of the step.

For the outputs h of a first layer and an input x that is certain, the covariances are J
diag(sigma^2) J', where J is the derivative of h in the weights. A rectifier by the step multiplies
them by constants, and a layer or an average after it maps them by the derivative M of its mean. The
recursion keeps only the diagonal of the covariance, so M times the rest times M' is what its
variance lacks.
"""

from typing import Any

import torch
from torch.func import functional_call, jacrev

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns
from validation.papers.haussmann2018.moments import CASES, network, pixels, sampled, spread

# The networks for which the variance with the covariances is exact, and another.
EXACT = ("conv_average", "two_conv", "two_conv_one_sign")
NETWORKS = (*EXACT, "two_conv_rectified")

Tensor = torch.Tensor


def variance(model: Any, x: Tensor) -> Tensor:
    """Return the recursion's variance of the outputs plus that of the first layer's covariances.

    The model rearranges the input, and has a variational layer, and at most one after it.
    """
    image, first, rest = model[0](x), model[1], model[2:]
    weight = first.weight.detach()

    def hidden(weight: Tensor) -> Any:
        return functional_call(first, {"weight": weight}, (image,))

    def output(hidden: Tensor) -> Any:
        return rest(hidden).flatten()

    h = hidden(weight)
    derivative = jacrev(hidden)(weight).reshape(h.numel(), weight.numel())
    covariance = (derivative * first.log_sigma2.exp().flatten()) @ derivative.T
    # The derivative of a rectifier at the mean is the step.
    onward = jacrev(output)(h).flatten(1)
    missing = onward @ (covariance - covariance.diag().diag()) @ onward.T
    found: Tensor = nn.moments(model, x).variance + missing.diag().view_as(rest(h))
    return found


def one(name: str, seed: int, sizes: Record, x: Tensor) -> Record:
    model = network(CASES[name], seed, x.shape[1])
    with torch.no_grad():
        without, with_them = nn.moments(model, x).variance[0], variance(model, x)[0]
    noisy = without > 0.0
    *_, truth, error = (values[noisy] for values in sampled(model, x, sizes["samples"]))
    off = (with_them[noisy].double() - truth).abs() / error
    return {
        "case": name,
        "title": CASES[name].title,
        "seed": seed,
        "exact": name in EXACT,
        "outputs": len(truth),
        "without": spread(without[noisy].double() / truth),
        "with": spread(with_them[noisy].double() / truth),
        "off_in_errors": float(off.max()),
    }


def show(record: Record) -> str:
    def ratios(name: str) -> str:
        return f"{{{name}[median]:.3f}} ({{{name}[least]:.3f}} to {{{name}[greatest]:.3f}})"

    shown = columns(
        record["rows"],
        ("network", "{title}"),
        ("seed", "{seed}"),
        ("recursion / sampled", ratios("without")),
        ("with covariances / sampled", ratios("with")),
        ("in standard errors", "{off_in_errors:.1f}"),
    )
    return (
        f"{shown}\n\nThe ratio of the variances: the median over the outputs, the least and the "
        f"greatest; {record['settings']['samples']:,} samples of all weights."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    return {"rows": parts.by_seed("samples", NETWORKS, settings, one, pixels(dataset))}


FULL = {"samples": 100_000}
QUICK = {"samples": 20_000}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=3, seeds=(1, 2, 3))
EXPERIMENT.run(__name__)
