r"""Table 1: dense networks with other priors on MNIST.

784-400-400-10 with rectifiers, after Blundell et al. (2015), by Adam for 10 epochs. The weight of
the divergence rises over the first 3; the rate falls linearly from 10⁻³ to 0. The mixture is ½ N(0,
1) + ½ N(0, e⁻¹²), its divergence estimated by one sample for each weight. Student's t has 0.01
degrees of freedom and the scale 0.01. The parameters of the priors were not tuned. Our text of the
paper has lost the numbers of Table 1.

Can training find the improper posterior? Cut the log-uniform prior off to a < abs(w) < b, with L =
log(b/a). Then -KL of a Gaussian without its mass beyond is the improper one, with -KL = 0 as alpha
goes to infinity, plus log(4 pi e)/2 + gamma/2 - log(2 L). A posterior that is the prior cut off
again, to a < abs(w) < e, has -KL = log(log(e/a)/L) for each weight, which goes to 0 as L grows.
With inputs from 0 to 1, no bias and widths n_i, all outputs of its networks are below e^3 times the
product of the widths, so that they ignore the data if e is small.
"""

import math
import statistics
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import optimize

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, measured, number
from validation.papers.haussmann2018 import learning_curves, networks
from validation.papers.haussmann2018.networks import Annealed, Method
from validation.summary import averaged, grouped, interval, named
from validation.training.data import CLASSES
from validation.training.loop import Settings, evaluate, flushed, seeded
from validation.verdict import BY_THE_RULE, agreement

EULER = float(np.euler_gamma)
THRESHOLD = 3.0  # on log alpha
NEAR, FAR = 1e-3, 10.0  # e and b of this module's text
RANGES = {"float32": (128 + 126) * math.log(2.0), "float64": (1024 + 1022) * math.log(2.0)}


def mixture(generator: torch.Generator) -> Any:
    """Make a prior of Blundell et al. (2015): one of the values that they tried for each part."""
    return nn.ScaleMixturePrior(0.5, 1.0, math.exp(-6.0), samples=1, generator=generator)


class Prior(NamedTuple):
    title: str
    make: Callable[[torch.Generator], Any] = lambda _: "exact"
    vbp: bool = False


PRIORS = {
    "normal": Prior("N(0, 1), sampled", lambda _: nn.NormalPrior(1.0)),
    "normal_vbp": Prior("N(0, 1), VBP", lambda _: nn.NormalPrior(1.0), vbp=True),
    "mixture": Prior("scale mixture, sampled", mixture),
    "log_uniform": Prior("log-uniform, sampled"),
    "log_uniform_vbp": Prior("log-uniform, VBP", vbp=True),
    "student": Prior("Student's t, sampled", lambda _: nn.StudentTPrior(df=0.01, scale=0.01)),
}


def widths(pixels: int, units: int) -> list[int]:
    return [pixels, units, units, CLASSES]


def network(sizes: list[int], seed: int, noise: torch.Generator, penalty: Any) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[torch.nn.Module] = []
        for fan_in, fan_out in pairwise(sizes):
            layers.append(nn.VariationalLinear(fan_in, fan_out, penalty=penalty, generator=noise))
            layers.append(torch.nn.ReLU())
    return torch.nn.Sequential(*layers[:-1])


def run_of(
    name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts, samples: int = 1
) -> Annealed:
    """Begin or resume the training of a network."""
    prior, noise = PRIORS[name], seeded(seed, 1)
    # The prior's own samples leave the noise of the layers, and so their order, unchanged.
    penalty = prior.make(seeded(seed, 2))
    return Annealed(
        Method(prior.title, "tilted" if prior.vbp else None, warm_up=sizes["warm_up"]),
        sizes["epochs"],
        network(widths(dataset.pixels, sizes["units"]), seed, noise, penalty),
        noise,
        dataset.train,
        Settings(sizes["batch_size"], seed, sizes["learning_rate"], None, sizes["kl_weight"]),
        about={"prior": name, "samples": samples},
        file=parts.file(f"{name}-{samples}-seed{seed}.pt"),
    )


