"""The checks of test_distributed, which run in two processes."""

import copy
from itertools import product

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from logunif_kl.torch import nn
from logunif_kl.torch.nn._noise import normals
from tests.torch.nn.cases import descend, generator, seeded

POSTERIORS = {
    "additive": {},
    "molchanov": {"penalty": "molchanov"},
    "output": {"posterior": "multiplicative", "sharing": "output"},
    "layer": {"posterior": "multiplicative", "sharing": "layer", "max_log_alpha": 0.0},
    "correlated": {"posterior": "multiplicative", "sharing": "input", "noise": "correlated"},
}
SIZE = 200
PLACEMENTS = {"Shard(0)": Shard(0), "Shard(1)": Shard(1), "Replicate": Replicate()}
LAYERS = {
    "linear": (nn.VariationalLinear, (6, 4), torch.randn(4, 6, generator=generator())),
    "conv1d": (nn.VariationalConv1d, (2, 4, 2), torch.randn(4, 2, 5, generator=generator())),
    "embedding": (nn.VariationalEmbedding, (6, 4), torch.tensor([0, 3, 3, 5])),
}


SAMPLED = {"sampled": True}


class Network(torch.nn.Module):
    """Layers in evaluation mode, and one in training mode for the ELBO, which is not called."""

    def __init__(self, layers):
        super().__init__()
        self.layers, self.uncalled = layers.eval(), nn.VariationalLinear(2, 2, bias=False)

    def forward(self, x):
        return self.layers(x)


def network(options):
    torch.manual_seed(1)
    return Network(made(options))


def made(options):
    if options == SAMPLED:
        plain = torch.nn.Sequential(
            torch.nn.Unflatten(1, (2, 4)),
            torch.nn.ConvTranspose1d(2, 3, 2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(15, 1),
        )
        return nn.to_variational(plain)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (2, 4)),
        nn.VariationalConv1d(2, 3, 3, padding=1, **options),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        nn.VariationalLinear(12, 5, **options),
        torch.nn.ReLU(),
        nn.VariationalLinear(5, 1, **options),
    )


def data():
    x = torch.randn(8, 8, generator=generator(2))
    return x, x.sum(1, keepdim=True)


def elbo_of(model):
    return nn.ELBO(model, nn.normal_log_likelihood, SIZE)


def alone(options):
    """Steps in one process, with the means as the only sample: the model after it, and losses."""
    model = network(options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, descend(optimizer, lambda: elbo_of(model)(*data()).loss, 2)


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def agree(model, other):
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(
        torch.allclose(whole(a.detach()), b.detach(), rtol=1e-5, atol=1e-7) for a, b in pairs
    )


def half(x):
    return x.chunk(2)[dist.get_rank()]


def data_parallel(mesh):
    for name, options in {**POSTERIORS, "sampled": SAMPLED}.items():
        if name == "molchanov":
            continue
        expected, bounds = alone(options)
        whole_model = ["FSDP2 of the whole"] if name == "additive" else []
        for kind in ("DDP", "FSDP2 of each layer", *whole_model):
            model = network(options)
            if kind == "FSDP2 of each layer":
                for layer in list(model.modules()):
                    if isinstance(layer, (nn.VariationalLayer, nn.SampledModule)):
                        fully_shard(layer, mesh=mesh)
            if kind == "DDP":
                wrapped = DistributedDataParallel(elbo_of(model))
            else:
                wrapped = elbo_of(fully_shard(model, mesh=mesh))
            optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)

            def step(wrapped=wrapped):
                loss = wrapped(*map(half, data())).loss
                return loss if type(loss) is torch.Tensor else None

            losses = descend(optimizer, step, 2)
            others = [None, None]
            dist.all_gather_object(others, losses)
            means = [sum(pair) / 2 for pair in zip(*others, strict=True)]
            yield f"{kind}:{name}:value", torch.allclose(torch.tensor(means), torch.tensor(bounds))
            yield f"{kind}:{name}:step", agree(model, expected)
            for group in optimizer.param_groups:
                group["lr"] = 0.01
            # With noise, which differs between the processes as their seeds do.
            wrapped.train()
            torch.manual_seed(10 + dist.get_rank())
            losses = descend(optimizer, step, 20)
            fine = all(torch.isfinite(whole(p.detach())).all() for p in model.parameters())
            dist.all_gather_object(others, losses)
            fine &= sum(losses[-10:]) < sum(losses[:10])
            yield f"{kind}:{name}:training", bool(fine) and others[0] != others[1]


