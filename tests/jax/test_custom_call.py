"""The C kernels in programs of XLA: where they are called, and what they compute."""

import ast
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

import logunif_kl as lk
import logunif_kl.jax as lj
from logunif_kl.jax import _custom_call, _internals
from tests.child import output
from tests.jax.cases import CASES
from tests.jax.test_transforms import TRANSFORMS, check, tangents_along, total
from tests.jax.test_values import assert_within, golden_rows

NEVER = sys.maxsize
NORMAL = [case for case in CASES if case.both]
needs_c = pytest.mark.skipif(
    _custom_call.why_not() is not None, reason="the C kernels are not in use for JAX"
)


@pytest.fixture
def call_from():
    """Set from how many elements on C is called, for programs that are compiled afresh."""

    def set_to(least):
        _custom_call.LEAST_ELEMENTS = least
        jax.clear_caches()

    usual = _custom_call.LEAST_ELEMENTS
    yield set_to
    set_to(usual)


@pytest.fixture(scope="class")
def from_one():
    """Call C for every size in the tests of a class, which may reuse each other's programs."""
    usual, _custom_call.LEAST_ELEMENTS = _custom_call.LEAST_ELEMENTS, 1
    jax.clear_caches()
    yield
    _custom_call.LEAST_ELEMENTS = usual
    jax.clear_caches()


def counted(function):
    """Return the result, and how many computations were lowered to C and to XLA meanwhile."""
    before = _custom_call.lowered()
    result = jax.block_until_ready(function())
    after = _custom_call.lowered()
    return result, {way: after.get(way, 0) - before.get(way, 0) for way in ("C", "XLA")}


def sample(size, seed=0):
    rng = np.random.default_rng(seed)
    mu, log_sigma2 = rng.normal(size=size), rng.uniform(-9, 3, size)
    return jnp.asarray(mu, "float32"), jnp.asarray(log_sigma2, "float32")


both = jax.value_and_grad(total(lj.neg_kl_normal), (0, 1))


def each_with_its_slopes(function):
    return jax.jit(jax.vmap(jax.value_and_grad(function, (0, 1))))


def assert_close(got, expected):
    for g, e in zip(*map(jax.tree.leaves, (got, expected)), strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-6)


@needs_c
@pytest.mark.usefixtures("from_one")
@pytest.mark.parametrize("case", NORMAL, ids=lambda case: case.name)
class TestRows:
    @pytest.mark.parametrize("transform", TRANSFORMS)
    def test_by_c(self, case, transform, capability):
        """However few the elements are."""
        # What is exported may run anywhere, and there is no kernel for the third derivatives.
        way = "XLA" if transform in ("export", "grad(grad(grad))") else "C"
        capability(case.name, f"{transform}, by {way}")
        _, ways = counted(lambda: check(case, transform))
        # Nothing is lowered if another test has compiled the same program.
        assert ways["XLA" if way == "C" else "C"] == 0
        assert ways["C"] > 0 or transform not in ("jit", "jit(value_and_grad)")

    def test_pmap(self, case, capability):
        capability(case.name, "pmap, by C")
        arguments = tuple(a[None] for a in sample(1000))
        got, ways = counted(partial(jax.pmap(case.function), *arguments))
        np.testing.assert_array_equal(got[0], case.function(*(a[0] for a in arguments)))
        assert ways["C"] > 0


