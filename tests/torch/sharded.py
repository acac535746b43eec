"""The checks of test_dtensor, which run in two processes."""

from itertools import product

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import logunif_kl as lk
import logunif_kl.torch as lt
from logunif_kl.torch import _cpu

UNARY = ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl")
NAMES = (*UNARY, "neg_kl_normal", "kl_normal")
PLACEMENTS = {"Shard(0)": Shard(0), "Shard(1)": Shard(1), "Replicate": Replicate()}
SHAPE = (7, 6)  # uneven over two processes


def arguments(name, dtype):
    generator = torch.Generator().manual_seed(5)
    given = [6 * torch.randn(SHAPE, generator=generator, dtype=torch.float64) for _ in range(2)]
    return [x.to(dtype) for x in given[: 1 if name in UNARY else 2]]


def bits(got, alone):
    return torch.equal(got.full_tensor(), alone)


def near(got, alone, rtol=1e-14):
    return torch.allclose(got.full_tensor(), alone, rtol=rtol, atol=0)


def value_and_slopes(function, leaves, **options):
    value = function(*leaves, **options)
    return value, *torch.autograd.grad(value.sum(), leaves)


def shards(x, mesh, *placements):
    return distribute_tensor(x, mesh, placements).requires_grad_()


def rows(mesh):
    for name in NAMES:
        function = getattr(lt, name)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            plain = [x.requires_grad_() for x in arguments(name, dtype)]
            wanted = value_and_slopes(function, plain)
            for label, placement in PLACEMENTS.items():
                leaves = [shards(x.detach(), mesh, placement) for x in plain]
                got = value_and_slopes(function, leaves)
                fine = all(map(bits, got, wanted))
                kept = all(x.placements == (placement,) for x in got)
                yield f"{name}:{label}:{str(dtype).removeprefix('torch.')}", fine and kept
    for name in ("neg_kl", "neg_kl_normal", "kl", "kl_normal"):
        function = getattr(lt, name)
        plain = [x.requires_grad_() for x in arguments(name, torch.float64)]
        for label, placement in PLACEMENTS.items():
            leaves = [shards(x.detach(), mesh, placement) for x in plain]
            for reduction, constant in product(("sum", "mean"), ({}, {"zero_at": 1.0})):
                options = {"reduction": reduction, **constant}
                value, *slopes = value_and_slopes(function, plain, **options)
                got, *got_slopes = value_and_slopes(function, leaves, **options)
                # As near as sums in another order are.
                fine = near(got, value, 2.0**-49) and all(map(bits, got_slopes, slopes))
                fine &= all(x.placements == (placement,) for x in got_slopes)
                yield f"{name}:{label}:{reduction}" + ", with a constant" * len(constant), fine


