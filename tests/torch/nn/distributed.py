"""The checks of test_distributed, which run in two processes."""

import copy
from dataclasses import replace
from functools import partial
from itertools import product

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from logunif_kl.nn.torch.noise.normal import normals
from logunif_kl.torch import nn
from tests.torch.nn.cases import descend, generator, seeded

POSTERIORS = {
    "additive": {},
    "molchanov": {"penalty": "molchanov"},
    "output": {"posterior": nn.Multiplicative("output")},
    "layer": {"posterior": nn.Multiplicative("layer", 0.0)},
    "correlated": {"posterior": nn.Correlated()},
}
NOISY = nn.Additive(initial=-1.0)
SIZE = 200
PLACEMENTS = {"Shard(0)": Shard(0), "Shard(1)": Shard(1), "Replicate": Replicate()}
LAYERS = {
    "linear": (nn.VariationalLinear, (6, 4), torch.randn(4, 6, generator=generator())),
    "conv1d": (nn.VariationalConv1d, (2, 4, 2), torch.randn(4, 2, 5, generator=generator())),
    "embedding": (nn.VariationalEmbedding, (6, 4), torch.tensor([0, 3, 3, 5])),
}


SAMPLED = {"sampled": True}


def noisy(options):
    """The options with larger variances."""
    return {**options, "posterior": replace(options.get("posterior", NOISY), initial=-1.0)}


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


def without_samples(mesh):
    """`VBP` returns moments, in which DDP and FSDP2 have to find the tensors."""

    def made():
        torch.manual_seed(1)
        return torch.nn.Sequential(
            nn.VariationalLinear(8, 4), torch.nn.ReLU(), nn.VariationalLinear(4, 1)
        )

    def trained(model, outer, given):
        elbo = nn.ELBO(outer, nn.expected_normal_log_likelihood, SIZE)
        optimizer = torch.optim.SGD(outer.parameters(), lr=1e-3)
        descend(optimizer, lambda: elbo(*given).loss, 2)
        return model

    def sharded(model, *parts):
        for part in parts:
            fully_shard(part, mesh=mesh)
        return fully_shard(nn.VBP(model), mesh=mesh)

    alone, given = made(), [*map(half, data())]
    trained(alone, nn.VBP(alone), data())
    for name, wrap in {
        "DDP": lambda model: DistributedDataParallel(nn.VBP(model)),
        "DDP, static": lambda m: DistributedDataParallel(nn.VBP(m), static_graph=True),
        "FSDP2": sharded,
        "FSDP2 of each layer": lambda model: sharded(model, model[0], model[2]),
    }.items():
        model = made()
        yield f"{name}:VBP", agree(trained(model, wrap(model), given), alone)


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
        layer = make(*sizes, **noisy(POSTERIORS[name]))
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


def samples_of_examples(mesh):
    """An embedding with a sample of its table for each example."""
    for label, style in (("rows", RowwiseParallel), ("columns", ColwiseParallel)):
        torch.manual_seed(3)
        layer = nn.VariationalEmbedding(6, 4, posterior=NOISY, estimator="per_example")
        sharded = torch.nn.Sequential(copy.deepcopy(layer))
        plan = style(input_layouts=Replicate(), output_layouts=Replicate())
        parallelize_module(sharded, mesh, {"0": plan})
        x = torch.tensor([[0, 3], [3, 5]])
        expected, found = seeded(layer, x), whole(seeded(sharded, x))
        yield f"tensor parallel:examples:{label}", torch.allclose(found, expected)


def counts(mesh):
    """The weights of sharded layers are counted over all processes."""
    for label, placement in PLACEMENTS.items():
        torch.manual_seed(3)
        layer = nn.VariationalLinear(6, 4, posterior=NOISY)
        expected = nn.sparsity(layer, 2.0)
        sharded = distributed(copy.deepcopy(layer), mesh, placement)
        some = 0 < expected.kept < expected.weights
        yield f"sparsity:{label}", some and nn.sparsity(sharded, 2.0) == expected


