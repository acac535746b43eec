"""Eight threads that share arrays get the same bits as one thread."""

import threading

import numpy as np
import pytest

from logunif_kl._numpy import ufuncs

UFUNCS = ["kl_gap", "kl_gap_grad", "kl_gap_hess", "neg_kl", "neg_kl_grad", "neg_kl_hess"]
THREADS = 8
REPEATS = 5


def inputs(dtype: str) -> np.ndarray:
    """Numbers of every order of magnitude, shuffled."""
    values = np.concatenate([np.logspace(-37, 37, 4001), np.linspace(0, 12, 4001), [0, np.inf]])
    return np.random.default_rng(7).permutation(values).astype(dtype)


def call_at_once(function, arguments: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    """Call the function repeatedly in each of the threads, all starting together."""
    start = threading.Barrier(THREADS)
    results: list[list[tuple[np.ndarray, ...]]] = [[] for _ in range(THREADS)]

    def work(mine: list[tuple[np.ndarray, ...]]) -> None:
        start.wait()
        for _ in range(REPEATS):
            value = function(*arguments)
            mine.append(value if isinstance(value, tuple) else (value,))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [value for mine in results for value in mine]


def assert_same_bits(got: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...]) -> None:
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype
        assert g.tobytes() == w.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UFUNCS)
def test_one_argument(name, dtype):
    function = getattr(ufuncs, name)
    x = inputs(dtype)
    if name.startswith("neg_kl"):
        x = np.log(x, where=x > 0, out=np.full_like(x, -np.inf))
    alone = function(x)
    for together in call_at_once(function, (x,)):
        assert_same_bits(together, (alone,))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    log_sigma2 = np.linspace(-40, 20, 8004).astype(dtype)
    mu = np.resize(inputs(dtype)[:-1], log_sigma2.shape)
    arguments = (mu, log_sigma2)
    alone = ufuncs.neg_kl_normal_and_grad(*arguments)
    for together in call_at_once(ufuncs.neg_kl_normal_and_grad, arguments):
        assert_same_bits(together, alone)


def test_shared_output_rows():
    """Threads that write to rows of one array do not write to each other's rows."""
    x = np.linspace(-20, 20, 5003)
    wanted = ufuncs.neg_kl(x)
    out = np.empty((THREADS, x.size))
    threads = [
        threading.Thread(target=ufuncs.neg_kl, args=(x,), kwargs={"out": row}) for row in out
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out.tobytes() == np.broadcast_to(wanted, out.shape).tobytes()