def further(mesh):
    mu, log_sigma2 = arguments("neg_kl_normal", torch.float64)
    plain = [mu.requires_grad_(), log_sigma2.requires_grad_()]
    leaves = [shards(x.detach(), mesh, Shard(0)) for x in plain]

    def second(leaves):
        value = lk.neg_kl_normal(*leaves).sum()
        (slope,) = torch.autograd.grad(value, leaves[0], create_graph=True)
        return torch.autograd.grad(slope.sum(), leaves)

    yield "second backward", all(map(bits, second(leaves), second(plain)))
    total = lt.kl_normal(*leaves, reduction="sum")
    yield "pending sum", total.placements == (Partial("sum"),)
    total.backward()
    slopes = torch.autograd.grad(lt.kl_normal(*plain, reduction="sum"), plain)
    yield "backward of a pending sum", all(map(bits, (x.grad for x in leaves), slopes))
    row = log_sigma2[0].detach().requires_grad_()
    got = value_and_slopes(lt.neg_kl_normal, [leaves[0], shards(row.detach(), mesh, Replicate())])
    fine = all(map(near, got, value_and_slopes(lt.neg_kl_normal, [plain[0], row])))
    yield "broadcast", fine and got[0].placements == (Shard(0),)
    number = lt.neg_kl_normal(leaves[0], -8.0)
    fine = near(number, lt.neg_kl_normal(plain[0], -8.0))
    yield "a number beside it", fine and number.placements == (Shard(0),)
    everywhere = shards(log_sigma2.detach(), mesh, Replicate())
    got = value_and_slopes(lt.neg_kl_normal, [leaves[0], everywhere])
    fine = all(map(bits, got, value_and_slopes(lt.neg_kl_normal, plain)))
    yield "a replicated argument beside it", fine and got[0].placements == (Shard(0),)
    said = ""
    try:
        lk.neg_kl_normal(leaves[0], log_sigma2.detach())
    except TypeError as error:
        said = str(error)
    sentence = (
        "mu of type DTensor and log_sigma2 of type Tensor were given together: make both "
        "DTensors, by torch.distributed.tensor.distribute_tensor"
    )
    yield "a plain tensor is refused", said == sentence
    turned = [x.mT for x in leaves]
    got, *_ = value_and_slopes(lt.neg_kl_normal, turned)
    fine = got.placements == (Shard(1),) and got.stride() == turned[0].stride()
    yield "transposed", fine and bits(got, lt.neg_kl_normal(plain[0].mT, plain[1].mT))
    parts = DTensor.from_local(mu.detach() / 2, mesh, [Partial("sum")])
    yield "of a pending sum", near(lt.neg_kl(parts), lt.neg_kl(mu))

    def added(*x):
        return lt.neg_kl_normal(*x, reduction="sum")

    other = shards(log_sigma2.detach(), mesh, Shard(1))
    got = value_and_slopes(lt.kl_normal, [leaves[0], other], reduction="sum")
    wanted = value_and_slopes(lt.kl_normal, plain, reduction="sum")
    fine = all(near(a, b, 2.0**-49) for a, b in zip(got, wanted, strict=True))
    yield "two placements", fine and [x.placements[0] for x in got[1:]] == [Shard(0), Shard(1)]
    steps = torch.ones(SHAPE)
    grad = DTensor.from_local(steps / 2, mesh, [Partial("sum")])
    got = torch.autograd.grad(lt.neg_kl_normal(*leaves), leaves, grad)
    wanted = torch.autograd.grad(lt.neg_kl_normal(*plain), plain, steps)
    yield "a gradient with another placement", all(map(bits, got, wanted))
    square = init_device_mesh("cpu", (2, 1))
    said = ""
    try:
        lt.neg_kl_normal(leaves[0], shards(log_sigma2.detach(), square, Shard(0), Replicate()))
    except RuntimeError as error:
        said = str(error)
    yield "two meshes are refused", said.startswith("DTensors on two meshes were given, mu on ")
    # As RowwiseParallel and fully_shard leave the parameters of a layer.
    given = [
        shards(mu.detach(), square, Shard(0), Shard(1)),
        shards(log_sigma2.detach(), square, Shard(0), Replicate()),
    ]
    got = value_and_slopes(lt.kl_normal, given, reduction="sum")
    fine = all(
        near(a, b, 2.0**-49)
        for a, b in zip(got, value_and_slopes(lt.kl_normal, plain, reduction="sum"), strict=True)
    )
    yield "a mesh of two dimensions", fine

    compiled = torch.compile(added, fullgraph=True, backend="aot_eager")
    slopes = torch.autograd.grad(added(*plain), plain)
    fine = True
    for a, b in zip(torch.autograd.grad(compiled(*leaves), leaves), slopes, strict=True):
        fine &= a.placements == (Shard(0),) and near(a, b, 1e-13)
    yield "compile(value + backward)", fine


def of_kernel(mesh):
    """Whether the kernel ran on the shards."""
    seen = []
    run = _cpu.run
    _cpu.run = lambda ufunc, inputs, outs: (
        seen.append(tuple(inputs[0].shape)) or run(ufunc, inputs, outs)
    )
    lt.neg_kl(shards(*arguments("neg_kl", torch.float64), mesh, Shard(0)))
    _cpu.run = run
    yield "by the kernel", seen == [(4 if dist.get_rank() == 0 else 3, 6)]


def checks(mesh):
    for make in (rows, further, of_kernel):
        yield from make(mesh)