@needs_c
class TestValues:
    def test_golden(self, call_from):
        call_from(1)
        arguments, truths = golden_rows("neg_kl_normal", "float32")
        program = each_with_its_slopes(lj.neg_kl_normal)
        (value, slopes), ways = counted(partial(program, *map(jnp.asarray, arguments)))
        assert ways == {"C": 1, "XLA": 0}
        for got, truth in zip((value, *slopes), truths, strict=True):
            assert_within(got, truth, 4)

    @pytest.mark.parametrize("pool", [False, True])
    def test_where_xla_flushes(self, pool, call_from):
        """On a thread of the pool or the caller's: as plain operations but for flushed results."""
        rng = np.random.default_rng(3)
        size = 40 * 16384 if pool else 16000
        mu = (np.exp2(rng.uniform(-149, 127, size)) * rng.choice([-1, 1], size)).astype("f4")
        log_sigma2 = 2 * np.log(np.abs(mu, dtype="f8")) + rng.uniform(-99, 99, size)
        log_sigma2 = np.where(rng.random(size) < 0.3, rng.uniform(-200, 200, size), log_sigma2)
        log_sigma2 = log_sigma2.astype("f4")
        normal = np.abs(mu) >= 2.0**-126
        results = []
        for least in (1, NEVER):
            call_from(least)
            results.append(each_with_its_slopes(lj.neg_kl_normal)(mu, log_sigma2))
        for by_c, by_xla in zip(*map(jax.tree.leaves, results), strict=True):
            c, x = np.asarray(by_c)[normal], np.asarray(by_xla)[normal]
            with np.errstate(invalid="ignore"):
                near = np.abs(c - x) <= 4 * np.spacing(np.abs(x))
            flushed = (x == 0.0) & (np.abs(c) < 2.0**-126) & (np.signbit(c) == np.signbit(x))
            assert (near | (c == x) | flushed).all()
            assert (c[flushed] != 0.0).any()

    def test_subnormal_arguments(self, call_from):
        """They count as 0 or as what they are, as documented."""
        call_from(1)
        mu, log_sigma2 = jnp.full(8, 1e-40, "float32"), jnp.full(8, -184.0, "float32")
        value = np.asarray(lj.neg_kl_normal(mu, log_sigma2))
        truth = lk.neg_kl_normal(float(mu[0]), -184.0)
        assert ((value == 0) | np.isclose(value, truth, rtol=4 * 2.0**-23)).all()

    def test_many_programs_at_once(self):
        """Each shares its work with the pool in which the others run."""
        arguments = sample(20 * 16384)
        program = jax.jit(lambda m, s: [jax.grad(total(lj.kl_normal))(m + i, s) for i in range(4)])
        truth = jax.block_until_ready(program(*arguments))

        def run(_):
            return [bool((g == t).all()) for g, t in zip(program(*arguments), truth, strict=True)]

        with ThreadPoolExecutor(6) as pool:
            assert all(map(all, pool.map(run, range(30))))


def compiled(function):
    return jax.jit(function).lower(*sample(1000)).compile().as_text()