def tensor_parallel(mesh):
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        nn.VariationalLinear(6, 8, posterior=NOISY),
        torch.nn.ReLU(),
        nn.VariationalLinear(8, 4, posterior=NOISY),
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
    # What the processes share has the same noise in both, whatever their seeds.
    torch.manual_seed(4 + dist.get_rank())
    # Each example has noise of its own.
    many = x.repeat(600, 1)
    outputs, sampled = (
        whole(each(many)).detach().unflatten(0, (600, 5)) for each in (sharded, model.train())
    )
    ratio = outputs.std(0).mean() / sampled.std(0).mean()
    yield "tensor parallel:noise", bool((ratio - 1).abs() < 0.05)


PARALLEL = {
    **POSTERIORS,
    "groups": {"posterior": nn.Grouped()},
    "groups of inputs": {"posterior": nn.Grouped("input")},
    "groups of outputs": {"posterior": nn.Grouped("output")},
    "input": {"posterior": nn.Multiplicative("input")},
    "scaled": {"posterior": nn.Scaled()},
    "prior": {"penalty": nn.NormalPrior(1.0)},
    "horseshoe": {"penalty": nn.HorseshoePrior(1.0)},
}


def steps_in_parallel(mesh):
    """A step of Adam, the KL, the counts, a sample, pruning and the file of each posterior."""
    x, y = torch.randn(5, 6, generator=generator()), torch.arange(5) % 4
    for name, options in PARALLEL.items():
        torch.manual_seed(3)
        plain = torch.nn.Sequential(
            nn.VariationalLinear(6, 8, **noisy(options)),
            torch.nn.ReLU(),
            nn.VariationalLinear(8, 4, **noisy(options)),
        )
        model = copy.deepcopy(plain)
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        nn.ELBO(model, nn.categorical_log_likelihood, 9, mask_from=3.0)(x, y).loss.backward()
        optimizer.step()
        plain.load_state_dict({key: whole(p) for key, p in model.state_dict().items()})
        optimizer.zero_grad()
        kls = [nn.kl(each) for each in (model, plain)]
        fine = torch.allclose(*kls)
        for each in kls:
            each.backward()
        for a, b in zip(model.parameters(), plain.parameters(), strict=True):
            fine &= b.grad is None or torch.allclose(whole(a.grad), b.grad, 1e-4, 1e-5)
        optimizer.step()
        plain.load_state_dict({key: whole(p) for key, p in model.state_dict().items()})
        fine &= nn.sparsity(model, 0.0) == nn.sparsity(plain, 0.0)
        outputs = []
        fine &= says(nn.to_compact, model, "has DTensors") and says(
            nn.to_sparse, model, "has DTensors"
        )
        for each in (model, plain):
            with nn.sampled(each, generator(1)):
                outputs.append(whole(each(x)))
            outputs.append(whole(nn.prune(each, 0.0).eval()(x)))
        fine &= all(torch.allclose(outputs[i], outputs[i + 2], 1e-4, 1e-5) for i in (0, 1))
        fine &= torch.allclose(nn.kl(model), nn.kl(plain))
        for each in (model, plain):
            nn.kl(each).backward()
            torch.optim.SGD(each.parameters(), 0.1).step()
        yield f"tensor parallel:{name}", fine and torch.allclose(nn.kl(model), nn.kl(plain))


def sharded_in_two_dimensions(mesh):
    """As tensor parallelism and FSDP2 leave the parameters, on one mesh."""
    square = init_device_mesh("cpu", (2, 1), mesh_dim_names=("data", "tensor"))
    for name in ("additive", "scaled"):
        torch.manual_seed(3)
        layer = nn.VariationalLinear(6, 4, **noisy(PARALLEL[name]))
        model = torch.nn.Sequential(copy.deepcopy(layer))
        parallelize_module(model, square["tensor"], {"0": RowwiseParallel()})
        fully_shard(model[0], mesh=square["data"])
        found = nn.kl(model)
        found.backward()
        layer.kl().backward()
        fine = torch.allclose(found, layer.kl())
        for a, b in zip(model.parameters(), layer.parameters(), strict=True):
            fine &= b.grad is None or torch.allclose(whole(a.grad), b.grad, 1e-4, 1e-5)
        yield f"two dimensions:{name}", fine