@flushed()
def train(name: str, seed: int, sizes: Record, dataset: Dataset, parts: Parts) -> Record:
    run = run_of(name, seed, sizes, dataset, parts)
    run.finish(sizes["epochs"])
    return {"prior": name, "seed": seed, **tested(run, sizes, dataset)}


@torch.no_grad()
def tested(run: Annealed, sizes: Record, dataset: Dataset) -> Record:
    """Test a network with the means of its weights, with samples, and pruned."""
    model, test, last = run.model, dataset.test, run.history[-1]
    found = evaluate(model, test)
    averaged = nn.predict(model, torch.from_numpy(test.x), sizes["samples"], generator=run.noise)
    y = torch.from_numpy(test.y)
    of_label = averaged.mean.gather(1, y[:, None]).double()
    return {
        "test_error": found["error_percent"],
        "test_log_likelihood": found["log_likelihood"],
        "averaged_error": 100.0 * float((averaged.mean.argmax(1) != y).double().mean()),
        "averaged_log_likelihood": float(of_label.log().mean()),
        "pruned": networks.pruned(model, THRESHOLD, test),
        "log_likelihood": last["log_likelihood"],
        "neg_kl": last["neg_kl"],
        "weights": networks.log_alphas(model).numel(),
        "seconds": run.seconds,
    }


def summarised(rows: list[Record]) -> Iterator[Record]:
    kept = ("test_error", "test_log_likelihood", "averaged_error", "averaged_log_likelihood")
    for prior, several in grouped(rows, "prior").items():
        yield {
            "prior": prior,
            "title": PRIORS[prior].title,
            **averaged(several, *kept),
            **named("pruned_percent", [row["pruned"]["pruned_percent"] for row in several]),
            **named("pruned_error", [row["pruned"]["error_percent"] for row in several]),
            "seconds": sum(row["seconds"] for row in several),
        }


# What the paper says of Table 1 (section 4), and what it says of all data sets in Table 2, here of
# dense networks: a quantity that is below 0 if the statement holds, from errors of these priors.
OF_TABLE_1: tuple[tuple[str, tuple[str, ...], Callable[..., float]], ...] = (
    (
        "VBP with a normal prior performs better than BBB with a normal prior",
        ("normal_vbp", "normal"),
        lambda vbp, sampled: vbp - sampled,
    ),
    (
        "it comes close to BBB with the mixture prior: closer than to BBB with a normal prior",
        ("normal_vbp", "normal", "mixture"),
        lambda vbp, sampled, mixture: abs(vbp - mixture) - abs(vbp - sampled),
    ),
)
OF_TABLE_2: tuple[tuple[str, tuple[str, ...], Callable[..., float]], ...] = (
    (
        "with the log-uniform prior, VBP has a lower error than sampled training (Table 2, of "
        "convolutional networks)",
        ("log_uniform_vbp", "log_uniform"),
        lambda vbp, sampled: vbp - sampled,
    ),
)


