"""Eight threads that share arrays get the same bits as one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs

OF_TWO = "neg_kl_normal_and_grad"
UFUNCS = ["kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl", "neg_kl_grad", "neg_kl_hess", OF_TWO]
THREADS = 8
REPEATS = 5


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
def test_shared_inputs(name, dtype):
    arguments = arguments_of(name, dtype)
    start = threading.Barrier(THREADS)

    def call():
        return np.array(getattr(ufuncs, name)(*arguments)).tobytes()

    def work(_):
        start.wait()
        return {call() for _ in range(REPEATS)}

    alone = call()
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [{alone}] * THREADS


def test_shared_output_rows():
    """Threads that write to rows of one array do not write to each other's rows."""
    x = np.linspace(-20, 20, 5003)
    out = np.empty((THREADS, x.size))
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda row: ufuncs.neg_kl(x, out=row), out))
    assert out.tobytes() == np.broadcast_to(ufuncs.neg_kl(x), out.shape).tobytes()