@needs_c
class TestLowering:
    def test_from_so_many_elements_on(self, call_from):
        call_from(_custom_call.LEAST_ELEMENTS)
        for missing, way in ((1, {"C": 0, "XLA": 1}), (0, {"C": 1, "XLA": 0})):
            arguments = sample(_custom_call.LEAST_ELEMENTS - missing)
            assert counted(partial(lj.kl_normal, *arguments))[1] == way

    def test_of_other_types(self, call_from):
        call_from(1)
        with jax.enable_x64(True):
            m, s = (a.astype("float64") for a in sample(1000))
            _, ways = counted(lambda: both(m, s))
        assert not any(ways.values())
        half = tuple(a.astype("bfloat16") for a in sample(1000))
        _, ways = counted(lambda: both(*half))
        assert ways["C"] > 0

    @pytest.mark.parametrize(
        ("function", "called"),
        [
            (lj.kl_normal, {"value"}),
            (lambda m, s: both(m, s)[0], {"value"}),
            (lambda m, s: both(m, s)[1], {"gradient"}),
            (both, {"value_and_gradient"}),
            (jax.grad(jax.checkpoint(total(lj.kl_normal))), {"gradient"}),
            (lambda m, s: lj.kl(s), {"log_alpha_value"}),
            (lambda m, s: jax.grad(total(lj.kl))(s), {"log_alpha_gradient"}),
            (
                lambda m, s: jax.value_and_grad(total(lj.kl))(s),
                {"log_alpha_value_and_gradient"},
            ),
        ],
    )
    def test_only_what_is_used_is_computed(self, function, called):
        text = compiled(function)
        assert {
            name for name in _custom_call._KERNELS if f'"logunif_kl.{name}.1"' in text
        } == called

    def test_the_sign_costs_no_pass(self):
        """The program for KL has no more operations than that for -KL."""
        for function in (lj.neg_kl_normal, lj.kl_normal):
            text = compiled(jax.grad(total(function), (0, 1)))
            assert text.count("custom-call(") == 1
            assert " fusion(" not in text
            assert "negate(" not in text

    @pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "cuda")])
    def test_an_exported_program_has_plain_operations(self, platforms, call_from):
        call_from(1)
        arguments = sample(1000)
        exported = jax.export.export(jax.jit(both), platforms=platforms)(*arguments)
        assert "@logunif_kl" not in str(exported.mlir_module())
        again = jax.export.deserialize(exported.serialize()).call(*arguments)
        assert_close(again, both(*arguments))

    @pytest.mark.parametrize("name", ["neg_kl", "neg_kl_normal", "kl_normal"])
    def test_of_sizes_that_are_symbols(self, call_from, name):
        call_from(1)
        function = jax.jit(getattr(lj, name))
        given = sample(1000)[: 1 if name == "neg_kl" else 2]
        (size,) = jax.export.symbolic_shape("n")
        shapes = [jax.ShapeDtypeStruct((size,), x.dtype) for x in given]
        exported = jax.export.export(function)(*shapes)
        np.testing.assert_allclose(exported.call(*given), function(*given), rtol=1e-6)

    @pytest.mark.parametrize(("function", "prefix"), [(lj.kl_normal, ""), (lj.kl, "log_alpha_")])
    def test_of_a_primitive_that_stands_alone(self, function, prefix, call_from):
        """Where JAX, or a library, has taken the rules of differentiation away."""
        call_from(1)
        arguments = sample(1000)[bool(prefix) :]
        slopes = jax.grad(total(function), tuple(range(len(arguments))))

        def rule(*arguments):
            return function(*arguments), *slopes(*arguments)

        tangents = tangents_along(arguments, 0)
        primal, tangent = jax.jvp(rule, arguments, tangents)
        n = len(primal)
        places = {"value": slice(1), "gradient": slice(1, n), "value_and_gradient": slice(n)}
        for name, of in places.items():
            bound = partial(_custom_call._primitives()[prefix + name].bind, sign=-1.0)
            assert_close(jax.jvp(bound, arguments, tangents), (primal[of], tangent[of]))
            with jax.disable_jit():
                np.testing.assert_array_equal(jax.tree.leaves(bound(*arguments))[0], primal[of][0])

    @pytest.mark.parametrize("axes", [(0, 0), (1, 1), (0, 1), (None, 0), (1, None), (-1, 0)])
    def test_batches(self, axes, call_from):
        call_from(1)
        shapes = [{None: (3,), 0: (4, 3), 1: (3, 4), -1: (3, 4)}[axis] for axis in axes]
        arguments = [sample(math.prod(s), i)[i].reshape(s) for i, s in enumerate(shapes)]
        got, ways = counted(lambda: jax.jit(jax.vmap(lj.kl_normal, axes))(*arguments))
        assert ways == {"C": 1, "XLA": 0}
        front = [
            np.broadcast_to(a, (4, 3)) if axis is None else np.moveaxis(a, axis, 0)
            for a, axis in zip(arguments, axes, strict=True)
        ]
        np.testing.assert_array_equal(got, lj.kl_normal(*front))


