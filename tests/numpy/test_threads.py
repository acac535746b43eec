"""Eight threads that share arrays get the same bits as one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs

OF_TWO = "neg_kl_normal_and_grad"
UFUNCS = ["kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl", "neg_kl_grad", "neg_kl_hess", OF_TWO]
THREADS = 8


def arguments_of(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    """Numbers of every order of magnitude, shuffled."""
    values = np.concatenate([np.logspace(-37, 37, 4001), np.linspace(0, 12, 4001), [0, np.inf]])
    x = np.random.default_rng(7).permutation(values).astype(dtype)
    if name == OF_TWO:
        log_sigma2 = np.linspace(-40, 20, x.size).astype(dtype)
        return np.resize(x[:-1], log_sigma2.shape), log_sigma2
    if name.startswith("neg_kl"):
        x = np.log(x, where=x > 0, out=np.full_like(x, -np.inf))
    return (x,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_shared_arrays(name, dtype):
    """Threads with the same inputs, that write to rows of one array."""
    arguments, ufunc = arguments_of(name, dtype), getattr(ufuncs, name)
    alone = np.array(ufunc(*arguments)).reshape(ufunc.nout, -1)
    outs = np.empty((5 * THREADS, *alone.shape), dtype)
    start = threading.Barrier(THREADS)

    def work(rows):
        start.wait()
        for row in rows:
            ufunc(*arguments, out=tuple(row))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, outs.reshape(THREADS, 5, *alone.shape)))
    assert {row.tobytes() for row in outs} == {alone.tobytes()}
