"""The layers, and the posteriors that they take, for the tests of `logunif_kl.torch.nn`."""

import copy
import io
import math
import pickle
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional as F

import logunif_kl as lk
from logunif_kl.torch import nn

POSTERIORS = {
    "additive": nn.Additive(),
    "weight": nn.Multiplicative(),
    "output": nn.Multiplicative("output"),
    "input": nn.Multiplicative("input"),
    "layer": nn.Multiplicative("layer"),
    "correlated, input": nn.Correlated(),
    "correlated, layer": nn.Correlated("layer"),
}
# Posteriors of whole units, which embeddings do not have.
OF_UNITS = {
    "scaled": nn.Scaled(),
    "groups, output": nn.Grouped("output"),
    "groups, input": nn.Grouped("input"),
}
EVERY = POSTERIORS | OF_UNITS
ESTIMATORS = ("local", "per_example", "per_batch")


class Case(NamedTuple):
    """A layer of torch, and an input of some examples."""

    twin: Any
    arguments: tuple
    options: dict
    shape: tuple  # of one example

    @property
    def layer(self) -> Any:
        """The variational layer."""
        return getattr(nn, f"Variational{self.twin.__name__}")


CASES = {
    "linear": Case(torch.nn.Linear, (3, 2), {}, (3,)),
    "conv1d": Case(
        torch.nn.Conv1d, (4, 2, 2), {"groups": 2, "padding": 1, "padding_mode": "circular"}, (4, 3)
    ),
    "conv2d": Case(
        *(torch.nn.Conv2d, (2, 2, 2)),
        {"dilation": 2, "stride": 2, "padding": (1, 0), "bias": False},
        (2, 3, 4),
    ),
    "conv3d": Case(torch.nn.Conv3d, (1, 2, (1, 3, 1)), {"padding": "same"}, (1, 1, 3, 2)),
    "embedding": Case(torch.nn.Embedding, (4, 2), {"padding_idx": 1}, (3,)),
}


# Each layer with each of its posteriors.
LAYERS = [
    (case, posterior)
    for case in CASES
    for posterior in (POSTERIORS if case == "embedding" else EVERY)
]
every_case = pytest.mark.parametrize("case", CASES)
every_posterior = pytest.mark.parametrize("posterior", POSTERIORS)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)
every_backend = pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)