def distributed(model, mesh, placement):
    def split(_, module, mesh):
        for name, p in list(module.named_parameters(recurse=False)):
            kept = Replicate() if p.ndim < 2 and placement == Shard(1) else placement
            made = torch.nn.Parameter(distribute_tensor(p.detach(), mesh, [kept]))
            module.register_parameter(name, made)

    return distribute_module(model, mesh, split)


def tensors(mesh):
    """Layers with DTensors as parameters draw what one process draws from the same seed."""
    for label, name, kind in product(PLACEMENTS, POSTERIORS, LAYERS):
        if kind == "conv1d" and label != "Replicate":
            # torch's own convolution does not compute with such weights.
            continue
        make, sizes, x = LAYERS[kind]
        torch.manual_seed(3)
        layer = make(*sizes, initial=-1.0, **POSTERIORS[name])
        sharded = distributed(copy.deepcopy(layer), mesh, PLACEMENTS[label])
        expected = seeded(layer, x)
        (expected.sin().sum() + layer.kl()).backward()
        found = seeded(sharded, distribute_tensor(x, mesh, [Replicate()])).full_tensor()
        of_model = nn.kl(torch.nn.Sequential(sharded))
        (found.sin().sum() + of_model).backward()
        fine = torch.allclose(found, expected, rtol=1e-5, atol=1e-7)
        fine &= type(of_model) is torch.Tensor
        for value in (of_model, sharded.kl(), *nn.named_kl(sharded).values()):
            fine &= torch.allclose(value, layer.kl(), rtol=1e-6)
        for a, b in zip(sharded.parameters(), layer.parameters(), strict=True):
            fine &= torch.allclose(a.grad.full_tensor(), b.grad, rtol=1e-5, atol=1e-6)
        yield f"DTensor:{label}:{name}:{kind}", fine


def counts(mesh):
    """The weights of sharded layers are counted over all processes."""
    for label, placement in PLACEMENTS.items():
        torch.manual_seed(3)
        layer = nn.VariationalLinear(6, 4, initial=-1.0)
        expected = nn.sparsity(layer, 2.0)
        sharded = distributed(copy.deepcopy(layer), mesh, placement)
        some = 0 < expected.kept < expected.weights
        yield f"sparsity:{label}", some and nn.sparsity(sharded, 2.0) == expected


def tensor_parallel(mesh):
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        nn.VariationalLinear(6, 8, initial=-1.0),
        torch.nn.ReLU(),
        nn.VariationalLinear(8, 4, initial=-1.0),
    ).eval()
    x = torch.randn(5, 6)
    expected = model(x)
    expected.sin().sum().backward()
    slopes = [p.grad for p in model.parameters()]
    sharded = copy.deepcopy(model)
    sharded.zero_grad()
    parallelize_module(sharded, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    found = sharded(x)
    found.sin().sum().backward()
    fine = torch.allclose(found, expected, rtol=1e-5, atol=1e-7)
    for p, slope in zip(sharded.parameters(), slopes, strict=True):
        if slope is not None:
            fine &= torch.allclose(whole(p.grad), slope, rtol=1e-5, atol=1e-7)
    yield "tensor parallel:mean", fine
    sharded.train()
    torch.manual_seed(4)
    # Each example has noise of its own.
    many = x.repeat(600, 1)
    outputs, sampled = (
        whole(each(many)).detach().unflatten(0, (600, 5)) for each in (sharded, model.train())
    )
    ratio = outputs.std(0).mean() / sampled.std(0).mean()
    yield "tensor parallel:noise", bool((ratio - 1).abs() < 0.05)


def controls(mesh):
    """That the shards of a DTensor get different noise, where torch's own would be the same."""
    like = distribute_tensor(torch.zeros(4, 4), mesh, [Shard(0)])
    own = seeded(torch.randn_like, like).full_tensor()
    yield "control:torch repeats the noise", torch.equal(own[:2], own[2:])
    ours = seeded(normals, like.shape, like, None).full_tensor()
    yield "control:these shards differ", torch.equal(ours, seeded(torch.randn, 4, 4))
    found = normals(like.shape, like, generator(6)).full_tensor()
    yield "control:a generator", torch.equal(found, torch.randn(4, 4, generator=generator(6)))
    yield "control:agree", not agree(network({}), alone({})[0])


def checks(mesh):
    for make in (controls, data_parallel, tensors, counts, tensor_parallel):
        yield from make(mesh)
