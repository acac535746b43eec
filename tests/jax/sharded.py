"""What `test_sharding` runs with eight devices. It prints as JSON whether each check holds."""

import json
import sys
from contextlib import nullcontext
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import logunif_kl as lk
import logunif_kl.jax as lj
from logunif_kl.jax import _custom_call

DEVICES = np.array(jax.devices())
UNARY = ("neg_kl", "neg_kl_grad", "neg_kl_hess", "kl")
SPEC = PartitionSpec("rows", "columns")


def arguments(name):
    rng = np.random.default_rng(11)
    x = rng.uniform(-9, 9, (64, 128)).astype("float32")
    return (x,) if name in UNARY else (x, rng.uniform(-9, 9, (64, 128)).astype("float32"))


def total(function):
    return lambda *a: function(*a).sum()


def transforms(name, n):
    everything = tuple(range(n))
    function = getattr(lj, name)
    yield "eager", function
    yield "dispatched", getattr(lk, name)
    yield "jit", jax.jit(function)
    yield "grad", jax.grad(total(function), everything)
    yield "jit(grad)", jax.jit(jax.grad(total(function), everything))
    yield "jit(grad(grad))", jax.jit(jax.grad(total(jax.grad(total(function)))))


def term_of(label, given):
    """What d^2/dmu^2 = (4 D^2 + 2 D)(-KL)/mu^2 has for its second term, D = d/dlog_alpha."""
    if label != "jit(grad(grad))" or len(given) < 2:
        return 0
    mu, log_sigma2 = given
    return 2 * lk.neg_kl_grad(log_sigma2 - 2 * np.log(np.abs(mu))) / mu**2


def agree(got, alone, sharding, ulps=0, term=0):
    """The same sharding, and the same numbers as on one device.

    Or up to so many units in the last place of the number and a ``term`` of the sum that it is.
    """
    return all(
        g.sharding.is_equivalent_to(sharding, g.ndim)
        and len({shard.device for shard in g.addressable_shards}) == 8
        and bool((np.abs(np.subtract(g, a)) <= ulps * np.spacing(np.abs(a) + term)).all())
        for g, a in zip(jax.tree.leaves(got), map(np.asarray, jax.tree.leaves(alone)), strict=True)
    )


def says_where_arrays_are():
    """An error names the devices of two arrays, eager, of one shape or not."""
    first, second = (jax.device_put(jnp.ones((2, 3)), device) for device in DEVICES[:2])
    sentence = (
        f"mu is on {DEVICES[0]} and log_sigma2 is on {DEVICES[1]}: move one with jax.device_put, "
        "so that both are on the same devices"
    )
    for pair in ((first, second), (first, second[0]), (first[0], second)):
        try:
            lk.neg_kl_normal(*pair)
        except ValueError as error:
            if str(error) != sentence:
                return False
        else:
            return False
    # An array that is on a device by default only goes where the other is.
    return lk.neg_kl_normal(second, jnp.ones((2, 3))).devices() == {DEVICES[1]}


# One device calls the kernels of C. XLA divides the arrays of eight only where it compiles plain
# operations, which round otherwise. The most that was found, in ulp.
BY_C_ULP = 3


def functions_of_sharded(grid, check, names, calls):
    # XLA gets another program with explicit axes, and fuses other multiplications with additions in
    # it. With the usual axes the bits are the same.
    ulps = {AxisType.Auto: BY_C_ULP if calls else 0, AxisType.Explicit: BY_C_ULP if calls else 2}
    meshes = {kind: Mesh(grid, ("rows", "columns"), axis_types=(kind, kind)) for kind in ulps}
    for name in names:
        given = arguments(name)
        one = [jax.device_put(a, DEVICES[0]) for a in given]
        for label, transformed in transforms(name, len(given)):
            alone, term = transformed(*one), term_of(label, given)
            for kind, mesh in meshes.items():
                sharding = NamedSharding(mesh, SPEC)
                sharded = [jax.device_put(a, sharding) for a in given]
                # Explicit axes want their mesh around whatever JAX compiles, jax.grad of exp too.
                with jax.set_mesh(mesh) if kind is AxisType.Explicit else nullcontext():
                    got = transformed(*sharded)
                row = f"{kind.name.lower()} axes"
                label += ", C on one device" if calls else ""
                check(name, row, label, agree(got, alone, sharding, ulps[kind], term))


