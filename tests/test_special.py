"""The ufuncs in use, of which three are public."""

import doctest
import inspect
import pickle
from functools import partial

import numpy as np
import pytest

from logunif_kl import special
from logunif_kl._numpy import blocked, ufuncs
from tests.test_dispatch import tensor_of
from tests.test_units import Pint
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
    assert all(getattr(special, name).types == getattr(ufuncs, name).types for name in NAMES)


class TestArgumentsThatUfuncsWouldSpoil:
    """NumPy would read the numbers, and lose a derivative or a unit without a warning."""

    @pytest.mark.parametrize("library", ["torch", "jaxlib", "tensorflow", "mlx", "paddle"])
    def test_tensors(self, library):
        tensor = tensor_of(library)()
        name = library.removesuffix("lib")
        for function in map(partial(getattr, special), NAMES):
            with pytest.raises(TypeError, match=rf"^u is of .* does not support {name}: pass "):
                function(tensor)
            for value in ([0.5, tensor], [[tensor]]):
                with pytest.raises(TypeError, match=r"^u is a list that holds a .*: stack its el"):
                    function(value)
        with pytest.raises(TypeError, match=r"^mu is a list that holds a "):
            special.neg_kl_normal_and_grad([tensor], 0.5)

    def test_quantities(self):
        for quantity in (Pint(0.5), [Pint(0.5)]):
            with pytest.raises(TypeError, match=r"^u .*has a unit"):
                special.kl_gap(quantity)

    @pytest.mark.parametrize("name", NAMES)
    def test_arrays_of_a_namespace_are_served(self, name):
        strict = pytest.importorskip("array_api_strict")
        got = getattr(special, name)(strict.asarray([0.0, 0.5]))
        assert type(got) is type(strict.asarray(0.0))
        np.testing.assert_allclose(np.asarray(got), getattr(special, name)([0.0, 0.5]), rtol=4e-16)


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
