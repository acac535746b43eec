"""The checks of models in test_distributed, which run in two processes."""

import copy

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

from logunif_kl.torch import nn
from tests.torch.nn.cases import generator

EXAMPLES = 40


class Network(torch.nn.Module):
    """Three layers without noise, and one in training mode for the ELBO, which is not called."""

    def __init__(self, penalty):
        super().__init__()
        self.layers = torch.nn.Sequential(
            nn.VariationalLinear(3, 7, initial=-4.0, penalty=penalty),
            torch.nn.Tanh(),
            nn.VariationalLinear(
                7, 5, posterior="multiplicative", sharing="output", penalty=penalty
            ),
            nn.VariationalLinear(5, 2, penalty=penalty),
        ).eval()
        self.uncalled = nn.VariationalLinear(2, 2, bias=False, penalty=penalty)

    def forward(self, x):
        return self.layers(x)


def network(penalty="exact"):
    torch.manual_seed(0)
    return Network(penalty)


def data():
    return torch.randn(8, 3, generator=generator(1)), torch.arange(8) % 2


def elbo_of(model):
    return nn.ELBO(model, nn.categorical_log_likelihood, EXAMPLES)


def slopes(model):
    found = {}
    for name, p in model.named_parameters():
        grad = torch.zeros_like(p) if p.grad is None else p.grad
        found[name] = grad.full_tensor() if hasattr(grad, "full_tensor") else grad
    return found


def agree(found, expected):
    return all(
        torch.allclose(found[name.removeprefix("model.")], grad, rtol=1e-5, atol=1e-8)
        for name, grad in expected.items()
    )


def checks(mesh):
    x, y = data()
    first = 4 * dist.get_rank()
    mine = slice(first, first + 4)
    alone = network()
    bound = elbo_of(alone)(x, y)
    bound.loss.backward()
    expected = slopes(alone)

    # Each parameter distributed by hand.
    def shard(name, module, mesh):
        for key, p in module.named_parameters(recurse=False):
            module.register_parameter(
                key, torch.nn.Parameter(distribute_tensor(p.detach(), mesh, [Shard(0)]))
            )

    for penalty in ("exact", "molchanov"):
        plain = network(penalty)
        nn.kl(plain).backward()
        model = distribute_module(network(penalty), mesh, shard)
        found = nn.kl(model)
        found.backward()
        yield f"a plain tensor, {penalty}", type(found) is torch.Tensor
        yield f"value, {penalty}", torch.allclose(found, nn.kl(plain), rtol=1e-6)
        yield f"gradient, {penalty}", agree(slopes(model), slopes(plain))
        by_layer = nn.named_kl(model)
        yield f"by layer, {penalty}", agree(by_layer, nn.named_kl(plain))

    for each in (False, True):
        model = copy.deepcopy(network())
        if each:
            for layer in list(model.modules()):
                if isinstance(layer, nn.VariationalLayer):
                    fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        name = f"fully_shard, {'each layer' if each else 'the whole'}"
        loss = elbo_of(model)(x[mine], y[mine]).loss
        loss.backward()
        yield f"{name}: type", type(loss) is torch.Tensor
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        yield f"{name}: value", torch.allclose(mean / 2, bound.loss, rtol=1e-6)
        yield f"{name}: gradient", agree(slopes(model), expected)

    model = network()
    parallel = torch.nn.parallel.DistributedDataParallel(elbo_of(model))
    parallel(x[mine], y[mine]).loss.backward()
    yield "DistributedDataParallel: gradient", agree(slopes(model), expected)
    # A KL that counts once for each process would be twice as large.
    doubled = copy.deepcopy(alone)
    doubled.zero_grad()
    elbo_of(doubled)(x, y, kl_weight=2.0).loss.backward()
    yield "control", not agree(slopes(doubled), expected)
