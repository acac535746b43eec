"""The time and the file of sparse networks.

The networks of the table with as many weights as the paper keeps in each layer, at random places,
and one square layer by the share of weights that are kept. All are stored sparse here; `to_sparse`
stores a layer dense that keeps more than a tenth.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from logunif_kl.torch import nn
from validation.experiment import Dataset, Experiment, Parts, Record
from validation.markdown import columns, number
from validation.output import track
from validation.papers.molchanov2017 import models
from validation.papers.molchanov2017.comparison import stored
from validation.papers.molchanov2017.models import TABLE_1


def at_random(model: torch.nn.Module, pruned: list[float], seed: int) -> torch.nn.Module:
    """Set the given percentage of the weights of each layer to 0."""
    generator = torch.Generator().manual_seed(seed)
    layers = [m for m in model.modules() if isinstance(m, (torch.nn.Linear, torch.nn.Conv2d))]
    with torch.no_grad():
        for layer, percent in zip(layers, pruned, strict=True):
            count = round(layer.weight.numel() * percent / 100.0)
            gone = torch.randperm(layer.weight.numel(), generator=generator)[:count]
            layer.weight.view(-1)[gone] = 0.0
    return model.eval()


@torch.no_grad()
def seconds(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least time of each call, over rounds in which the calls take turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for index in range(rounds + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if index:  # the first round makes the matrices
                found[name].append(time.perf_counter() - began)
    return {name: min(times) for name, times in found.items()}


def timed(model: torch.nn.Module, x: torch.Tensor, sizes: Record, **options: Any) -> Any:
    made = {"dense": model}
    made |= {kind: nn.to_sparse(model, backend=kind, **options) for kind in ("torch", "scipy")}
    by_batch = []
    for batch in sizes["batches"]:
        part = x[:batch]
        calls = {name: partial(each, part) for name, each in made.items()}
        by_batch.append({"batch": len(part), "seconds": seconds(calls, sizes["rounds"])})
    return {
        "times": by_batch,
        "bytes": {name: stored(each) for name, each in made.items() if name != "scipy"},
        "largest_difference": float((made["dense"](x) - made["torch"](x)).detach().abs().max()),
    }


def show(record: Record) -> str:
    def microseconds(kind: str) -> Callable[[Record], str]:
        return lambda row: number(1e6 * row["seconds"][kind])

    def faster(row: Record) -> str:
        times = row["seconds"]
        return number(times["dense"] / min(times["torch"], times["scipy"]))

    titled = [(row["network"], row) for row in record["networks"]]
    titled += [(f"one layer, {100 * row['density']:g} % kept", row) for row in record["layers"]]
    return columns(
        ({"title": title, **row, **at} for title, row in titled for at in row["times"]),
        ("network", "{title}"),
        ("batch", "{batch}"),
        ("dense, µs", microseconds("dense")),
        ("sparse (torch), µs", microseconds("torch")),
        ("sparse (SciPy), µs", microseconds("scipy")),
        ("dense / sparse", faster),
        ("file, dense / sparse", lambda r: number(r["bytes"]["dense"] / r["bytes"]["torch"])),
    )


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    seed, *_ = settings["seeds"]
    images = torch.from_numpy(dataset.test.x[: max(settings["batches"])])

    def network(name: str) -> Record:
        row = TABLE_1[name]
        model = at_random(models.plain(name, seed, settings["quick"]), list(row.pruned), seed)
        counts = nn.sparsity(model)
        found = timed(model, images, settings)
        return {"network": row.title, "kept": counts.kept, "weights": counts.weights, **found}

    networks = list(map(network, track(TABLE_1, "timing networks", len(TABLE_1))))
    width = settings["width"]
    x = torch.rand(len(images), width, generator=torch.Generator().manual_seed(seed))

    def layer_of(density: float) -> Record:
        layer = torch.nn.Linear(width, width, device="meta").to_empty(device="cpu")
        with torch.no_grad():
            layer.weight.normal_(generator=torch.Generator().manual_seed(seed))
            layer.bias.zero_()
        model = at_random(torch.nn.Sequential(layer), [100.0 * (1.0 - density)], seed)
        return {"density": density, **timed(model, x, settings, max_density=1.0)}

    return {"networks": networks, "layers": list(map(layer_of, settings["densities"]))}


FULL = {
    "batches": [1, 100, 1000],
    "rounds": 9,
    "width": 1024,
    "densities": [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001],
}
QUICK = {"batches": [1, 20], "rounds": 3, "width": 64, "densities": [0.5, 0.05]}
EXPERIMENT = Experiment(
    __file__, measure, show, FULL, QUICK, place=5, noise=("*.largest_difference",)
)
EXPERIMENT.run(__name__)