def statements(rows: list[Record], said: Any = (*OF_TABLE_1, *OF_TABLE_2)) -> Iterator[Record]:
    """Measure the paper's statements about test errors."""
    of = {(row["prior"], row["seed"]): row["test_error"] for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    for statement, names, below in said:
        if all((name, seed) in of for name in names for seed in seeds):
            errors = [[of[name, seed] for name in names] for seed in seeds]
            between = interval([below(*each) for each in errors])
            agrees = agreement([between])
            yield {"statement": statement, "ours": errors, "interval": between, "agrees": agrees}


def per_weight(log_range: float) -> float:
    """Return -KL of a Gaussian of infinite alpha, from the prior between cut-offs."""
    return 0.5 * (math.log(4.0 * math.pi * math.e) + EULER) - math.log(2.0 * log_range)


def ignoring(rows: list[Record], examples: int, sizes: list[int]) -> Record | None:
    """Compare the bound of the networks with that of a posterior that ignores the data."""
    ours = [row for row in rows if row["prior"] == "log_uniform"]
    if not ours:
        return None
    trained = {
        name: statistics.fmean(row[name] for row in ours) for name in ("log_likelihood", "neg_kl")
    }
    weights: int = ours[0]["weights"]
    largest = NEAR ** (len(sizes) - 1) * math.prod(sizes[:-1])
    ignorant = -examples * (math.log(CLASSES) + 2.0 * largest)
    away = math.log(FAR / NEAR)

    def difference(log_range: float) -> float:
        """Return the bound of the networks less that of the posterior near 0."""
        gained = sum(trained.values()) - ignorant
        return gained + weights * (per_weight(log_range) - math.log1p(-away / log_range))

    equality = float(optimize.brentq(difference, away * (1.0 + 1e-9), 1e6))
    return {
        "weights": weights,
        **trained,
        "ignorant_log_likelihood": ignorant,
        "cut_off_of_equality": FAR * math.exp(-equality),
        "difference": {name: difference(log_range) for name, log_range in RANGES.items()},
    }


def of_all(record: Record) -> str:
    """Write the table of the networks, and the paper's statements about them."""
    averaged = f"{record['settings']['samples']} samples"
    shown = columns(
        record["summary"],
        ("prior", "{title}"),
        ("test error in %", measured("test_error")),
        (f"error, {averaged}", measured("averaged_error")),
        ("log-likelihood of a test image", measured("test_log_likelihood", 3)),
        (f"log-likelihood, {averaged}", measured("averaged_log_likelihood", 3)),
        ("% with log α > 3", measured("pruned_percent", 1)),
        ("error without them", measured("pruned_error")),
    )
    return (
        f"{shown}\n\nWhat the paper says. {BY_THE_RULE} The prior and the baseline are not the "
        f"paper's.\n\n{learning_curves.said(list(statements(record['rows'])))}"
    )


def show(record: Record) -> str:
    return of_all(record) + _ignoring(record["ignoring"])


def _ignoring(found: Record | None) -> str:
    if found is None:
        return ""
    nats = {name: -value for name, value in found["difference"].items()}
    return (
        "\n\nDoes training find the improper posterior? Cut the prior off to a < |w| < 10. Each of "
        f"the {found['weights']:,} Gaussians, without its mass outside, then loses "
        "log(2 log(10/a)) nats more than from the prior 1/|w|, whatever its mean and variance. So "
        "training does not depend on a. A posterior that is the prior cut off again, to |w| < "
        "0.001, loses less and less as a falls, and its networks ignore the data. The bound of the "
        "trained networks is the higher one only for a above "
        f"{number(found['cut_off_of_equality'], 2)}. Where 10/a is the range of float32, "
        f"2^254, it is lower by {number(nats['float32'], 3)} nats, and where it is that of "
        f"float64, 2^2046, by {number(nats['float64'], 3)}. "
        "A posterior exists for each a > 0, and as a falls it tends to the one that ignores the "
        "data (Hron et al., Proposition 1). Training does not find it, because it is not a "
        "Gaussian."
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    rows = parts.by_seed("networks", settings["priors"], settings, train, dataset, parts)
    return {
        "summary": list(summarised(rows)),
        "ignoring": ignoring(rows, len(dataset.train.y), widths(dataset.pixels, settings["units"])),
        "rows": rows,
    }


FULL = {**networks.FULL, "priors": list(PRIORS), "units": 400, "warm_up": 3, "samples": 20}
QUICK = {**networks.QUICK, "units": 20, "samples": 5}
EXPERIMENT = Experiment(__file__, measure, show, FULL, QUICK, place=5, seeds=(1, 2, 3), parted=True)
EXPERIMENT.run(__name__)
