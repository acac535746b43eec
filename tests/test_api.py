"""The public functions: values, limits, types, signs, memory."""

import ast
import doctest
import importlib.metadata
import importlib.util
import math
import os
import pathlib
import re
from functools import partial
from itertools import product

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl import reference
from tests.ufunc_battery import extra_memory, same

pytestmark = pytest.mark.usefixtures("no_warnings_of_numpy")
INF, NAN = math.inf, math.nan
LARGEST = np.finfo("float64").max
OF_LOG_ALPHA = [lk.neg_kl, lk.neg_kl_grad, lk.neg_kl_hess, lk.kl]
POINTS = (-745, -708, -40, -8, -3.5, -1.6, -1.5, -1, -0.1, 0, 0.5, 1, 8, 40, 708)


class TestValues:
    def test_the_landmark(self):
        assert lk.neg_kl(0.0) == -0.42668560429604480579
        assert lk.kl(0.0) == 0.42668560429604480579

    @pytest.mark.parametrize("x", POINTS)
    def test_against_the_reference(self, x):
        for name in ("neg_kl", "neg_kl_grad", "neg_kl_hess"):
            truth = float(getattr(reference, name)(x))
            assert abs(getattr(lk, name)(x) - truth) <= 3 * math.ulp(truth), name
            argument = np.float32(max(min(x, 80.0), -80.0))
            truth = np.float32(float(getattr(reference, name)(float(argument))))
            got = getattr(lk, name)(argument)
            assert type(got) is np.float32
            assert abs(got - truth) <= np.spacing(abs(truth)), name

    @pytest.mark.parametrize(
        ("mu", "log_sigma2"),
        [
            *((1.0, 0.0), (-0.3, -5.0), (1e-200, 3.0), (1e200, -2.0), (5.0, 900.0), (1e-3, -900.0)),
            # where mu^2/sigma^2 may be beyond every float
            *product((1e-200, 1.0, 1e200), (-600.0, -1400.0, -1e5, -1e300)),
        ],
    )
    def test_normal_against_the_reference(self, mu, log_sigma2):
        truth = float(reference.neg_kl_normal(mu, log_sigma2))
        assert math.isclose(lk.neg_kl_normal(mu, log_sigma2), truth, rel_tol=1e-15)


class TestLimits:
    def test_ends_of_log_alpha(self, xp):
        x = xp.array([-INF, -LARGEST, -1e308, 1e308, INF, NAN])
        for function, truth in (
            (lk.neg_kl, [-INF, -LARGEST / 2, -5e307, 0.0, 0.0, NAN]),
            (lk.kl, [INF, LARGEST / 2, 5e307, 0.0, 0.0, NAN]),
            (lk.neg_kl_grad, [0.5, 0.5, 0.5, 0.0, 0.0, NAN]),
            (lk.neg_kl_hess, [0.0, 0.0, 0.0, 0.0, 0.0, NAN]),
        ):
            np.testing.assert_array_equal(xp.numpy(function(x)), truth)

    def test_ends_of_normal(self, xp):
        points = [
            *((zero, s, 0.0) for zero in (0.0, -0.0) for s in (-1e308, -800.0, 0.0, 800.0, 1e308)),
            *((0.0, INF, 0.0), (1.0, INF, 0.0), (-1e-300, INF, 0.0), (LARGEST, INF, 0.0)),
            *((mu, -INF, -INF) for mu in (1.0, -1e-300, 5e-324, LARGEST)),
            *((INF, 3.0, -INF), (-INF, -3.0, -INF), (INF, 0.0, -INF)),
            *((0.0, -INF, NAN), (INF, INF, NAN), (NAN, 0.0, NAN), (0.0, NAN, NAN)),
            *((NAN, INF, NAN), (-INF, NAN, NAN)),
        ]
        *given, truth = np.array(points).T
        mu, log_sigma2 = map(xp.array, given)
        constant = lk.special.kl_gap(0.5)
        np.testing.assert_array_equal(xp.numpy(lk.neg_kl_normal(mu, log_sigma2)), truth)
        np.testing.assert_array_equal(xp.numpy(lk.kl_normal(mu, log_sigma2)), -truth)
        shifted = lk.neg_kl_normal(mu, log_sigma2, zero_at=1.0)
        np.testing.assert_array_equal(xp.numpy(shifted), truth + constant)

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_sign_of_zero(self, xp, dtype):
        """If the KL is zero, -KL is -0.0 and KL is 0.0."""
        x, zero = xp.array([INF, 1e4, INF], dtype), xp.array([0.0, -0.0, 1.0], dtype)
        for sign, got in (
            (-1.0, lk.neg_kl(x)),
            (1.0, lk.kl(x)),
            (-1.0, lk.neg_kl_normal(zero, x)),
            (1.0, lk.kl_normal(zero, x)),
        ):
            assert same(xp.numpy(got), np.copysign(np.zeros(3, dtype), sign))


