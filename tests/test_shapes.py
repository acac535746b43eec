"""Functions of NumPy and PyTorch, and layers, over shapes, strides, types and derivatives.

The truth is what NumPy's float64 functions return for contiguous arrays. Shapes that do not fit are
refused in one sentence. With ``--hypothesis-profile thorough`` the tests draw 10,000 examples each.
Each buffer ends at the last element of its array, so a sanitizer finds an access to the next one.
"""

import re
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import logunif_kl as lk

LENGTHS = (0, 1, 2, 3, 4, 7, 17, 33, 70)
LAYOUTS = ("plain", "transposed", "sliced", "cut", "offset", "expanded")
# The relative error of an element near 1; a gradient is a sum of products.
RTOL = {"float64": 1e-9, "float32": 5e-4, "float16": 3e-2, "bfloat16": 0.15}
REFUSED = (
    "{} of shape {} and {} of shape {} do not broadcast: each pair of lengths must be equal or "
    "include a 1"
)

seeds = st.integers(0, 2**32 - 1)
layouts = st.sampled_from(LAYOUTS)
shapes = st.lists(st.sampled_from(LENGTHS), max_size=3).map(tuple).filter(lambda s: prod(s) < 3000)
shapes = st.one_of(*(shapes.map(tuple) for _ in range(7)), st.sampled_from([(5000,), (300, 20)]))


@st.composite
def near(draw, shape):
    """A shape that often broadcasts to another: fewer axes, lengths of 1 or a wrong length."""
    seldom = st.integers(0, 4)
    found = list(shape)
    for axis, length in enumerate(shape):
        if not draw(seldom):
            found[axis] = draw(st.sampled_from((1, 1, 1, 2, length + 1)))
    if not draw(seldom):
        found = found[draw(st.integers(0, len(found))) :]
    return tuple(found if draw(seldom) else found[::-1])


def strides_of(shape, layout):
    """The strides in elements, the offset, and the number of elements up to the last one."""
    lengths = [n + (layout == "cut") for n in shape]
    order = range(len(shape)) if layout == "transposed" else reversed(range(len(shape)))
    strides, step = [0] * len(shape), 2 if layout == "sliced" else 1
    for axis in order:
        if layout == "expanded" and axis == len(shape) - 1:
            continue
        strides[axis] = step
        step *= lengths[axis]
    offset = 3 if layout == "offset" else 0
    if not prod(shape):
        return strides, 0, 0
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return strides, offset, offset + last + 1


def values(seed, shape, layout, low=-40, high=40):
    """Float64 numbers that bfloat16 holds, none of them 0; equal along an expanded axis."""
    rng = np.random.default_rng(seed)
    found = rng.integers(low, high, shape) / 8 + 1 / 16
    if layout == "expanded" and found.ndim:
        found[...] = found[..., :1]
    return np.asarray(found)


def in_numpy(given, layout, dtype):
    strides, offset, size = strides_of(given.shape, layout)
    base = np.empty(size, dtype)
    strides = [base.itemsize * s for s in strides]
    found = np.lib.stride_tricks.as_strided(base[offset:], given.shape, strides)
    found[...] = given
    return found


def in_torch(given, layout, dtype, requires_grad=True):
    import torch

    kind = getattr(torch, dtype)
    strides, offset, size = strides_of(given.shape, layout)
    # NumPy can write to elements that share memory, and PyTorch cannot.
    whole = np.zeros(size)
    strides_in_bytes = [8 * s for s in strides]
    np.lib.stride_tricks.as_strided(whole[offset:], given.shape, strides_in_bytes)[...] = given
    base = torch.from_numpy(whole).to(kind, copy=True)
    return base.as_strided(given.shape, strides, offset).requires_grad_(requires_grad)


def check_close(got, truth, dtype):
    got, truth = (
        x.detach().double().numpy() if hasattr(x, "detach") else np.asarray(x, "float64")
        for x in (got, truth)
    )
    assert got.shape == truth.shape
    assert (np.abs(got - truth) <= RTOL[dtype] * np.maximum(np.abs(truth), 1.0)).all()


