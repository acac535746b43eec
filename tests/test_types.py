"""What type checkers know of the package, as a user's program calls it."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import logunif_kl as lk
from tests import golden, public

PACKAGE = Path(lk.__file__).parent

# The arguments of each function, of one array "{}" or of two.
DIVERGENCES = {
    **dict.fromkeys(("neg_kl", "kl", "neg_kl_complex", "kl_complex"), "{}"),
    **dict.fromkeys(("neg_kl_vector", "kl_vector"), "{}, 3"),
    **{f"{sign}kl_{of}normal": "{}, {}" for sign in ("", "neg_") for of in ("", "complex_")},
}
DERIVATIVES = {
    **{f"neg_kl_{of}{order}": "{}" for of in ("", "complex_") for order in ("grad", "hess")},
    "neg_kl_vector_grad": "{}, 3",
}
CONVERSIONS = {
    f"log_alpha.{way}_{of}": "{}" for way in ("from", "to") for of in ("alpha", "dropout_rate", "u")
} | dict.fromkeys(("log_alpha.from_normal", "log_alpha.to_log_sigma2"), "{}, {}")
GAPS = {
    f"special.{of}{gap}": "{}" for of in ("", "array_api.") for gap in lk.special.array_api.__all__
}

HEAD = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import logunif_kl as lk

x: NDArray[np.float64] = np.linspace(0.1, 0.9, 3)
"""
OTHERS = """
w = lk.posteriors.Density(lambda w: 0.5, (1.0, 3.0))
assert_type(lk.neg_kl_normal(x, [0.5]), NDArray[Any])
assert_type(lk.special.kl_gap(x, out=x, where=x > 0.5), NDArray[np.float64])
assert_type(lk.special.kl_gap.nin, int)
assert_type(lk.special.neg_kl_normal_and_grad(0.0, 0.0)[0], np.float64)
assert_type(lk.neg_kl_posterior(w), float)
assert_type(lk.kl_posterior(w, return_error=True)[1], float)
assert_type(lk.show_config("dict"), dict[str, Any])
assert_type(lk.fit_polynomial(1), lk.fitting.Fit)
assert_type(lk.fit_sigmoid(1), lk.fitting.Fit)
assert_type(lk.accuracy.CLAIMS[0], lk.accuracy.Claim)
assert_type(lk.isotropic.kl_vector(0.0, 3), np.float64)
assert_type(lk.methods.METHODS["kingma"].name, str)
assert_type(lk.__version__, str)
print(lk.reference.neg_kl(0.0))
"""
TENSORS = {
    "torch": ("import torch\n\nt = torch.tensor([0.5])\n", "torch.Tensor"),
    "jax": ("import jax\nimport jax.numpy as jnp\n\nt = jnp.array([0.5])\n", "jax.Array"),
}


def calls(functions, argument, kind, options=""):
    """Assertions about the type of each function of one argument, given several times."""
    return "".join(
        f"assert_type(lk.{name}({form.format(argument, argument)}{options}), {kind})\n"
        for name, form in functions.items()
    )


def of_tensors(made, kind):
    functions = DIVERGENCES | DERIVATIVES | CONVERSIONS
    two = {name: "{}, 0.5" for name, form in functions.items() if form == "{}, {}"}
    two_reversed = dict.fromkeys(two, "0.5, {}")
    text = [calls(each, "t", kind) for each in (functions, two, two_reversed)]
    return HEAD + made + "".join(text) + calls(DIVERGENCES, "t", kind, ', reduction="sum"')


def of_arrays():
    functions = DIVERGENCES | DERIVATIVES | CONVERSIONS | GAPS
    one = {name: form for name, form in functions.items() if form != "{}, {}"}
    text = [calls(functions, "0.5", "np.float64"), calls(functions, "[0.5]", "NDArray[Any]")]
    text += [calls(one, "x", "NDArray[np.float64]"), calls(one, "np.array([1])", "NDArray[Any]")]
    reduced = calls(DIVERGENCES, "x", "np.floating[Any]", ', zero_at=1.0, reduction="sum"')
    return HEAD + "".join(text) + reduced + OTHERS