def main():
    by_c = _custom_call.why_not() is None
    rows = {}

    def check(name, row, label, holds):
        rows.setdefault(f"{name}:jax:eight devices, {row}", {})[label] = bool(holds)

    grid = DEVICES.reshape(4, 2)
    normal = ("neg_kl_normal", "kl_normal")
    least, _custom_call.LEAST_ELEMENTS = _custom_call.LEAST_ELEMENTS, sys.maxsize
    functions_of_sharded(grid, check, (*UNARY, *normal), calls=False)
    _custom_call.LEAST_ELEMENTS = least
    jax.clear_caches()
    if by_c:
        functions_of_sharded(grid, check, normal, calls=True)
    check = partial(check, "neg_kl_normal")
    mesh = Mesh(grid, ("rows", "columns"))
    sharding = NamedSharding(mesh, SPEC)
    mu, log_sigma2 = arguments("neg_kl_normal")
    sharded = [jax.device_put(a, sharding) for a in (mu, log_sigma2)]
    alone = lj.neg_kl_normal(mu, log_sigma2)
    mapped = jax.shard_map(lj.neg_kl_normal, mesh=mesh, in_specs=(SPEC, SPEC), out_specs=SPEC)
    check("shard_map", "", agree(jax.jit(mapped)(*sharded), alone, sharding))

    @partial(jax.shard_map, mesh=mesh, in_specs=(SPEC, SPEC), out_specs=PartitionSpec())
    def reduced(m, s):
        return jax.lax.psum(lj.neg_kl_normal(m, s, reduction="sum"), ("rows", "columns"))

    truth = lk.neg_kl_normal(mu.astype("float64"), log_sigma2.astype("float64")).sum()
    got = jax.grad(lambda m, s: reduced(m, s), (0, 1))(*sharded)
    single = jax.grad(lambda m, s: lj.neg_kl_normal(m, s, reduction="sum"), (0, 1))(mu, log_sigma2)
    check("grad(shard_map)", "", agree(got, single, sharding))
    for label, total_of in (
        ("shard_map(sum)", reduced),
        ("sum", partial(lj.neg_kl_normal, reduction="sum")),
        ("jit(sum)", jax.jit(partial(lj.neg_kl_normal, reduction="sum"))),
    ):
        check(label, "", abs(float(total_of(*sharded)) / truth - 1) < 1e-6)
    # A device that holds a row of means and all variances of a column: broadcasting, sharded.
    row = jax.device_put(log_sigma2[:1], NamedSharding(mesh, PartitionSpec(None, "columns")))
    whole = lj.neg_kl_normal(mu, log_sigma2[:1])
    got = jax.jit(lj.neg_kl_normal)(sharded[0], row)
    check("broadcast", "", agree(got, whole, sharding, BY_C_ULP if by_c else 0))
    gradient = jax.jit(jax.grad(lambda s: lj.neg_kl_normal(sharded[0], s, reduction="sum")))(row)
    expected = jax.grad(lambda s: lj.neg_kl_normal(mu, s, reduction="sum"))(
        jnp.asarray(log_sigma2[:1])
    )
    fine = np.allclose(gradient, expected, rtol=2e-6) and gradient.shape == (1, 128)
    check("grad of broadcast", "", fine)
    # XLA would gather the parts to call a function that it does not know.
    for program, function, kernels in (
        ("divided by XLA", jax.grad(total(lj.kl_normal), (0, 1)), []),
        ("shard_map", mapped, ["value"]),
        ("grad(shard_map)", jax.grad(lambda m, s: reduced(m, s), (0, 1)), ["gradient"]),
        # the same jitted function inside and outside of a shard_map
        ("both", lambda m, s: mapped(m, s) + lj.neg_kl_normal(m, s), ["value"]),
    ):
        text = jax.jit(function).lower(*sharded).compile().as_text()
        words = ("all-gather", "logunif_kl.value", "logunif_kl.gradient")
        called = [word for word in words if word in text]
        expected = [f"logunif_kl.{name}" for name in kernels] if by_c else []
        way = "C" if kernels and by_c else "XLA"
        check(f"{program}, by {way}", f"calls {called}", called == expected)
    # That agreement is not found everywhere.
    kept = lj.neg_kl_normal(*sharded)
    off = jnp.nextafter(kept, jnp.inf)
    others = {
        "devices": len(DEVICES) == 8,
        "control of the sharding": not agree(jax.device_put(kept, DEVICES[0]), kept, sharding),
        "control of the bits": not agree(off, kept, sharding) and agree(off, off, sharding),
        "errors": says_where_arrays_are(),
    }
    json.dump({"rows": rows, "others": others}, sys.stdout)
