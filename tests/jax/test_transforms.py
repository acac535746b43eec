"""Every function under every transform of JAX, against derivatives in sixty digits."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax.test_util import check_grads

import logunif_kl as lk
from logunif_kl._arithmetic import derivatives
from logunif_kl.jax import _rules
from tests.derivatives import MU, check_borders
from tests.jax.cases import CASES

# The worst relative errors that were measured at the points, and half as much again, by the order
# of the derivative of -KL.
MEASURED = {
    ("float64", False): (4e-16, 4e-16, 4e-16, 4e-16, 2e-15, 2.5e-14),
    ("float64", True): (4e-16, 4e-16, 8.4e-16, 6.6e-16),
    ("float32", False): (1.2e-7, 1.2e-7, 1.2e-7, 4e-7, 8e-7, 3e-6),
    ("float32", True): (1.2e-7, 1.2e-7, 1.2e-6, 1.5e-6),
}
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
of_each_tower = pytest.mark.parametrize("case", [CASES[0], CASES[4]], ids=lambda case: case.name)


def total(function):
    return lambda *arguments: function(*arguments).sum()


def tangents_along(arguments, i):
    return tuple(jnp.full_like(a, float(j == i)) for j, a in enumerate(arguments))


def value(transform, case, f, arguments):
    yield (0,) * len(arguments), transform(f)(*arguments)


def grad(case, f, arguments):
    for i, unit in enumerate(case.units):
        yield unit, jax.grad(total(f), i)(*arguments)


def vmap_grad(case, f, arguments):
    for i, unit in enumerate(case.units):
        yield unit, jax.vmap(jax.grad(f, i))(*arguments)


def value_and_grad(case, f, arguments):
    everything = tuple(range(len(arguments)))
    got, gradient = jax.jit(jax.vmap(jax.value_and_grad(f, everything)))(*arguments)
    yield (0,) * len(arguments), got
    yield from zip(case.units, gradient, strict=True)


def jvp(case, f, arguments):
    for i, unit in enumerate(case.units):
        got, along = jax.jvp(f, arguments, tangents_along(arguments, i))
        yield (0,) * len(arguments), got
        yield unit, along


def linearize(case, f, arguments):
    got, linear = jax.linearize(f, *arguments)
    yield (0,) * len(arguments), got
    for i, unit in enumerate(case.units):
        yield unit, linear(*tangents_along(arguments, i))


def vjp(case, f, arguments):
    got, pull = jax.vjp(f, *arguments)
    yield (0,) * len(arguments), got
    yield from zip(case.units, pull(jnp.ones_like(got)), strict=True)


def jacobian(transform, case, f, arguments):
    for i, unit in enumerate(case.units):
        matrix = transform(f, i)(*arguments)
        diagonal = jnp.diag(matrix)
        assert (matrix == jnp.diag(diagonal)).all()
        yield unit, diagonal


def hessian(case, f, arguments):
    everything = tuple(range(len(arguments)))
    blocks = jax.vmap(jax.hessian(f, everything))(*arguments)
    for i, a in enumerate(case.units):
        for j, b in enumerate(case.units):
            yield tuple(np.add(a, b).tolist()), blocks[i][j]


def third(case, f, arguments):
    """Reverse over reverse over reverse, in every order of the arguments that there is."""
    n = len(arguments)
    for path in {(0, 0, 0), (0, 0, n - 1), (0, n - 1, n - 1), (n - 1, n - 1, n - 1)}:
        g = f
        for i in path:
            g = jax.grad(total(g), i)
        yield tuple(path.count(i) for i in range(n)), jax.jit(g)(*arguments)


def checkpoint(case, f, arguments):
    remade = jax.checkpoint(f)
    yield (0,) * len(arguments), remade(*arguments)
    yield from grad(case, remade, arguments)
    for i, unit in enumerate(case.units):
        got = jax.grad(total(jax.checkpoint(jax.grad(total(remade), i))), i)(*arguments)
        yield tuple(np.multiply(2, unit).tolist()), got


def scan(case, f, arguments):
    def scanned(*arguments):
        def step(carry, element):
            result = f(*element)
            return carry + result, result

        start = jnp.zeros((), arguments[0].dtype)
        return jax.lax.scan(step, start, arguments)

    yield (0,) * len(arguments), scanned(*arguments)[1]
    for i, unit in enumerate(case.units):
        yield unit, jax.grad(lambda *a: scanned(*a)[0], i)(*arguments)


def export(case, f, arguments):
    exported = jax.export.export(jax.jit(f))(*arguments)
    yield (0,) * len(arguments), exported.call(*arguments)
    yield from grad(case, exported.call, arguments)


TRANSFORMS = {
    "eager": partial(value, lambda f: f),
    "jit": partial(value, jax.jit),
    "vmap": partial(value, jax.vmap),
    "jit(value_and_grad)": value_and_grad,
    "vmap(grad)": vmap_grad,
    "jacfwd": partial(jacobian, jax.jacfwd),
    "jacrev": partial(jacobian, jax.jacrev),
    "grad(grad(grad))": third,
    **{f.__name__: f for f in (grad, jvp, linearize, vjp, hessian, checkpoint, scan, export)},
}


def worst_error(case, transform, dtype):
    """By the order of the derivative of -KL, relative to the truth."""
    arguments = tuple(jnp.asarray(p, dtype) for p in case.points)
    worst = {}
    for orders, got in transform(case, case.function, arguments):
        assert got.dtype == dtype
        truth = case.truth(orders)
        order = sum(orders) + case.order
        error = float(np.max(np.abs(np.asarray(got, "float64") / truth - 1)))
        worst[order] = max(worst.get(order, 0.0), error)
    return worst


def check(case, transform, dtype="float32"):
    for order, error in worst_error(case, TRANSFORMS[transform], dtype).items():
        assert error <= MEASURED[dtype, case.both][order], order


@pytest.mark.parametrize("transform", TRANSFORMS)
class TestRows:
    @by_name
    def test_float32(self, case, transform, capability):
        capability(case.name, transform)
        check(case, transform)

    @of_each_tower
    def test_float64(self, case, transform, capability):
        """The other functions are further orders of these, or have the other sign."""
        capability(case.name, transform)
        with jax.enable_x64(True):
            check(case, transform, "float64")


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@by_name
def test_check_grads(case, mode, capability):
    """Against differences, which need the logarithmic singularity of no argument near."""
    capability(case.name, f"check_grads({mode}, order=3)")
    with jax.enable_x64(True):
        points = tuple(map(jnp.asarray, case.points))
        tolerances = {"atol": 2e-6, "rtol": 2e-6, "eps": 1e-5}
        check_grads(case.function, points, order=3, modes=(mode,), **tolerances)


@pytest.mark.parametrize("case", CASES[-2:], ids=lambda case: case.name)
class TestBroadcasting:
    """The gradient of what is shared is the sum over what shares it."""

    @pytest.mark.parametrize(
        "shapes", [((7,), ()), ((), (7,)), ((7, 1), (1, 7)), ((2, 3, 1), (4,))]
    )
    def test_gradients_are_summed(self, case, shapes):
        with jax.enable_x64(True):
            rng = np.random.default_rng(5)
            mu, log_sigma2 = (jnp.asarray(rng.uniform(-2, 2, shape)) for shape in shapes)
            got = jax.grad(total(case.function), (0, 1))(mu, log_sigma2)
            whole = jnp.broadcast_arrays(mu, log_sigma2)
            each = jax.grad(total(case.function), (0, 1))(*whole)
            for g, e, a in zip(got, each, (mu, log_sigma2), strict=True):
                assert g.shape == a.shape
                summed = e.sum(tuple(range(e.ndim - a.ndim)))
                shared = tuple(i for i in range(a.ndim) if a.shape[i] == 1)
                summed = summed.sum(shared, keepdims=True)
                np.testing.assert_allclose(g, summed, rtol=2e-15)

    def test_in_axes(self, case):
        mu, log_sigma2 = jnp.asarray(MU, "float32"), jnp.float32(-1.0)
        got = jax.vmap(jax.grad(case.function, (0, 1)), (0, None))(mu, log_sigma2)
        assert [g.shape for g in got] == [(7,), (7,)]
        whole = jax.grad(total(case.function), (0, 1))(mu, jnp.full_like(mu, log_sigma2))
        for g, w in zip(got, whole, strict=True):
            np.testing.assert_array_equal(g, w)


class TestOneEvaluation:
    """The value and both gradients of neg_kl_normal cost one pass of the arithmetic."""

    def test_of_value_and_grad(self):
        """Two passes would have twice as many divisions."""

        def divisions(function):
            zeros = jnp.zeros(64, "float32")
            return jax.jit(function).lower(zeros, zeros).compile().as_text().count(" divide(")

        def twice(mu, log_sigma2):
            return [once(mu, log_sigma2), once(log_sigma2, mu)]

        once = _rules._value_and_gradient
        both = jax.value_and_grad(total(CASES[4].function), (0, 1))
        assert divisions(both) == divisions(once) == divisions(twice) / 2 > 0

    def test_nothing_is_computed_for_an_argument_that_is_constant(self, monkeypatch):
        asked = []

        def spy(mu, log_sigma2, *orders):
            asked.append(orders)
            return derivatives.neg_kl_normal_derivative(jnp, mu, log_sigma2, *orders)

        monkeypatch.setattr(_rules, "_in_normal", spy)
        curvature = jax.grad(jax.grad(lambda s: CASES[4].function(1.0, s)))
        assert curvature(0.5).shape == ()
        assert set(asked) == {(1, 1), (0, 2)}


def misleading(function):
    """The same values with a derivative of 1 in the first argument and 0 in the others."""

    def patched(x, *rest):
        results = function(x, *rest)
        wrong = x - jax.lax.stop_gradient(x)
        return jax.tree.map(lambda r: jax.lax.stop_gradient(r) + wrong, results)

    return patched


# Each function with a rule, and what computes it without one: of orders 0, 0 and 1, and 2.
WITHOUT_RULE = {
    "neg_kl": "_value_of_log_alpha",
    "neg_kl_with_gradient": "_value_and_gradient_of_log_alpha",
    "neg_kl_derivative": "_in_log_alpha",
    "neg_kl_normal": "_value",
    "neg_kl_normal_with_gradient": "_value_and_gradient",
    "neg_kl_normal_derivative": "_in_normal",
}


class TestDroppedRule:
    """The arithmetic's own derivative is made wrong, so that a rule that is lost shows."""

    @pytest.fixture
    def wrong_arithmetic(self, monkeypatch):
        for name in WITHOUT_RULE.values():
            monkeypatch.setattr(_rules, name, misleading(getattr(_rules, name)))

    @pytest.mark.parametrize("transform", [t for t in TRANSFORMS if t != "export"])
    @of_each_tower
    @pytest.mark.usefixtures("wrong_arithmetic")
    def test_rules_serve_every_transform(self, case, transform, capability):
        capability(case.name, f"{transform}, over arithmetic with a wrong derivative")
        check(case, transform)

    @pytest.mark.parametrize("rule", WITHOUT_RULE)
    def test_each_step_of_the_tower(self, rule, monkeypatch):
        """A rule that is lost at any order shows at the next."""
        monkeypatch.setattr(_rules, rule, misleading(getattr(_rules, WITHOUT_RULE[rule])))
        case = CASES[4 if "normal" in rule else 0]
        assert worst_error(case, third, "float32")[3] > 0.1


def test_where_tables_end():
    def derivative(orders, *arguments):
        function = lk.neg_kl_normal
        for index, order in enumerate(orders):
            for _ in range(order):
                function = jax.grad(total(function), index)
        return jax.jit(function)(*arguments)

    with jax.enable_x64(True):
        check_borders(derivative)
