"""Warnings are errors in the tests, except deprecations inside other packages."""

import warnings

import pytest

OURS = ("logunif_kl", "logunif_kl.torch._api", "tests.torch.cases", "validation.record", "__main__")
OTHERS = ("torch", "torch.jit._script", "jax._src.core", "tensorflow.python", "numpy._core", "dask")
KINDS = (FutureWarning, DeprecationWarning)


def warn(kind, module):
    warnings.warn_explicit("it is deprecated", kind, f"{module}.py", 1, module=module)


@pytest.mark.parametrize("kind", [*KINDS, RuntimeWarning, UserWarning])
@pytest.mark.parametrize("module", [*OURS, "torchvision", "numpydoc.validate"])
def test_errors(module, kind):
    with pytest.raises(kind, match="it is deprecated"):
        warn(kind, module)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("module", OTHERS)
def test_no_errors(module, kind):
    with warnings.catch_warnings(record=True) as caught:
        warn(kind, module)
    assert [each.category for each in caught] == [kind]


@pytest.mark.parametrize("module", OTHERS)
def test_of_other_packages_only_what_is_deprecated(module):
    """A RuntimeWarning of NumPy is an error: our computation causes it."""
    with pytest.raises(RuntimeWarning):
        warn(RuntimeWarning, module)
