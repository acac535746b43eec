"""Processes that are forked or spawned, also while threads compute, get the same bits."""

import multiprocessing
import os
import threading
import time
import warnings

import pytest

from logunif_kl import reference
from logunif_kl._mpmath import LOCK
from tests.faults import calls

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has fork")
METHODS = ("fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow))


def some_bits(names):
    """Compute the calls of these names in this process."""
    made = calls.of_arrays() | calls.of_digits()
    return {name: calls.bits(made[name]()) for name in names}


NAMES = ["neg_kl float64", "kl_normal float32", "special.kl_gap_hess", "monte_carlo 1"]
NAMES += ["reference.neg_kl 40", "methods.series 70", "polynomial 4"]


@pytest.mark.parametrize("method", METHODS)
def test_processes_agree(method):
    alone = some_bits(NAMES)
    with warnings.catch_warnings():
        # Python warns of a fork while any library's threads run, as those of OpenBLAS.
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map_async(some_bits, [NAMES] * 2).get(timeout=120)
    assert found == [alone, alone]


def in_a_fork(work, timeout=60.0):
    """Fork, run in the child, and return its exit status, or "hangs" after a timeout."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        status = 1
        try:
            status = 0 if work() else 3
        finally:
            os._exit(status)
    ends = time.monotonic() + timeout
    while time.monotonic() < ends:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return "hangs"


def test_forks_while_threads_compute():
    """The child has no other threads, and must not wait for a lock that one of them held."""
    alone = some_bits(NAMES)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            some_bits(NAMES)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        found = [in_a_fork(lambda: some_bits(NAMES) == alone, 30.0) for _ in range(6)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert found == [0] * 6


def test_a_fork_while_mpmath_is_used():
    """The fork waits for the end of the call, so mpmath's caches are complete."""
    began, end = threading.Event(), threading.Event()

    wanted = reference.neg_kl(0.5, 30)

    def hold():
        with LOCK:
            began.set()
            end.wait(1.0)

    thread = threading.Thread(target=hold)
    thread.start()
    began.wait()
    found = in_a_fork(lambda: reference.neg_kl(0.5, 30) == wanted, 10.0)
    end.set()
    thread.join()
    assert found == 0