def summed(x, shape):
    """The gradient of an array that was broadcast, from those of the elements."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return x.sum(axes, keepdims=True)


def check_no_broadcast(kind, mu, log_sigma2, function):
    words = REFUSED.format("mu", mu.shape, "log_sigma2", log_sigma2.shape)
    with pytest.raises(kind, match=f"^{re.escape(words)}$"):
        function()


def broadcast(arrays):
    """The shape to which arrays broadcast, if there is one."""
    try:
        return np.broadcast_shapes(*(x.shape for x in arrays))
    except ValueError:
        return None


def fits(shape, to):
    return broadcast((np.empty(shape), np.empty(to))) == tuple(to)


def called(name, *extra):
    """A call of the function of this name in a framework's module, with further arguments."""

    def call(module, *arguments, **options):
        place = module.isotropic if "complex" in name or "vector" in name else module
        for other in (lk.log_alpha, lk.special):
            place = other if hasattr(other, name) else place
        return getattr(place, name)(*arguments, *extra, **options)

    return call


ONE = {
    name: called(name, *(3,) * ("vector" in name))
    for name in (
        *("neg_kl", "kl", "neg_kl_grad", "neg_kl_hess", "to_alpha", "to_u", "to_dropout_rate"),
        *("neg_kl_complex", "kl_complex", "neg_kl_complex_grad", "neg_kl_complex_hess"),
        *("neg_kl_vector", "kl_vector", "neg_kl_vector_grad"),
    )
}
TWO = {
    name: called(name)
    for name in (
        *("neg_kl_normal", "kl_normal", "neg_kl_complex_normal", "kl_complex_normal"),
        "from_normal",
    )
}
OF_U = {name: called(name) for name in ("kl_gap", "kl_gap_grad", "kl_gap_hess")}
SLOPE = {"neg_kl": lk.neg_kl_grad, "neg_kl_grad": lk.neg_kl_hess}
DTYPES = ("float64", "float32", "float16")

one_array = st.tuples(seeds, shapes, layouts)
two_arrays = shapes.flatmap(
    lambda shape: st.tuples(seeds, st.just(shape), near(shape), layouts, layouts, st.booleans())
)


def two_values(drawn):
    """Means and logarithms of variances of the shapes that were drawn, in either order."""
    seed, first, second, *kinds, swapped = drawn
    if swapped:
        first, second = second, first
    mu = values(seed, first, kinds[0])
    return mu, values(seed + 1, second, kinds[1], -30, 30), kinds


def of_normal(mu, log_sigma2):
    """-KL with its derivatives: in mu, in log_sigma2; in mu twice, in both, in log_sigma2 twice."""
    mu, log_sigma2 = (x.copy() for x in np.broadcast_arrays(mu, log_sigma2))
    x = lk.log_alpha.from_normal(mu, log_sigma2)
    slope, bend = lk.neg_kl_grad(x), lk.neg_kl_hess(x)
    second = 4 * bend / mu**2 + 2 * slope / mu**2, -2 * bend / mu, bend
    return lk.neg_kl(x), -2 * slope / mu, slope, *second


@given(one_array, st.sampled_from([*ONE, *OF_U]), st.sampled_from(DTYPES))
def test_numpy_of_one_argument(drawn, name, dtype):
    seed, shape, layout = drawn
    x, function = values(seed, shape, layout), (ONE | OF_U)[name]
    x = abs(x) if name in OF_U else x
    got = function(lk, in_numpy(x, layout, dtype))
    assert got.dtype == dtype
    check_close(got, function(lk, x.copy()), dtype)


@given(two_arrays, st.sampled_from(sorted(TWO)), st.sampled_from(list(product(DTYPES, DTYPES))))
def test_numpy_of_two_arguments(drawn, name, types):
    mu, log_sigma2, kinds = two_values(drawn)
    given_ = list(map(in_numpy, (mu, log_sigma2), kinds, types))
    shape = broadcast((mu, log_sigma2))
    if shape is None:
        check_no_broadcast(ValueError, mu, log_sigma2, lambda: TWO[name](lk, *given_))
        with pytest.raises(ValueError, match="broadcast"):
            lk.special.neg_kl_normal_and_grad(*given_)
        return
    least = min(types, key=lambda dtype: np.finfo(dtype).bits)
    dense = [np.broadcast_to(x, shape).copy() for x in (mu, log_sigma2)]
    check_close(TWO[name](lk, *given_), TWO[name](lk, *dense), least)
    if name != "from_normal" and prod(shape):
        got = TWO[name](lk, *given_, reduction="mean")
        check_close(got, np.mean(TWO[name](lk, *dense)), least)
    three = lk.special.neg_kl_normal_and_grad(*given_)
    for got, truth in zip(three, of_normal(*dense)[:3], strict=True):
        check_close(got, truth, least)