LAYERS = {
    "torch.nn": """
from typing import assert_type

import torch

from logunif_kl.torch import nn

x, y = torch.ones(4, 3), torch.zeros(4, dtype=torch.int64)
net = torch.nn.Sequential(nn.VariationalLinear(3, 2, posterior=nn.Scaled(), dtype=torch.float32))
assert_type(nn.ELBO(net, nn.categorical_log_likelihood, 4)(x, y).loss, torch.Tensor)
assert_type(nn.predict(net, x, 2).mean, torch.Tensor)
""",
    "jax.nn": """
from typing import assert_type

import jax
import jax.numpy as jnp

from logunif_kl.jax import nn

w, x = nn.Weight.from_mean(jnp.ones((3, 2))), jnp.ones((4, 3))
found = nn.predict(lambda key: nn.dense(x, w, key=key), jax.random.key(0), 2)
assert_type(found.mean, jax.Array)
""",
}
PROGRAMS = {
    "numpy": of_arrays(),
    **{name: of_tensors(*given) for name, given in TENSORS.items()},
    **LAYERS,
}
WRONG = {
    "torch.nn": [
        'nn.VariationalLinear(3, 2, posterior="scaled")',
        "nn.VariationalLinear(3, 2, dtype=float)",
        'nn.ELBO(net, nn.categorical_log_likelihood, "4")',
    ],
    "jax.nn": ['nn.Weight.from_mean(x, "scaled")', "found.means"],
}


def need(*packages):
    for name in packages:
        name = name.partition(".")[0]
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def report_of_pyright(*arguments):
    """Run pyright with the packages of this process."""
    need("pyright")
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(PACKAGE.parent)},
    )
    return json.loads(done.stdout)


@pytest.fixture(params=["mypy", "pyright"])
def errors(request, tmp_path):
    """A function that checks a user's program, and returns the lines with errors."""
    program, settings = tmp_path / "program.py", tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = True\n")

    def by_pyright():
        found = report_of_pyright(str(program))["generalDiagnostics"]
        return [entry["range"]["start"]["line"] for entry in found if entry["severity"] == "error"]

    def by_mypy():
        run = pytest.importorskip("mypy.api").run
        out, err, _ = run([str(program), "--config-file", str(settings)])
        assert not err
        return [int(line) - 1 for line in re.findall(r"program\.py:(\d+): error", out)]

    def found(text):
        program.write_text(text)
        numbers = by_pyright() if request.param == "pyright" else by_mypy()
        return [text.splitlines()[number] for number in sorted(set(numbers))]

    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_types_that_are_declared(name, monkeypatch):
    need(name)

    def assert_type(value, kind):
        kind = typing.get_origin(kind) or kind
        kind = getattr(kind, "__value__", kind)  # NDArray is an alias since NumPy 2.5
        assert isinstance(value, typing.get_origin(kind) or kind)

    monkeypatch.setattr(typing, "assert_type", assert_type)
    exec(PROGRAMS[name], {})


def test_the_program_has_every_name():
    assert [n for n in lk.__all__ if not re.search(rf"\blk\.{n}\b", PROGRAMS["numpy"])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_type_checkers_know_the_types(name, errors):
    need(name)
    of_functions = "neg_kl(object())", "neg_kl(x, reduction=1)", "neg_kl(x).colour"
    wrong = WRONG.get(name, [f"lk.{each}" for each in of_functions])
    assert errors("\n".join((PROGRAMS[name], *wrong))) == wrong


@pytest.mark.slow
def test_type_checkers_know_every_name_and_no_other(errors):
    modules = [name for name in public.MODULES if public.installed(name)]
    imports = [f"import {name}" for name in modules]
    written = (golden.HERE / "public.txt").read_text(encoding="utf-8")
    every = re.findall(rf"^({'|'.join(modules)})\.(\w+)[(:]", written, re.MULTILINE)
    assert len(every) > 200 or len(modules) < len(public.MODULES)
    names = [f"print({module}.{name})" for module, name in every]
    misspelt = [f"print({name}.neg_kl_vektor)" for name in modules]
    unimported = ["import logunif_kl as lk", "print(lk.torche, lk.fit)"]
    assert errors("\n".join((*imports, *names, *misspelt, *unimported))) == [
        *misspelt,
        unimported[1],
    ]


@pytest.mark.slow
def test_stubs_agree_with_their_modules(tmp_path):
    need("mypy")
    stubs = [path for path in PACKAGE.rglob("*.pyi") if path.with_suffix(".py").exists()]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in stubs]
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nignore_missing_imports = True\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *names, "--mypy-config-file", str(settings)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PACKAGE.parent,
    )
    assert len(names) == 6
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_every_type_is_known():
    need("torch", "jax")
    found = report_of_pyright("--verifytypes", "logunif_kl", "--ignoreexternal")
    symbols = found["typeCompleteness"]["symbols"]
    unknown = {s["name"] for s in symbols if not s["isTypeKnown"] or s["isTypeAmbiguous"]}
    # Of the layers, users see what the modules of the frameworks export.
    seen = {
        name
        for face in ("torch", "jax")
        for name in importlib.import_module(f"logunif_kl.{face}.nn").__all__
    }
    unknown = {x for x in unknown if not x.startswith("logunif_kl.nn.") or seen & {*x.split(".")}}
    # Their base classes come from packages without type information.
    assert unknown <= {
        f"logunif_kl.{name}.ImproperLogUniform" for name in ("jax.numpyro", "jax.tfp", "torch.pyro")
    }
