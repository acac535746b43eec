"""A signalling NaN gives a quiet NaN and no warning, with the extension and without it."""

import numpy as np
import pytest

import logunif_kl as lk
from logunif_kl._numpy.ufuncs import FORMS, python_ufunc

BITS = {
    "float64": (np.uint64, 0x7FF0000000000001),
    "float32": (np.uint32, 0x7F800001),
    "float16": (np.uint16, 0x7C01),
}
QUIET = {"float64": 1 << 51, "float32": 1 << 22, "float16": 1 << 9}
DTYPES = pytest.mark.parametrize("dtype", BITS)
PUBLIC = {
    "neg_kl": lambda x: lk.neg_kl(x, zero_at=1.0),
    "kl": lambda x: lk.kl(x, log_c=0.5),
    "neg_kl_grad": lk.neg_kl_grad,
    "neg_kl_hess": lk.neg_kl_hess,
    "neg_kl_normal": lambda x: lk.neg_kl_normal(x, 0.5, zero_at=1.0),
    "kl_normal": lambda x: lk.kl_normal(0.5, x, log_c=0.5),
    "from_alpha": lk.log_alpha.from_alpha,
    "to_dropout_rate": lk.log_alpha.to_dropout_rate,
    "molchanov": lambda x: lk.methods.molchanov(x, zero_at=1.0),
    "monte_carlo": lambda x: lk.methods.monte_carlo(x, rng=0, zero_at=1.0)[0],
}


def signalling(dtype):
    kind, bits = BITS[dtype]
    return np.array([bits, 0], dtype=kind).view(dtype)


@DTYPES
@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("shape", [(2,), ()])
def test_public_functions(name, dtype, shape):
    x = signalling(dtype) if shape else signalling(dtype)[0]
    with np.errstate(all="raise"):
        result = np.atleast_1d(PUBLIC[name](x))
    assert np.isnan(result[0])
    assert not np.isnan(result[1:]).any()


@DTYPES
@pytest.mark.parametrize("name", FORMS)
def test_the_python_kernel(name, dtype):
    ufunc = python_ufunc(name)
    with np.errstate(all="raise"):
        results = ufunc(*[signalling(dtype)] * ufunc.nin)
    kind, _ = BITS[dtype]
    for result in results if ufunc.nout > 1 else (results,):
        assert result[:1].view(kind)[0] & QUIET[dtype]
