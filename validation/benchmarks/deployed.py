"""The size and the latency of networks that were trained, pruned and deployed, in PyTorch and ONNX.

Four networks learn scikit-learn's digits by sparse variational dropout. Each is deployed in full
size, compact and with sparse matrices; by ONNX Runtime, also with weights of 8 bits; and by
OpenVINO, which is not in validation/frameworks.txt: install it first.
"""

# mypy: allow-untyped-calls

import argparse
import io
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from logunif_kl.cli import timing
from logunif_kl.cli.bench import _torch
from logunif_kl.torch import nn
from validation.output import Record

BATCHES = (1, 64)
FORMS = ("dense", "compact", "compact, multiples of 4")
ENGINES = ("PyTorch", "ONNX Runtime", "ONNX Runtime, int8", "OpenVINO")
THRESHOLD = 3.0


class Residual(torch.nn.Module):
    """Convolutions with batch normalisation, one of them in a residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.Conv2d(32, 32, 3, padding=1)
        self.c, self.last = torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.Linear(64, 10)
        self.norms = torch.nn.ModuleList(map(torch.nn.BatchNorm2d, (32, 32, 64)))

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norms[0](self.a(x.unflatten(1, (1, 8, 8)))))
        x = x + F.relu(self.norms[1](self.b(x)))
        x = F.max_pool2d(F.relu(self.norms[2](self.c(x))), 2)
        return self.last(x.mean((2, 3)))


class Rows(torch.nn.Module):
    """An LSTM over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 128, batch_first=True)
        self.last = torch.nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        return self.last(self.lstm(x.unflatten(1, (8, 8)))[0][:, -1])


class Attention(torch.nn.Module):
    """A transformer over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 64), torch.nn.Linear(64, 10)
        self.register_buffer("place", 0.1 * torch.randn(8, 64))
        layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, dropout=0.0)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any) -> Any:
        return self.last(self.encoder(self.first(x.unflatten(1, (8, 8))) + self.place).mean(1))


def lenet() -> torch.nn.Module:
    pairs = ((64, 300), (300, 100), (100, 10))
    layers = [each for pair in pairs for each in (torch.nn.Linear(*pair), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers[:-1])


NETWORKS: dict[str, Callable[[], torch.nn.Module]] = {
    "LeNet-300-100": lenet,
    "ConvNet with batch normalisation": Residual,
    "LSTM, 128 units": Rows,
    "transformer, 2 layers of width 64": Attention,
}


def digits(seed: int) -> tuple[Any, Any, Any, Any]:
    """Return 1,297 images and labels for training, and 500 for the test."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = torch.as_tensor(x[order] / 16, dtype=torch.float32), torch.as_tensor(y[order])
    return x[:1297], y[:1297], x[1297:], y[1297:]


def trained(model: torch.nn.Module, x: Any, y: Any, epochs: int) -> torch.nn.Module:
    """Train without noise for a third of the epochs, then by the lower bound."""
    for variational in (False, True):
        own = 2 * epochs // 3 if variational else epochs // 3
        if variational:
            model = nn.to_variational(model, posterior=nn.Additive(initial=-8.0))
            elbo = nn.ELBO(model, nn.categorical_log_likelihood, dataset_size=len(x))
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3 if variational else 1e-3)
        for epoch in range(own):
            for batch in torch.randperm(len(x)).split(100):
                optimizer.zero_grad()
                if variational:
                    weight = nn.linear_warm_up(epoch, 0, own // 3)
                    elbo(x[batch], y[batch], weight).loss.backward()
                else:
                    F.cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
    return model.eval()


def forms(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "to_compact kept", UserWarning)
        warnings.filterwarnings("ignore", ".*[Ss]parse CSR", UserWarning)
        dense = nn.to_deterministic(model, THRESHOLD)
        compact = [nn.to_compact(model, THRESHOLD, multiple_of=n) for n in (1, 4)]
        made = dict(zip(FORMS, (dense, *compact), strict=True))
        return made | {"sparse": nn.to_sparse(model, THRESHOLD)}


class Deployed(NamedTuple):
    """A network as it is deployed: a function of a tensor, and the size of its file."""

    run: Callable[[Any], Any]
    size: int


def in_torch(network: torch.nn.Module) -> Deployed:
    file = io.BytesIO()
    torch.save(network.state_dict(), file)

    def run(x: Any) -> Any:
        with torch.inference_mode():
            return network(x).numpy()

    return Deployed(run, file.tell())


def in_onnx(path: Path) -> Deployed:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return Deployed(lambda x: session.run(None, {name: x.numpy()})[0], path.stat().st_size)


def in_openvino(path: Path) -> Deployed:
    import openvino

    # Where the processor has instructions for bfloat16, OpenVINO would compute in it.
    config = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()
    return Deployed(lambda x: request.infer([x.numpy()])[0].copy(), path.stat().st_size)


def exported(network: torch.nn.Module, folder: Path, x: Any) -> dict[str, Deployed]:
    """Return an exported network: in ONNX Runtime, there with weights of 8 bits, in OpenVINO."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole, small = folder / "whole.onnx", folder / "small.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter and of the quantiser
        torch.onnx.export(
            network,
            (x[:2],),
            whole,
            dynamic_shapes=({0: torch.export.Dim("images")},),
            external_data=False,
            verbose=False,
        )
        quantize_dynamic(whole, small, weight_type=QuantType.QUInt8)
    made = in_onnx(whole), in_onnx(small), in_openvino(whole)
    return dict(zip(ENGINES[1:], made, strict=True))


def ways(model: torch.nn.Module, x: Any) -> tuple[dict[tuple[str, str], Deployed], Record]:
    found, failed = {}, {}
    for form, network in forms(model).items():
        found[form, ENGINES[0]] = in_torch(network)
        if form == "sparse":  # No exporter takes sparse matrices.
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                for engine, each in exported(network, Path(folder), x).items():
                    found[form, engine] = each
            except Exception as error:  # of an exporter, which may raise anything
                failed[form] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found, failed


def measure(options: argparse.Namespace) -> tuple[list[str], Record]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [row for name in NETWORKS for row in _rows(name, options)]
    finally:
        torch.set_num_threads(before)
    found: Record = {"threads": 1, "rounds": options.rounds, "seed": options.seed}
    found |= {"epochs": options.epochs, "threshold": THRESHOLD, "rows": rows}
    return [*_torch.PACKAGES, "onnxruntime", "openvino", "scikit-learn"], found


def _rows(name: str, options: argparse.Namespace) -> list[Record]:
    torch.manual_seed(options.seed)
    x, y, x_test, y_test = digits(options.seed)
    model = trained(NETWORKS[name](), x, y, options.epochs)
    compression = nn.sparsity(model, THRESHOLD).compression
    found, failed = ways(model, x_test)
    jobs: dict[Any, Callable[[], Any]] = {
        (*way, batch): partial(each.run, x_test[:batch])
        for way, each in found.items()
        for batch in BATCHES
    }
    times: dict[Any, Any] = timing.spreads(timing.sample(jobs, options.rounds, name), 1e6)
    return [
        {
            "network": name,
            "compression": compression,
            "form": form,
            "engine": engine,
            "file_bytes": each.size,
            "test_error": 100 * float((each.run(x_test).argmax(1) != y_test.numpy()).mean()),
            "microseconds": {str(batch): times[form, engine, batch] for batch in BATCHES},
            "failed": failed,
        }
        for (form, engine), each in found.items()
    ]