class First(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        found = self.inner(x, x, x) if isinstance(self.inner, ATTENTION) else self.inner(x)
        return found[0] if isinstance(found, tuple) else found


ATTENTION = torch.nn.MultiheadAttention
CONVERTED = {
    "GRU": lambda: torch.nn.GRU(4, 6),
    "RNN": lambda: torch.nn.RNN(4, 6, bias=False),
    "attention": lambda: ATTENTION(4, 2),
    "layer": lambda: torch.nn.Linear(4, 4),
    "embedding": lambda: torch.nn.Embedding(3, 4, padding_idx=1),
}


def converted(mesh):
    """Converted modules under FSDP2: a step, and one sample in two calls."""
    for name, of_part in product(CONVERTED, (False, True)):
        make = CONVERTED[name]
        x = torch.randn(3, 2, 4, generator=generator())
        x = torch.arange(3) if name == "embedding" else x
        torch.manual_seed(3)
        plain = nn.to_variational(First(make()), posterior=nn.Additive(initial=-2.0))
        model = copy.deepcopy(plain)
        fully_shard(model.inner, mesh=mesh)
        if not of_part:
            fully_shard(model, mesh=mesh)
        (model(x).sum() + nn.kl(model)).backward()
        fine = all(p.grad is not None for p in model.parameters())
        with nn.sampled(model, generator(1)):
            found, again = model(x), model(x)
        with nn.sampled(plain, generator(1)):
            expected = plain(x)
        fine &= torch.allclose(found, expected, atol=1e-6) and torch.equal(found, again)
        yield f"FSDP2:{name}:{of_part}", fine
        if name in ("GRU", "layer") and not of_part:
            for refused in (nn.to_deterministic, nn.to_compact, nn.prune):
                yield f"FSDP2:{name}:{refused.__name__}", says(refused, model, "sharded by FSDP")
        plain = First(make())
        model = copy.deepcopy(plain)
        fully_shard(model.inner, mesh=mesh)
        yield f"FSDP2:plain {name}:{of_part}", nn.sparsity(model) == nn.sparsity(plain)
    model = nn.VariationalLinear(4, 4, posterior=NOISY)
    fully_shard(model, mesh=mesh)
    with torch.no_grad():
        model.eval()(torch.ones(2, 4))
    fine = says(nn.zero_means, model, "FSDP keeps a gathered copy of the weights of the model")
    model.reshard()
    nn.zero_means(model, -100.0)
    yield "FSDP2:zero_means", fine and not model.weight.full_tensor().any()


PRUNED = {
    "linear": lambda: nn.VariationalLinear(6, 5, posterior=NOISY),
    "groups": lambda: nn.VariationalLinear(6, 5, posterior=nn.Grouped(initial=1.0)),
    "padding": lambda: nn.VariationalEmbedding(5, 4, padding_idx=1, posterior=NOISY),
    "GRU": lambda: nn.to_variational(torch.nn.GRU(4, 3), posterior=NOISY),
}


def pruned(mesh):
    """The KL of networks under FSDP2, which may be pruned before. FSDP2 adds local gradients."""
    for (name, make), is_pruned in product(PRUNED.items(), (False, True)):
        found = []
        for _ in range(2):
            torch.manual_seed(3)
            found.append(nn.prune(make(), 2.0) if is_pruned else make())
        fully_shard(found[0], mesh=mesh)
        for each in found:
            nn.kl(each).backward()
        fine = nn.sparsity(found[0], 2.0) == nn.sparsity(found[1], 2.0)
        for a, b in zip(*(each.parameters() for each in found), strict=True):
            if b.grad is not None:
                fine &= torch.allclose(whole(a.grad), b.grad, 1e-4, 1e-5)
                fine &= a.grad.placements == a.placements
        yield f"FSDP2:KL:{name}:{is_pruned}", fine


def says(function, model, words):
    try:
        function(model)
    except (RuntimeError, TypeError) as error:
        return words in str(error)
    return False


COMPUTED = {
    "prune": partial(nn.prune, threshold=1.0),
    "spectral_norm": torch.nn.utils.spectral_norm,
    "a parametrization": torch.nn.utils.parametrizations.weight_norm,
}
"""How a weight can be computed from parameters, which FSDP1 makes flat."""


def wrapped(mesh):
    """FSDP1 of a whole ELBO; a flat tensor is refused elsewhere. DDP is unwrapped."""
    for original in (False, True):
        torch.manual_seed(3)
        plain = nn.VariationalLinear(6, 4, posterior=NOISY)
        x, y = torch.randn(5, 6, generator=generator()), torch.arange(5) % 4
        elbo = nn.ELBO(torch.nn.Sequential(plain), nn.categorical_log_likelihood, 9)
        expected = nn.kl(plain).item()
        options = {"use_orig_params": original, "device_id": torch.device("cpu")}
        model = FullyShardedDataParallel(elbo, **options)
        for function in (nn.kl, nn.sparsity, nn.to_compact):
            yield f"FSDP1:{original}:{function.__name__}", says(function, model, "sharded by")
        bound = model(x, y)
        bound.loss.backward()
        yield f"FSDP1:{original}:step", abs(bound.neg_kl.item() + expected) < 1e-4
    options["sharding_strategy"] = ShardingStrategy.NO_SHARD
    plain = nn.VariationalLinear(6, 4, posterior=NOISY)
    expected = nn.kl(plain).item()
    model = FullyShardedDataParallel(plain, **options)
    fine = says(nn.kl, model, "sharded by FullyShardedDataParallel")
    with model.summon_full_params(model), torch.no_grad():
        yield "FSDP1:NO_SHARD", fine and abs(nn.kl(model).item() - expected) < 1e-4
    for strategy, (name, compute) in product(
        (ShardingStrategy.NO_SHARD, ShardingStrategy.FULL_SHARD), COMPUTED.items()
    ):
        options["sharding_strategy"] = strategy
        model = compute(nn.VariationalLinear(1, 12, posterior=NOISY))
        refused = says(nn.kl, FullyShardedDataParallel(model, **options), "sharded by")
        yield f"FSDP1:{strategy.name}:{name} is refused", refused

    def call(model):
        with torch.no_grad():
            return FullyShardedDataParallel(model, **options)(torch.randn(3, 2, 4))

    for name in ("GRU", "attention"):
        sampled = nn.to_variational(First(CONVERTED[name]()))
        refused = says(call, sampled, "use fully_shard instead of FullyShardedDataParallel")
        yield f"FSDP1:{name} is refused", refused
    model = DistributedDataParallel(torch.nn.Sequential(nn.VariationalLinear(6, 4)))
    for name, options in (("to_variational", {}), ("to_deterministic", {"inplace": True})):
        # Each process would train with its own gradients of the new parameters.
        refused = says(partial(getattr(nn, name), **options), model, "DistributedDataParallel")
        yield f"DDP:{name} is refused", refused
    for function in (nn.to_deterministic, nn.to_sample):
        yield f"DDP:{function.__name__}", type(function(model)) is torch.nn.Sequential
    for function in (nn.to_compact, nn.to_sparse):
        made = function(model)
        fine = type(made) is torch.nn.Sequential
        state = made.state_dict()
        fine &= torch.equal(nn.load_sparse(model, state)(x), made(x))
        yield f"DDP:{function.__name__}", fine


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
    for make in (
        *(
            controls,
            data_parallel,
            without_samples,
            tensors,
            samples_of_examples,
            counts,
            tensor_parallel,
        ),
        *(steps_in_parallel, sharded_in_two_dimensions, converted, pruned, wrapped),
    ):
        yield from make(mesh)
