"""Warnings are errors in the tests, except deprecations inside other packages."""

import warnings

import pytest

OURS = ("logunif_kl", "logunif_kl.torch._api", "tests.torch.cases", "validation.record", "__main__")
OTHERS = ("torch", "torch.jit._script", "jax._src.core", "tensorflow.python", "numpy._core", "dask")
DEPRECATIONS = (FutureWarning, DeprecationWarning)


def warn(kind, module):
    warnings.warn_explicit("it is deprecated", kind, f"{module}.py", 1, module=module)


@pytest.mark.parametrize("module", [*OURS, "torchvision", "numpydoc.validate", *OTHERS])
def test_errors(module):
    """A RuntimeWarning of NumPy is an error, because our computation causes it."""
    ours = () if module in OTHERS else (*DEPRECATIONS, UserWarning)
    for kind in (*ours, RuntimeWarning):
        with pytest.raises(kind, match="it is deprecated"):
            warn(kind, module)


@pytest.mark.parametrize("module", OTHERS)
def test_no_errors(module):
    for kind in DEPRECATIONS:
        with warnings.catch_warnings(record=True) as caught:
            warn(kind, module)
        assert [each.category for each in caught] == [kind]
