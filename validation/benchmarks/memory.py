"""The memory that a layer keeps for the backward pass, in PyTorch, compared with other packages.

A number counts the bytes of the tensors that autograd saves, each storage once, without parameters.
Its unit is the output of the deterministic layer, which itself keeps its input.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from logunif_kl.cli.bench import _torch
from logunif_kl.torch import nn
from validation.benchmarks import peers
from validation.output import Record

Call = Callable[[], Any]


def kept(call: Call, parameters: Any) -> int:
    """Count the bytes that a call keeps for the backward pass, without parameters."""
    found = {}

    def pack(x: Any) -> Any:
        storage = x.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        output = call()
    del output
    own = {x.untyped_storage().data_ptr() for x in parameters}
    return sum(size for place, size in found.items() if place not in own)


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    torch.manual_seed(options.seed)
    kinds, skipped = peers.made()
    kinds = [kind for kind in kinds if kind.name != peers.OURS_ALONE]
    linear = torch.randn(4096, 512, requires_grad=True)
    images = torch.randn(32, 32, 32, 32, requires_grad=True)
    tokens = torch.randn(8, 128, 256, requires_grad=True)
    encoder = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    relative = nn.VariationalLinear(512, 512, posterior=nn.Multiplicative())
    layers: dict[str, tuple[Any, dict[str, Any]]] = {
        "Linear(512, 512), 4,096 rows": (
            linear,
            {kind.name: kind.linear(512, 512) for kind in kinds}
            | {"ours, multiplicative": relative, "usual snippet": _Snippet(512, 512)},
        ),
        "Conv2d(32, 64, 3), 32 images of 32 x 32": (
            images,
            {kind.name: kind.conv(32, 64, (3, 3), padding=1) for kind in kinds},
        ),
        "TransformerEncoderLayer(256, 4, 1024), 8 x 128 tokens": (
            tokens,
            {peers.TORCH: encoder, peers.OURS: nn.to_variational(encoder)},
        ),
    }
    rows = [
        _row(title, *given, autocast)
        for autocast in (False, True)
        for title, given in layers.items()
    ]
    found = {"threads": torch.get_num_threads(), "seed": options.seed, "skipped": skipped}
    found["rows"] = rows
    return [*_torch.PACKAGES, *peers.PEERS], found


def _row(title: str, x: Any, modules: dict[str, Any], autocast: bool) -> Record:
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        unit = modules[peers.TORCH](x).nbytes
        found = {}
        for name, module in modules.items():
            found[name] = kept(partial(module, x), module.parameters())
    type_ = "bfloat16, by autocast" if autocast else "float32"
    return {"layer": title, "type": type_, "output_bytes": unit, "kept_bytes": found}


notes = peers.notes


class _Snippet(torch.nn.Linear):
    """Local reparameterisation as it is usually written."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.log_sigma2 = torch.nn.Parameter(torch.full_like(self.weight, -10.0))

    def forward(self, input: Any) -> Any:
        mean = super().forward(input)
        variance = torch.nn.functional.linear(input**2, self.log_sigma2.exp())
        return mean + torch.randn_like(mean) * torch.sqrt(variance + 1e-8)
