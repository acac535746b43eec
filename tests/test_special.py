"""The ufuncs in use, of which three are public."""

import doctest
import inspect
import pickle

import numpy as np
import pytest

from logunif_kl import special
from logunif_kl._numpy import blocked, ufuncs
from tests.ufunc_battery import ALL, LIMITS, UfuncBattery

NAMES = ["kl_gap", "kl_gap_grad", "kl_gap_hess"]


class TestUfuncs(UfuncBattery):
    @pytest.fixture
    def functions(self):
        return ufuncs

    @pytest.mark.parametrize("name", ALL)
    def test_pickle(self, functions, name):
        function = getattr(functions, name)
        assert pickle.loads(pickle.dumps(function)) is function


def test_real_ufuncs_where_there_is_an_extension():
    kind = blocked.BlockedUFunc if ufuncs.kernel_name() == "python" else np.ufunc
    assert all(isinstance(getattr(ufuncs, name), kind) for name in ALL)
    assert all(getattr(special, name) is getattr(ufuncs, name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestArrayApi:
    def test_limits(self, xp, name):
        arguments, truths = zip(*LIMITS[name], strict=True)
        got = getattr(special.array_api, name)(xp.array(arguments))
        np.testing.assert_array_equal(xp.numpy(got), np.array(truths))

    def test_refuses(self, name):
        with pytest.raises(TypeError, match="u must hold real numbers"):
            getattr(special.array_api, name)(1j)

    def test_documentation(self, name):
        whole = ("Parameters", "Returns", "Raises") if name == "kl_gap" else ()
        for section in (*whole, "See Also", "Examples"):
            assert f"\n{section}\n---" in inspect.getdoc(getattr(special.array_api, name))


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_are_run(name):
    finder = doctest.DocTestFinder()
    found = {test.name: test for test in finder.find(special)}
    assert len(found[f"logunif_kl.special.__test__.{name}"].examples) == 2
    for section in ("Parameters", "Returns", "Notes", "References", "Examples"):
        assert f"{section}\n---" in getattr(special, name).__doc__