@pytest.fixture(scope="module")
def lt():
    pytest.importorskip("torch")
    import logunif_kl.torch
    import logunif_kl.torch.isotropic

    return logunif_kl.torch


@given(one_array, st.sampled_from(sorted(ONE)), st.sampled_from(sorted(RTOL)))
def test_torch_of_one_argument(lt, drawn, name, dtype):
    seed, shape, layout = drawn
    x = values(seed, shape, layout)
    found = in_torch(x, layout, dtype)
    got = ONE[name](lt, found)
    assert got.dtype == found.dtype
    check_close(got, ONE[name](lk, x.copy()), dtype)
    if name in SLOPE:
        got.sum().backward()
        check_close(found.grad, SLOPE[name](x.copy()), dtype)


def torch_arguments(drawn, types):
    *exact, kinds = two_values(drawn)
    return exact, list(map(in_torch, exact, kinds, types))


types = st.sampled_from(list(product(sorted(RTOL), sorted(RTOL))))


@given(two_arrays, types, st.sampled_from(sorted(TWO)), st.sampled_from(("none", "sum", "mean")))
def test_torch_of_two_arguments(lt, drawn, types, name, reduction):
    exact, found = torch_arguments(drawn, types)
    options = {} if name == "from_normal" else {"reduction": reduction}
    shape = broadcast(exact)
    if shape is None:
        check_no_broadcast(RuntimeError, *exact, lambda: TWO[name](lt, *found, **options))
        return
    assume(prod(shape) or reduction != "mean")
    least = max(types, key=RTOL.get)
    got = TWO[name](lt, *found, **options)
    truth = TWO[name](lk, *(np.broadcast_to(x, shape).copy() for x in exact))
    if options and reduction != "none":
        truth = getattr(np, reduction)(truth)
        got, truth = got / max(abs(truth), 1), truth / max(abs(truth), 1)
    check_close(got, truth, least)


@given(two_arrays, types, st.booleans(), st.integers(1, 2))
def test_torch_derivatives(lt, drawn, types, added, order):
    """Derivatives of -KL in both parameters; the second ones along random directions."""
    import torch

    exact, found = torch_arguments(drawn, types)
    shape = broadcast(exact)
    assume(shape is not None)
    least = max(types, key=RTOL.get)
    factor = values(drawn[0] + 2, shape, "plain", -8, 8)
    factor_of = torch.from_numpy(np.array(1.0) if added else factor)
    got = lt.neg_kl_normal(*found, reduction="sum" if added else "none")
    factor = np.ones(shape) if added else factor
    first = torch.autograd.grad(
        got, found, factor_of.to(got.dtype).requires_grad_(), create_graph=order > 1
    )
    _, d_mu, d_log, *second = of_normal(*exact)
    if order == 1:
        truth = factor * d_mu, factor * d_log
    else:
        along = [values(drawn[0] + 3 + i, x.shape, "plain", -8, 8) for i, x in enumerate(exact)]
        pairs = zip(first, along, strict=True)
        dot = sum((g.double() * torch.from_numpy(v)).sum() for g, v in pairs)
        first = torch.autograd.grad(dot, found)
        twice, both, last = second
        a, b = along
        truth = factor * (twice * a + both * b), factor * (both * a + last * b)
    for g, t, x in zip(first, truth, exact, strict=True):
        size = max(np.abs(summed(np.abs(t), x.shape)).max(initial=1.0), 1.0)
        check_close(g / size, summed(t, x.shape) / size, least)


