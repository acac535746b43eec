"""Sixteen threads with shared inputs get the same bits as one thread."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import mpmath
import pytest

from logunif_kl import fitting, methods, reference
from logunif_kl._mpmath import LOCK
from tests.faults import calls

THREADS = 16


@pytest.fixture(autouse=True)
def _switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def compare(made, repeats):
    """Call all functions in every thread, in different orders, and compare the bits."""
    names = list(made)
    start = threading.Barrier(THREADS)
    alone = {name: calls.bits(call()) for name, call in made.items()}

    def work(index):
        start.wait()
        turn = index * len(names) // THREADS
        order = (names[turn:] + names[:turn]) * repeats
        return [name for name in order if calls.bits(made[name]()) != alone[name]]

    with ThreadPoolExecutor(THREADS) as pool:
        assert [name for wrong in pool.map(work, range(THREADS)) for name in wrong] == []


def test_arrays():
    compare(calls.of_arrays(), 3)


@pytest.mark.parametrize("repeats", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_digits(repeats):
    compare(calls.of_digits(), repeats)


@pytest.mark.slow
def test_fits():
    compare(calls.of_fits(), 1)


def test_mpmath_is_used_by_one_thread_at_a_time():
    """mpmath's caches of constants are not thread-safe."""
    done = threading.Semaphore(0)

    def start(call):
        thread = threading.Thread(target=lambda: (call(), done.release()))
        thread.start()
        return thread

    with LOCK:
        threads = [
            start(lambda: reference.neg_kl(0.25, 33)),
            start(lambda: reference.kl_gap(0.25, 33)),
            start(lambda: methods.series(0.25, dps=33)),
            start(lambda: methods.quadrature(0.25, dps=33)),
            start(lambda: fitting.fit_polynomial(2, norm="least_squares")),
        ]
        assert not done.acquire(timeout=1.0)
    for thread in threads:
        thread.join()


def test_a_fit_leaves_the_precision_of_mpmath(monkeypatch):
    """Changing it would change the results of other threads that use mpmath."""

    def refuse(*arguments):
        raise AssertionError("the precision of all threads is changed")

    monkeypatch.setattr(mpmath, "workdps", refuse)
    monkeypatch.setattr(mpmath, "workprec", refuse)
    fitting.fit_polynomial(3)
