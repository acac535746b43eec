"""``logunif-kl bench --layers``: a training step of whole layers, with its KL, against others'.

A multilayer perceptron is timed at two sizes of the minibatch, and a convolution as it stands
inside a network. A fourth part times the KL alone, of as many weights as a ResNet-50 has. Every
round takes one step of every way, so that the drift of the machine cancels.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any

import torch

from .._output import new_table, track
from ..provenance import provenance
from ..timing import Spread
from . import _layers_made as made
from . import _layers_steps as steps
from ._layers_steps import COMPILED, Plan
from ._torch import PACKAGES, _cpu_peak_bytes, _cuda_peak_bytes

# What is asked for of whole steps: at the large minibatch, and of the KL at the small one.
_TWICE, _TENTH, _NOTHING = ("<= 2.6", "<= 2.2"), ("<= 1.1", ""), ("", "")
_OWN = (made.TORCH, made.OURS, made.OURS_ALONE, made.OURS_PER_BATCH)


def document(plan: Plan, command: str) -> dict[str, Any]:
    """Time every network, and return what was measured with the machine and versions."""
    kinds, skipped = made.made()
    small, large = min(plan.batches), max(plan.batches)
    widths = "-".join(map(str, plan.widths))
    channels, side, batch = plan.images
    networks = [
        _network(plan, f"{widths}, minibatch {size}", kinds, partial(steps.perceptron, plan, size))
        for size in plan.batches
    ]
    for size, found in zip(plan.batches, networks, strict=True):
        twice = _TWICE if size == large else _NOTHING
        found["ratios"] = _ratios(found, twice, _TENTH if size == small else _NOTHING)
    title = f"convolution {channels} to {channels}, 3x3 on {side}x{side}, minibatch {batch}"
    networks.append(_network(plan, title, kinds, partial(steps.convolution, plan)))
    networks[-1]["ratios"] = _ratios(networks[-1], _NOTHING, _NOTHING)
    networks.append(_kl_alone(plan, kinds))
    for network in networks:
        del network["samples"]
    cuda = plan.device == "cuda"
    return {
        **provenance(command, *PACKAGES, *made.PEERS, of="bench_layers"),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "threads": torch.get_num_threads(),
        "rounds": plan.rounds,
        "seed": plan.seed,
        "dtype": "float32",
        "optimizer": "Adam",
        "skipped": skipped,
        "networks": networks,
    }


def _network(plan: Plan, title: str, kinds: list[made.Made], network: Any) -> dict[str, Any]:
    ways, failed = steps.ways(plan, kinds, network)
    samples = _samples(plan, title, {name: way.step for name, way in ways.items()})
    peak = _cuda_peak_bytes if plan.device == "cuda" else _cpu_peak_bytes
    noise = {kind.name: kind.noise for kind in kinds}
    rows = _rows(samples)
    for row, way in zip(rows, ways.values(), strict=True):
        row["noise"] = noise[row["name"].removesuffix(COMPILED)]
        row["peak_megabytes"] = peak(way.gradients) / 1e6
    return {"network": title, "failed": failed, "ways": rows, "samples": samples}


def _kl_alone(plan: Plan, kinds: list[made.Made]) -> dict[str, Any]:
    weights = sum(map(math.prod, plan.shapes))
    title = f"the KL alone, {weights:,} weights in {len(plan.shapes)} tensors"
    jobs = steps.kl_alone(plan, kinds)
    for job in jobs.values():
        job()
    samples = _samples(plan, title, jobs)
    ratios = [_ratio(samples, n, steps.OF_MODEL, ">= 1", "") for n in jobs if n != steps.OF_MODEL]
    return {
        "network": title,
        "failed": {},
        "ways": _rows(samples),
        "ratios": ratios,
        "samples": samples,
    }


def _samples(plan: Plan, title: str, jobs: steps.Steps) -> list[Any]:
    return list(track(steps.rounds(jobs, plan.rounds), title, plan.rounds))


def _rows(samples: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "milliseconds": {
                part: dataclasses.asdict(Spread.of([s[name][part] for s in samples]).scaled(1e3))
                for part in parts
            },
        }
        for name, parts in samples[0].items()
    ]


def _ratios(
    found: dict[str, Any], twice: tuple[str, str], tenth: tuple[str, str]
) -> list[dict[str, Any]]:
    """Compare whole steps: ours with torch's and with itself, and others' with ours."""
    asked: list[tuple[str, str, str, str]] = []
    names = {row["name"]: row["noise"] for row in found["ways"]}
    for suffix in ("", COMPILED):
        ours = made.OURS + suffix
        asked.append((ours, made.TORCH + suffix, *twice))
        asked.append((ours, made.OURS_ALONE + suffix, *tenth))
        for name, noise in names.items():
            if name.removesuffix(COMPILED) in _OWN or name.endswith(COMPILED) != bool(suffix):
                continue
            if noise == made.ONE_SAMPLE:
                asked.append((name, made.OURS_PER_BATCH + suffix, ">= 1", ""))
            asked.append((name, ours, ">= 1", ""))
    return [
        _ratio(found["samples"], *each) for each in asked if each[0] in names and each[1] in names
    ]


def _ratio(samples: list[Any], over: str, under: str, must: str, aim: str) -> dict[str, Any]:
    spread = Spread.of([each[over]["step"] / each[under]["step"] for each in samples])
    return {"what": f"{over} / {under}", **dataclasses.asdict(spread), "must": must, "aim": aim}


def tables(found: dict[str, Any]) -> list[Any]:
    """Make, for each network, a table of the times and memory, and one of the ratios."""
    made_of = f"float32, {found['device']}, threads: {found['threads']}"
    shown = []
    for network in found["networks"]:
        parts = list(network["ways"][0]["milliseconds"])
        noisy = "noise" in network["ways"][0]
        columns = [("way", False), *([("noise", False)] if noisy else [])]
        columns += [(f"{part}, ms", True) for part in parts]
        columns += [("peak, MB", True)] if noisy else []
        times = new_table(f"{network['network']}: {made_of}", columns)
        for row in network["ways"]:
            cells = [row["name"], *([row["noise"]] if noisy else [])]
            cells += [f"{row['milliseconds'][part]['median']:.1f}" for part in parts]
            cells += [f"{row['peak_megabytes']:.0f}"] if noisy else []
            times.add_row(*cells)
        ratios = new_table(
            f"Ratios of whole steps within a round: {network['network']}",
            [
                ("ratio", False),
                ("median", True),
                ("quartiles", True),
                ("must", True),
                ("aim", True),
            ],
        )
        for row in network["ratios"]:
            quartiles = f"{row['lower_quartile']:.2f} to {row['upper_quartile']:.2f}"
            ratios.add_row(row["what"], f"{row['median']:.2f}", quartiles, row["must"], row["aim"])
        shown += [times, ratios]
    return shown


def notes(found: dict[str, Any]) -> list[str]:
    """Say which packages were skipped, and which of their networks did not run."""
    said = [f"{name} is skipped: {why}" for name, why in found["skipped"].items()]
    for network in found["networks"]:
        said += [
            f"{name} did not run ({network['network']}): {why}"
            for name, why in network["failed"].items()
        ]
    if found["skipped"]:
        said.append('the packages to compare with: pip install "logunif_kl[peers]"')
    return said