# The shapes of the layers' weights. Linear layers and embeddings also have other shapes.
KINDS = {
    "linear": (2, 3),
    "conv1d": (2, 2, 2),
    "conv2d": (2, 2, 2, 2),
    "conv3d": (2, 1, 1, 3, 1),
    "embedding": (4, 2),
}
POSTERIORS = ("additive", "weight", "output", "input", "layer", "correlated, input")
POSTERIORS = (*POSTERIORS, "correlated, layer")
PADDING = 1


@st.composite
def layers(draw):
    """The kind, posterior, types and layouts of a layer, and the shapes of its parameters."""
    kind, posterior = draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(POSTERIORS))
    shape = KINDS[kind]
    if len(shape) == 2:
        least = 4 if kind == "embedding" else 1
        rows, columns = draw(st.sampled_from((least, 5, 9, 40))), draw(st.sampled_from((1, 3, 17)))
        shape = draw(st.sampled_from(((rows, columns), shape)))
    own = own_shape(kind, posterior, shape)
    given = draw(near(draw(st.sampled_from((own, shape, KINDS[kind])))))
    assume(fits(given, own if posterior.startswith("correlated") else shape))
    return (
        *(draw(seeds), kind, posterior, shape, given),
        (draw(st.sampled_from(sorted(RTOL))), draw(layouts)),
        (draw(st.sampled_from(sorted(RTOL))), draw(layouts)),
    )


def own_shape(kind, posterior, shape):
    """The shape of the second parameter that the layer itself makes."""
    if posterior in ("additive", "weight"):
        return shape
    units = {"input": 0, "output": 1} if kind == "embedding" else {"input": 1, "output": 0}
    kept = units.get(posterior.removeprefix("correlated, "))
    return tuple(n if i == kept else 1 for i, n in enumerate(shape))


class Layer:
    """A layer with replaced parameters, and the truth about it."""

    def __init__(self, drawn, sharing=None, estimator="local", dense=None):
        import torch

        from logunif_kl.torch import nn
        from tests.torch.nn.cases import CASES
        from tests.torch.nn.cases import POSTERIORS as OPTIONS

        seed, self.kind, self.posterior, shape, self.given, *types = drawn
        posterior = OPTIONS[self.posterior]
        if sharing is not None and posterior.relative:
            posterior = replace(posterior, sharing=sharing)
        options = {"posterior": posterior, "estimator": estimator}
        case = CASES[self.kind]
        options |= case.options | ({} if self.kind == "embedding" else {"bias": False})
        self.layer = layer = case.layer(*case.arguments, **options)
        self.name = "log_sigma2" if self.posterior == "additive" else "log_alpha"
        self.weight = values(seed, shape, types[0][1], -16, 16)
        self.spread = values(seed + 1, self.given, types[1][1], -32, 0)
        self.own = own_shape(self.kind, self.posterior, shape)
        self.correlated = self.posterior.startswith("correlated")
        self.to = self.own if self.correlated else shape
        self.dtype = max((dtype for dtype, _ in types), key=RTOL.get)
        self.weight_type = types[0][0]
        put = {"weight": (self.weight, types[0]), self.name: (self.spread, types[1])}
        for name, (x, (dtype, layout)) in put.items():
            if dense is not None and name != "weight":
                x, layout = np.broadcast_to(x, dense).copy(), "plain"
            found = in_torch(x, layout, dtype, requires_grad=False)
            setattr(layer, name, torch.nn.Parameter(found))
        self.nn = nn

    def input(self, seed):
        import torch

        if self.kind == "embedding":
            return torch.tensor([[1, 3, 3], [0, 2, 1]])
        shape = {"linear": (self.weight.shape[1],), "conv1d": (4, 3), "conv2d": (2, 3, 4)}
        shape = (2, *shape.get(self.kind, (1, 1, 3, 2)))
        return in_torch(values(seed, shape, "plain", -8, 8), "plain", self.weight_type)

    def true_kl(self):
        """KL of each weight or scale, and its derivatives in the weight and the second."""
        spread = np.broadcast_to(self.spread, self.to)
        if self.posterior == "additive":
            value, d_weight, d_spread, *_ = of_normal(self.weight, spread)
        else:
            value, d_spread = lk.neg_kl(spread.copy()), lk.neg_kl_grad(spread.copy())
            d_weight = np.zeros(self.weight.shape)
        count = np.ones(self.to)
        if self.kind == "embedding":
            rows = np.arange(len(self.weight))[:, None] != PADDING
            if self.posterior == "correlated, layer":
                count *= len(self.weight) - 1
            else:
                count = count * rows
                d_weight = d_weight * (1 if self.correlated else rows)
        elif self.correlated:
            groups = getattr(self.layer, "groups", 1)
            count *= groups * (self.weight.shape[1] if self.posterior.endswith("layer") else 1)
        return -value * count, -d_weight, -d_spread * count

    def log_alpha(self):
        spread = np.broadcast_to(self.spread, self.weight.shape)
        if self.posterior == "additive":
            spread = lk.log_alpha.from_normal(self.weight, spread)
        if self.kind == "embedding":
            spread = np.where(np.arange(len(spread))[:, None] == PADDING, -np.inf, spread)
        return spread