@needs_c
class TestOfLogAlpha:
    """The kernel of N(1, sigma^2), whose log sigma^2 is log alpha."""

    @pytest.mark.parametrize("transform", TRANSFORMS)
    @pytest.mark.parametrize("name", ["neg_kl", "kl"])
    @pytest.mark.usefixtures("from_one")
    def test_transforms(self, name, transform):
        (case,) = (case for case in CASES if case.name == name)
        check(case, transform)

    def test_golden(self, call_from):
        for name, of in (("neg_kl", 0), ("neg_kl_grad", 1)):
            call_from(1)
            program = jax.jit(jax.vmap(jax.value_and_grad(lj.neg_kl)))
            (x,), (truth,) = golden_rows(name, "float32")
            found, ways = counted(partial(program, jnp.asarray(x)))
            assert ways == {"C": 1, "XLA": 0}
            assert_within(found[of], truth, 4)

    def test_subnormal_results(self, call_from):
        """XLA's operations flush them to 0."""
        call_from(1)
        x = jnp.linspace(87.5, 103.0, 1000, dtype="float32")
        found = np.asarray(jax.jit(lj.kl)(x), "float64")
        np.testing.assert_allclose(found, lk.kl(np.asarray(x, "float64")), rtol=0, atol=2.0**-149)