class TestTypes:
    @pytest.mark.parametrize("options", [{"zero_at": 1.0}, {"zero_at": 0.01}, {"log_c": 0.0}])
    def test_half_precision_is_rounded_once(self, options):
        """The constant is added in float32 before the rounding, also near the zero of -KL."""
        half = np.arange(2**16, dtype="uint16").view("float16")
        half = half[np.isfinite(half)]
        constant = abs(lk.neg_kl(np.inf, **options))
        mu = np.exp(0.05 * half[np.abs(half) < 100].astype("float64")).astype("float16")
        calls = [(lk.neg_kl, (half,)), (lk.kl, (half,)), (lk.neg_kl_normal, (mu, np.float16(-2.5)))]
        for function, arguments in calls:
            got = function(*arguments, **options)
            assert got.dtype == "float16"
            swapped = function(*(x.astype(">f2") for x in arguments), **options)
            assert np.array_equal(swapped, got)
            truth = function(*(x.astype("float64") for x in arguments), **options)
            with np.errstate(under="ignore"):
                unit = np.spacing(np.abs(truth).astype("float16")).astype("float64")
            within = 0.5 * unit + 2.0**-23 * np.maximum(np.abs(truth), constant)
            assert (np.abs(got.astype("float64") - truth) <= within).all()

    @pytest.mark.parametrize("scalar", [np.float16(-0.875), np.array(-0.875, "float16")])
    def test_half_precision_of_one_number(self, scalar):
        exact = lk.neg_kl(float(scalar), log_c=-1.25)
        for got in (
            lk.neg_kl(scalar, log_c=-1.25),
            lk.neg_kl_normal(1, scalar, log_c=-1.25),
            -lk.kl_normal(np.int8(1), scalar, log_c=-1.25),
        ):
            assert type(got) is np.float16
            assert got == np.float16(exact)
        assert lk.neg_kl_normal(np.int16(1), scalar, log_c=-1.25).dtype == "float32"
        assert lk.neg_kl(scalar, log_c=1e6) == np.inf

    @pytest.mark.parametrize("function", OF_LOG_ALPHA)
    def test_python_numbers_and_lists(self, function):
        assert type(function(0.5)) is np.float64
        assert type(function(1)) is np.float64
        assert type(function(np.float32(1))) is np.float32
        assert same(function([0.5, 1]), function(np.array([0.5, 1.0])))
        assert same(function((1, 2)), function(np.array([1.0, 2.0])))
        assert function(10**30) == function(1e30)

    @pytest.mark.parametrize("function", OF_LOG_ALPHA)
    def test_argument_is_left_alone(self, xp, function):
        values = np.linspace(-3, 3, 7)
        x = xp.array(values)
        function(x)
        assert same(xp.numpy(x), values)

    def test_shapes_that_do_not_broadcast(self, xp):
        """Every function of two arguments raises the same message."""
        functions = {
            ("mu", "log_sigma2"): (
                *(lk.neg_kl_normal, lk.kl_normal, lk.neg_kl_complex_normal),
                *(lk.kl_complex_normal, lk.log_alpha.from_normal),
            ),
            ("log_alpha", "mu"): (lk.log_alpha.to_log_sigma2,),
        }
        arguments = xp.array(np.ones((2, 3))), xp.array(np.ones(4))
        cases = [(f, names, arguments) for names, found in functions.items() for f in found]
        if xp.xp is np:
            of_complex = (1j * arguments[0], np.ones(4))
            cases.append((lk.kl_complex_normal, ("mu", "log_sigma2"), of_complex))
        for function, (first, second), given in cases:
            sentence = (
                f"{first} of shape (2, 3) and {second} of shape (4,) do not broadcast: each "
                "pair of lengths must be equal or include a 1"
            )
            with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
                function(*given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"zero_at": 1.0}])