every_layer = pytest.mark.parametrize(("case", "posterior"), LAYERS)
# Each layer with each posterior, and each of both with each estimator.
every_pair = pytest.mark.parametrize(
    ("case", "posterior", "estimator"),
    [
        *((case, posterior, "local") for case, posterior in LAYERS),
        *(
            (case, posterior, estimator)
            for case, posterior in LAYERS
            for estimator in ESTIMATORS[1:]
            if case == "linear" or posterior in ("additive", "correlated, input")
        ),
    ],
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def seeded(call: Any, *arguments: Any, seed: int = 1) -> Any:
    """What a call gives with the noise of this seed."""
    torch.manual_seed(seed)
    return call(*arguments)


def compiled(function: Any, backend: Any = "aot_eager", **options: Any) -> Any:
    """A function as one graph, by a compiler that has forgotten the others."""
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def finite(*tensors: Any) -> bool:
    return all(bool(x.isfinite().all()) for x in tensors)


def filled(module: Any, **values: Any) -> Any:
    """A module whose parameters of these names are set."""
    with torch.no_grad():
        for name, value in values.items():
            getattr(module, name)[...] = value
    return module


def descend(optimizer: Any, loss: Any, steps: int) -> list[float]:
    """Take steps on a loss, and return its value before each."""
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


def tied(posterior: Any = POSTERIORS["layer"]) -> Any:
    """A table and the linear layer that has its parameters."""
    table = nn.VariationalEmbedding(3, 2, posterior=posterior)
    linear = nn.VariationalLinear(2, 3, posterior=posterior)
    linear.weight, linear.log_alpha = table.weight, table.log_alpha
    return torch.nn.Sequential(table, linear)


class Pair(torch.nn.Module):
    """A layer of the product of two inputs, or of one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.VariationalLinear(3, 2, posterior=nn.Additive(initial=0.0))

    def forward(self, a: Any, b: Any = None) -> Any:
        return self.layer(a if b is None else a * b)


class Calls(torch.nn.Module):
    """A module that calls a function of the modules that it holds, and of what it is given."""

    def __init__(self, function: Any, *held: Any) -> None:
        super().__init__()
        self.function, self.held = function, torch.nn.ModuleList(held)

    def forward(self, *given: Any) -> Any:
        return self.function(*self.held, *given)


def kl_of(model: Any, parameters: dict) -> Any:
    """The KL of a model with these parameters."""
    named = {f"held.0.{name}": value for name, value in parameters.items()}
    return torch.func.functional_call(Calls(nn.kl, model), named, ())


def made(case: Case, seed: int = 1, dtype: Any = torch.float32, **options: Any) -> Any:
    """A layer whose parameters are all different, with alpha between 0.05 and 1."""
    layer = case.layer(*case.arguments, **case.options, **options).to(dtype)
    draws = generator(seed)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            drawn = torch.rand(parameter.shape, generator=draws, dtype=torch.float64)
            if name == "log_alpha":
                drawn = 3 * drawn - 3
            elif name.endswith("log_sigma2"):
                drawn = 2 * drawn - 4
            elif name == "scale":
                drawn = 0.5 + drawn
            else:
                sign = (torch.rand(parameter.shape, generator=draws) < 0.5).to(drawn.dtype)
                drawn = (0.2 + drawn) * (1 - 2 * sign)
            parameter.copy_(drawn)
        if isinstance(layer, torch.nn.Embedding):
            layer._fill_padding_idx_with_zero()
    return layer


def inputs(case: Case, examples: int = 1, seed: int = 2, dtype: Any = torch.float32) -> Any:
    """Examples for a layer, all different."""
    if case.twin is torch.nn.Embedding:
        # The padding, and an index twice.
        return torch.tensor([1, 3, 3]).repeat(examples, 1)
    shape = (examples, *case.shape)
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64).to(dtype)


def layer_and_input(case: str, posterior: Any = "additive", n: int = 3, **options: Any) -> tuple:
    """A layer with this posterior, or that of this name, and n examples for it."""
    layer = made(CASES[case], **options, posterior=EVERY.get(posterior, posterior))
    return layer, inputs(CASES[case], n, dtype=options.get("dtype", torch.float32))


def copies(module: Any) -> Any:
    """Copies by `copy`, by `pickle` and by a file."""
    yield copy.deepcopy(module)
    yield pickle.loads(pickle.dumps(module))
    yield read(module, weights_only=False)


def read(what: Any, **options: Any) -> Any:
    """What is read from a file to which this was written."""
    file = io.BytesIO()
    torch.save(what, file)
    file.seek(0)
    return torch.load(file, **options)


def kl_by_parameters(model: Any) -> tuple[float, int]:
    """The exact KL of additive weights, by the names of the parameters, and their number."""
    state, total, weights = dict(model.named_parameters()), [], 0
    for name, parameter in state.items():
        path, _, own = name.rpartition(".")
        of_layer = f"{path}.log_sigma2" if own == "weight" else ""
        variances = state.get(f"{name}_log_sigma2", state.get(of_layer))
        if variances is not None:
            mean, log_sigma2 = (p.detach().double() for p in (parameter, variances))
            padded = getattr(model.get_submodule(path), "padding_idx", None)
            if padded is not None:
                rows = torch.arange(len(mean)) != padded
                mean, log_sigma2 = mean[rows], log_sigma2[rows]
            total += lk.kl_normal(mean.numpy(), log_sigma2.numpy()).flat
            weights += parameter.numel()
    return math.fsum(total), weights


def twin(case: Case, layer: Any) -> Any:
    """torch's own layer with the same means and bias."""
    found = case.twin(*case.arguments, **case.options).to(layer.weight.dtype)
    found.load_state_dict(layer.state_dict(), strict=False)
    return filled(found, weight=means(layer))


def means(layer: Any) -> torch.Tensor:
    """The means of the weights."""
    mean = layer.weight.detach()
    return mean * layer.scale.detach() if hasattr(layer, "scale") else mean


def variances(layer: Any) -> torch.Tensor:
    """The variances of the weights, by the definition of each posterior."""
    if hasattr(layer, "log_alpha"):
        return layer.log_alpha.detach().exp() * layer.weight.detach() ** 2
    variance = layer.log_sigma2.detach().exp().expand(layer.weight.shape)
    if not hasattr(layer, "scale"):
        return variance
    of_scales = layer.scale_log_sigma2.detach().exp()
    squares = layer.weight.detach() ** 2 + variance
    return squares * (layer.scale.detach() ** 2 + of_scales) - means(layer) ** 2


def sampled(layer: Any, n: int, seed: int = 3) -> torch.Tensor:
    """Explicit samples of the weights, of the shape (n, *weight.shape)."""
    draws, weight = generator(seed), layer.weight.detach()

    def normals(*shape: int) -> torch.Tensor:
        return torch.randn((n, *shape), generator=draws, dtype=weight.dtype)

    def scales(mean: Any, deviation: torch.Tensor) -> torch.Tensor:
        """One scale for each input channel, the same for all outputs that read it."""
        groups = getattr(layer, "groups", 1)
        outputs, inputs, *kernel = weight.shape
        noise = normals(groups, inputs).repeat_interleave(outputs // groups, 1)
        return mean + deviation * noise.view(n, outputs, inputs, *[1] * len(kernel))

    if hasattr(layer, "scale"):
        deviation = layer.scale_log_sigma2.detach().exp().sqrt()
        factors = scales(layer.scale.detach(), deviation)
        return factors * (weight + layer.log_sigma2.detach().exp().sqrt() * normals(*weight.shape))
    if not isinstance(layer.posterior, nn.Correlated):
        return weight + variances(layer).sqrt() * normals(*weight.shape)
    root = layer.log_alpha.detach().exp().sqrt()
    if isinstance(layer, torch.nn.Embedding):
        return weight * (1 + root * normals(len(weight), 1))
    return weight * scales(1.0, root)


def matrix(case: Case, layer: Any, x: Any) -> torch.Tensor:
    """The matrix from the weights to the outputs for an input, by torch's own layer."""
    plain = twin(case, layer)

    def output(weight: Any) -> Any:
        # The rows that are looked up, without the rule of the padding's gradient.
        if isinstance(plain, torch.nn.Embedding):
            return F.embedding(x, weight)
        return torch.func.functional_call(plain, {"weight": weight}, (x,))

    return torch.func.jacrev(output)(plain.weight.detach()).flatten(layer.weight.dim() * -1)