class TestWithoutCalls:
    """What there is without them gives the same, and says why."""

    IMPORTED = tuple(
        (node.module, each.name)
        for node in ast.walk(ast.parse(Path(_internals.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("jax")
        for each in node.names
        if "_src" not in node.module
    )

    @staticmethod
    def imported_again():
        loader = SourceFileLoader("logunif_kl.jax._other_internals", _internals.__file__)
        other = module_from_spec(spec_from_loader(loader.name, loader))
        loader.exec_module(other)
        return other

    @staticmethod
    def ways_of_both(size):
        (value, gradient), ways = counted(lambda: both(*sample(size)))
        assert value < 0
        assert gradient[0].shape == (size,)
        return ways

    def test_a_name_of_jax_is_absent(self, monkeypatch):
        assert _internals.MISSING is None
        assert len(self.IMPORTED) > 10
        for module, name in self.IMPORTED:
            with monkeypatch.context() as patch:
                patch.delattr(sys.modules[module], name)
                other = self.imported_again()
            assert name in other.MISSING
        monkeypatch.setattr(_custom_call, "_internals", other)
        assert name in _custom_call.why_not()
        assert not any(self.ways_of_both(777).values())

    def test_of_the_attribute_that_tells_of_an_export(self, monkeypatch):
        from jax.interpreters import mlir

        monkeypatch.setattr(mlir, "LoweringParameters", object)
        assert self.imported_again().MISSING == "no for_export is known"

    @pytest.mark.skipif(_custom_call.why_not() is not None, reason="there are no calls")
    def test_a_context_has_other_attributes(self, monkeypatch):
        class Context:
            def __getattr__(self, name):
                raise AttributeError(f"no {name} is here")

        monkeypatch.setattr(_custom_call, "_refusal", None)
        monkeypatch.setattr(_internals, "for_this_process", lambda context: Context().backend)
        jax.clear_caches()
        assert self.ways_of_both(778)["C"] == 0
        assert _custom_call.why_not().endswith("lacks what a call needs: no backend is here")

    def test_xla_refuses_the_kernels(self, monkeypatch, call_from):
        def refuse(*given):
            raise RuntimeError("too new")

        monkeypatch.setattr(_custom_call, "_refusal", None)
        monkeypatch.setattr(_custom_call, "_registered", False)
        monkeypatch.setattr(_custom_call, "_extension", lambda: SimpleNamespace(value=None))
        monkeypatch.setattr(_internals, "register", refuse)
        call_from(1)
        mu, log_sigma2 = sample(1000)
        got, ways = counted(lambda: lk.kl_normal(mu, log_sigma2))
        assert ways == {"C": 0, "XLA": 1}
        np.testing.assert_allclose(got, lk.kl_normal(*map(np.asarray, sample(1000))), rtol=1e-6)
        assert _custom_call.why_not() == "XLA refused the kernels: too new"
        said = lk.show_config("dict")["frameworks"]["jax"]
        assert said == "plain operations of XLA (XLA refused the kernels: too new)"

    def test_show_config_says_which(self):
        said = lk.show_config("dict")["frameworks"]["jax"]
        assert said.startswith(
            "calls of C" if _custom_call.why_not() is None else "plain operations"
        )


def run(code, **environment):
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return output(code, env=env).split()


UNTOUCHED = """
import sys
import logunif_kl as lk
assert not [name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib")]
assert not any("_ffi" in name for name in sys.modules)
import jax, jax.numpy as jnp
assert "logunif_kl.jax" not in sys.modules
lk.show_config()
assert "logunif_kl.jax" not in sys.modules
import logunif_kl.jax
from logunif_kl.jax import _custom_call
assert _custom_call._primitives.cache_info().currsize == 0
from jax._src import xla_bridge
assert not xla_bridge._backends
print(_custom_call._registered)
"""
CACHED = """
import jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", {folder!r})
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name))
import logunif_kl.jax as lj
x = jnp.linspace(-3.0, 3.0, 2000)
got = jax.jit(jax.grad(lambda m: lj.kl_normal(m, x).sum()))(x)
print(float(got.sum()), found.count("/jax/compilation_cache/cache_hits"))
"""


REFUSED = """
from jaxlib import xla_client
def refuse(name, *given):
    if name.startswith("logunif_kl"):
        raise RuntimeError("too new")
    xla_client._xla.register_custom_call_target(name, *given)
xla_client.register_custom_call_handler("cpu", refuse)
import logunif_kl.jax
import jax.numpy as jnp
from logunif_kl.jax import _custom_call
print(jnp.ones(3).sum(), _custom_call.why_not())
"""
STORED = """
import pickle, jax, jax.numpy as jnp, logunif_kl as lk
from jax.experimental.serialize_executable import serialize
x = jnp.linspace(-3.0, 3.0, 999)
compiled = jax.jit(lambda a: lk.kl_normal(a, a)).lower(x).compile()
pickle.dump((serialize(compiled), compiled(x).tolist()), open({file!r}, "wb"))
"""
LOADED = """
import pickle, jax.numpy as jnp, logunif_kl.jax
from jax.experimental.serialize_executable import deserialize_and_load
program, wanted = pickle.load(open({file!r}, "rb"))
print(deserialize_and_load(*program)(jnp.linspace(-3.0, 3.0, 999)).tolist() == wanted)
"""


class TestProcesses:
    @needs_c
    def test_the_import_registers_the_kernels_and_makes_no_client(self):
        assert run(UNTOUCHED)[-1] == "True"

    @needs_c
    def test_jax_stays_usable_if_xla_refuses_the_kernels(self):
        said = " ".join(run(REFUSED))
        assert said == "3.0 XLA refused the kernels: too new"

    @needs_c
    def test_a_stored_executable(self, tmp_path):
        for code in (STORED, LOADED):
            said = run(code.format(file=str(tmp_path / "program")))
        assert said == ["True"]

    def test_by_request(self):
        code = (
            "import jax.numpy as jnp\n"
            "from logunif_kl.jax import _custom_call, kl_normal\n"
            "assert abs(kl_normal(jnp.ones(999), jnp.zeros(999))[0] / 0.426685604 - 1) < 1e-6\n"
            "assert not _custom_call.lowered(); print(_custom_call.why_not())"
        )
        said = run(code, LOGUNIF_KL_KERNEL="python")
        assert " ".join(said).startswith("NumPy's kernel is Python: ")

    @pytest.mark.slow
    @needs_c
    def test_persistent_compilation_cache(self, tmp_path):
        """A second process runs what the first has compiled, kernels included."""
        code = CACHED.format(folder=str(tmp_path))
        first, hits = run(code)
        assert hits == "0"
        again, hits = run(code)
        assert again == first
        assert int(hits) > 0

    @pytest.mark.slow
    @pytest.mark.parametrize("least", [1, NEVER])
    def test_every_row_again(self, least):
        """The tests of this folder with calls for every size, and without any."""
        # How XLA computes is what this one counts.
        left_out = "not TestOneEvaluation"
        files = ("tests/jax/test_transforms.py", "tests/jax/test_values.py")
        options = ("-q", "-x", "-p", "no:cacheprovider", "-k", left_out if least == 1 else "")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files],
            env={**os.environ, "LOGUNIF_KL_TESTS_CALL_FROM": str(least)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
