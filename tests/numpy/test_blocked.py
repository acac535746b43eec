"""The Python form of the ufuncs, under the same battery as the compiled form."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs
from logunif_kl._numpy.blocked import BlockedUFunc
from logunif_kl._numpy.operations import of_log_alpha, of_normal
from tests.child import output, run
from tests.ufunc_battery import ALL, UNARY, UfuncBattery, same, sample

PYTHON = SimpleNamespace(**{name: ufuncs.python_ufunc(name) for name in ALL})


class TestPythonUfuncs(UfuncBattery):
    @pytest.fixture
    def functions(self):
        return PYTHON

    @pytest.mark.parametrize("name", UNARY)
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_agrees_with_the_ufunc_in_use(self, name, dtype):
        x = sample(dtype)
        got, truth = getattr(PYTHON, name)(x), getattr(ufuncs, name)(x)
        assert got.dtype == truth.dtype
        np.testing.assert_array_max_ulp(got, truth, maxulp=6 if dtype == "float64" else 1)

    @pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 3 * 4096 + 5])
    def test_block_by_block(self, n):
        x = np.linspace(0, 20, n)
        got = PYTHON.kl_gap(x)
        for start in range(0, n, 1000):
            part = slice(start, start + 1000)
            assert same(got[part], PYTHON.kl_gap(x[part]))

    def test_blocks_of_a_transposed_pair(self):
        mu, log_sigma2 = np.linspace(-2, 2, 9000).reshape(90, 100), np.linspace(-5, 5, 90)
        got = PYTHON.neg_kl_normal_and_grad(mu.T, log_sigma2)
        row = PYTHON.neg_kl_normal_and_grad(mu.T[7], log_sigma2)
        assert all(same(g[7], r) for g, r in zip(got, row, strict=True))


def _sum(x, y):
    return x + y


class TestBlockedUFunc:
    def test_two_inputs_promote_as_arctan2(self):
        f = BlockedUFunc("f", _sum, module=__name__, nin=2)
        kinds = [np.ones(2, c) for c in "?bhilefd"] + [1, 1.0, np.float32(1), True]
        for a in kinds:
            for b in kinds:
                assert f(a, b).dtype == np.arctan2(a, b).dtype, (a, b)

    def test_the_largest_block(self):
        sizes = []

        def inner(x):
            sizes.append(x.size)
            return x

        BlockedUFunc("f", inner, module=__name__, block=100)(np.ones(250))
        assert sizes == [100, 100, 50]

    def test_warnings_stay_inside(self):
        f = BlockedUFunc("f", lambda x: 1.0 / x, module=__name__)
        with np.errstate(all="raise"):
            assert f(0.0) == np.inf
            with pytest.raises(FloatingPointError):
                np.float64(1.0) / 0.0

    @pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat", "outer", "at"])
    def test_no_methods(self, method):
        f = BlockedUFunc("f", _sum, module=__name__, nin=2)
        sentence = rf"^f has no {method}, because .*: call f itself, and assign or reduce its resu"
        with pytest.raises(AttributeError, match=sentence):
            getattr(f, method)
        with pytest.raises(AttributeError, match=r"^'BlockedUFunc' object has no attribute 'nam'$"):
            f.nam  # noqa: B018

    def test_wrong_out_of_several(self):
        with pytest.raises(TypeError, match="must be a tuple"):
            PYTHON.neg_kl_normal_and_grad(1.0, 1.0, out=np.ones(2))


@pytest.mark.parametrize("orders", [(3,), (4,), (2, 1), (0, 3)])
def test_derivatives_are_pickled_by_name(orders):
    of = of_log_alpha if len(orders) == 1 else of_normal
    ufunc = of(*orders).ufunc
    assert pickle.loads(pickle.dumps(ufunc)) is ufunc


class TestChoiceOfKernel:
    def test_python(self):
        code = """
import pickle, logunif_kl as lk
config = lk.show_config("dict")
assert config["kernel"] == "python", config
assert "LOGUNIF_KL_KERNEL" in config["why_python"]
assert pickle.loads(pickle.dumps(lk.special.kl_gap)) is lk.special.kl_gap
assert abs(lk.neg_kl(0.0) + 0.42668560429604480579) <= 2**-54 * 2
lk.show_config()
"""
        said = "python (slow: LOGUNIF_KL_KERNEL=python asks for it)"
        assert said in output(code, kernel="python")
        done = run("import logunif_kl._numpy._exact", kernel="python")
        assert done.stderr.splitlines()[-1].endswith("unset it to load logunif_kl._numpy._exact")

    def test_unknown(self):
        done = run("import logunif_kl", kernel="avx1024")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "ImportError: LOGUNIF_KL_KERNEL='avx1024' is not the name of a kernel: "
            "set it to avx512, avx2, neon, baseline or python, or unset it"
        )

    def test_compiled_where_nothing_is_compiled(self):
        code = "import sys; sys.modules['logunif_kl._numpy._exact'] = None; import logunif_kl"
        done = run(code, kernel="avx2")
        assert done.stderr.splitlines()[-1] == (
            "ImportError: LOGUNIF_KL_KERNEL='avx2' asks for the C extension, which was not built: "
            "install a C compiler and reinstall logunif_kl, or unset the variable"
        )
        code += "; print(logunif_kl._numpy.ufuncs.why_python())"
        assert output(code, kernel="") == "the C extension was not built\n"

    def test_an_extension_that_cannot_be_loaded(self):
        code = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "logunif_kl._numpy._exact":
            raise ImportError("undefined symbol: PyUFunc")
sys.meta_path.insert(0, Broken())
import logunif_kl
print(logunif_kl._numpy.ufuncs.why_python())
"""
        said = "the C extension cannot be loaded: undefined symbol: PyUFunc\n"
        assert output(code, kernel="") == said
        done = run(code, kernel="baseline")
        assert done.stderr.splitlines()[-1] == "ImportError: undefined symbol: PyUFunc"