@given(layers())
def test_kl_of_layers(lt, drawn):
    layer = Layer(drawn)
    got = layer.nn.kl(layer.layer)
    got.backward()
    value, d_weight, d_spread = layer.true_kl()
    dtype = "float64" if layer.dtype == "float64" else "float32"
    size = max(value.sum(), 1.0)
    check_close(got / size, value.sum() / size, dtype)
    spread = getattr(layer.layer, layer.name)
    size = max(np.abs(d_spread).sum(), 1.0)
    check_close(spread.grad / size, summed(d_spread, layer.given) / size, layer.dtype)
    if layer.posterior == "additive":
        check_close(layer.layer.weight.grad, d_weight, layer.dtype)


@given(layers(), seeds, st.sampled_from(("local", "per_example", "per_batch")))
def test_outputs_of_layers(lt, drawn, seed, estimator):
    """They equal those of a layer whose second parameter is contiguous and not shared.

    The noise of weights is drawn in the order of their memory, so the weight keeps its strides.
    """
    import torch

    layer = Layer(drawn, estimator=estimator)
    own = own_shape(layer.kind, "correlated, input", layer.weight.shape)
    dense = own if layer.correlated else layer.to
    sharing = "input" if layer.correlated else "weight"
    twin = Layer(drawn, sharing=sharing, estimator=estimator, dense=dense)
    found = []
    for each in (layer, twin):
        x = each.input(seed)
        torch.manual_seed(seed)
        y = each.layer(x)
        (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype)).sum().backward()
        found.append([y, each.layer.weight.grad, getattr(each.layer, each.name).grad])
        if x.is_floating_point():
            found[-1].append(x.grad)
    found[1][2] = found[1][2].sum_to_size(layer.given)
    for got, truth in zip(*found, strict=True):
        size = max(truth.abs().max(), 1.0) if truth.numel() else 1.0
        check_close(got / size, truth / size, layer.dtype)


@given(layers())
def test_functions_of_layers(lt, drawn):
    """Log alpha, the counts of weights, and the moments of outputs."""
    layer = Layer(drawn)
    nn, model, threshold = layer.nn, layer.layer, 1.03
    log_alpha = layer.log_alpha()
    found = nn.log_alpha(model)[""].clamp(min=-99)
    check_close(found, np.maximum(log_alpha, -99), layer.dtype)
    assume(np.min(np.abs(log_alpha - threshold)) > 0.05)
    kept = log_alpha <= threshold
    assert nn.sparsity(model, threshold).kept == kept.sum()
    x = layer.input(2)
    of_weights = layer.kind != "embedding" and not layer.correlated
    if of_weights and layer.dtype in ("float32", "float64"):
        found = nn.moments(model, x)
        truth = nn.moments(Layer(drawn, sharing="weight", dense=layer.to).layer, x)
        check_close(found.variance, truth.variance, layer.dtype)
    sparse = nn.to_sparse(model, threshold, drop_units=False)
    check_close(sparse(x), nn.to_deterministic(model, threshold).eval()(x), layer.dtype)
    nn.prune(model, threshold)
    assert (model.weight_mask.bool().numpy() == kept).all()
    if not layer.correlated:
        value = (layer.true_kl()[0] * kept).sum()
        check_close(nn.kl(model) / max(value, 1), value / max(value, 1), layer.dtype)
