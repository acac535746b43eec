"""The ufuncs in use, and the public three among them."""

import doctest
import inspect

import numpy as np
import pytest

from logunif_kl import special
from logunif_kl._numpy import blocked, ufuncs
from tests.ufunc_battery import ALL, LIMITS, UfuncBattery, pickled, sample

NAMES = ["kl_gap", "kl_gap_grad", "kl_gap_hess"]


class TestUfuncs(UfuncBattery):
    @pytest.fixture
    def functions(self):
        return ufuncs

    @pytest.mark.parametrize("name", ALL)
    def test_pickle(self, functions, name):
        assert pickled(getattr(functions, name)) is getattr(functions, name)


def test_real_ufuncs_where_there_is_an_extension():
    if ufuncs.kernel_name() == "python":
        assert isinstance(special.kl_gap, blocked.BlockedUFunc)
    else:
        assert all(isinstance(getattr(special, name), np.ufunc) for name in NAMES)


def test_array_api_is_a_module():
    assert inspect.ismodule(special.array_api)
    assert sorted(special.array_api.__all__) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestArrayApi:
    def test_agrees_with_the_ufunc(self, xp, name):
        u = sample("float64", 300)
        got = getattr(special.array_api, name)(xp.array(u))
        truth = getattr(special, name)(u)
        assert type(got) is type(xp.array(u))
        np.testing.assert_array_max_ulp(xp.numpy(got), truth, maxulp=6)

    def test_limits(self, xp, name):
        arguments, truths = zip(*LIMITS[name], strict=True)
        got = getattr(special.array_api, name)(xp.array(arguments))
        np.testing.assert_array_equal(xp.numpy(got), np.array(truths))

    def test_refuses(self, name):
        with pytest.raises(TypeError, match="u must hold real numbers"):
            getattr(special.array_api, name)(1j)

    def test_documentation(self, name):
        for section in ("Parameters", "Returns", "Raises", "See Also", "Examples"):
            assert f"\n{section}\n---" in inspect.getdoc(getattr(special.array_api, name))


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_are_run(name):
    finder = doctest.DocTestFinder()
    found = {test.name: test for test in finder.find(special)}
    assert len(found[f"logunif_kl.special.__test__.{name}"].examples) == 2
    for section in ("Parameters", "Returns", "Notes", "References", "Examples"):
        assert f"{section}\n---" in getattr(special, name).__doc__