def test_memory(dtype, options):
    x = np.linspace(-5, 5, 500_000, dtype=dtype)
    of_one = [partial(f, x, **options) for f in (lk.neg_kl, lk.kl)]
    of_one += [partial(f, x) for f in (lk.neg_kl_grad, lk.neg_kl_hess)]
    of_two = [partial(lk.neg_kl_normal, x, x), partial(lk.kl_normal, x, -1.0)]
    for call in (*of_one, *(partial(f, **options) for f in of_two)):
        call()
        assert extra_memory(call) < 2**20


class TestConfig:
    def test_dict(self):
        config = lk.show_config("dict")
        assert config["version"] == lk.__version__
        assert config["kernel"] in config["available_kernels"]
        assert config["available_kernels"][-1] == "python"
        assert (config["why_python"] is not None) == (config["kernel"] == "python")
        assert config["numpy"] == np.__version__
        assert config["optional"]["mpmath"]

    def test_print(self, capsys):
        assert lk.show_config() is None
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["logunif_kl", lk.__version__]
        assert lines[1].startswith(f"kernel      {lk.show_config('dict')['kernel']}")

    def test_missing_extensions_are_seen(self, capsys, monkeypatch):
        modules = {"_ufuncs": "_exact", "_single_ufuncs": "_float32"}
        others = {"_torch_operators": "torch/_library", "_jax_calls": "jax/_ffi"}
        by_request = os.environ.get("LOGUNIF_KL_KERNEL") == "python"
        there = "left out" if by_request else "built"
        states = {
            name: there if importlib.util.find_spec(f"logunif_kl._numpy.{module}") else "not built"
            for name, module in modules.items()
        }
        package = pathlib.Path(lk.__file__).parent
        for name, file in others.items():
            states[name] = there if list(package.glob(f"{file}.*")) else "not built"
        assert lk.show_config("dict")["extensions"] == states
        monkeypatch.delenv("LOGUNIF_KL_KERNEL", raising=False)

        def missing(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        def broken(name):
            raise ImportError("undefined symbol: f")

        states = {missing: "not built", broken: "cannot be loaded: undefined symbol: f"}
        for importer, state in states.items():
            with monkeypatch.context() as patch:
                patch.setattr(importlib, "import_module", importer)
                lk.show_config()
            line = f"extensions  _ufuncs {state}, _single_ufuncs {state}, "
            assert line in capsys.readouterr().out

    def test_optional_libraries(self, monkeypatch):
        optional = lk.show_config("dict")["optional"]
        assert set(optional) > {"torch", "triton", "jax", "tensorflow"}
        found = {"tensorflow-cpu": "2.21.0", "triton": "3.9.0"}

        def version(name):
            if name not in found:
                raise importlib.metadata.PackageNotFoundError(name)
            return found[name]

        monkeypatch.setattr(importlib.metadata, "version", version)
        optional = lk.show_config("dict")["optional"]
        there = {name: version for name, version in optional.items() if version}
        assert there == {"tensorflow": "2.21.0", "triton": "3.9.0"}

    def test_unknown_mode(self):
        with pytest.raises(ValueError, match="mode must be 'stdout' or 'dict', but 'json'"):
            lk.show_config("json")


@pytest.mark.parametrize("library", ["", "torch", "jax", "tensorflow"])
def test_documentation(library):
    """Each function documents its arguments and shows a call; that of a framework refers to it."""
    folder = pathlib.Path(lk.__file__).parent / library
    functions = {
        node.name: node
        for path in (*folder.glob("_api.py"), *folder.glob("_api/*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert len(functions) >= 6
    for name, node in functions.items():
        text = ast.get_docstring(node)
        examples = doctest.DocTestParser().get_examples(text)
        assert any(f"{name}(" in example.source for example in examples), name
        assert examples[-1].want, name
        if library:
            referred = f"`{'logunif_kl.' if 'neg_kl' in name else 'neg_'}{name}`"
            assert referred in text.splitlines()[0], name
            continue
        for section in ("Parameters", "Returns", "Raises", "Examples"):
            assert f"\n{section}\n---" in text, name
        _, _, rest = text.partition("Parameters\n---")
        entries = re.findall(r"^(\w[\w, ]*) : ", rest, re.MULTILINE)
        arguments = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        assert ", ".join(entries).split(", ")[: len(arguments)] == arguments, name
