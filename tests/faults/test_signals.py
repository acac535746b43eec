"""Ctrl-C during long calls: KeyboardInterrupt comes soon, and the next calls are right."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signal is sent as on POSIX")
# The longest time from the signal to the exception, in seconds: a block of work or an import, with
# a wide margin for a busy machine.
SOON = 5.0

CHILD = """
import sys, time
import numpy as np
from scipy import stats
import logunif_kl as lk
from logunif_kl import fitting, methods, posteriors, reference
from logunif_kl.methods import monte_carlo, quadrature

x = np.linspace(-20.0, 20.0, 2_000_000)

def arrays():
    while True:
        lk.neg_kl(x)

def normal():
    while True:
        lk.kl_normal(x, x)

def small():
    check = [lk.neg_kl(0.5), lk.neg_kl_grad(x[:1000]).sum(), monte_carlo(0.5, n_samples=256, rng=0),
             quadrature(0.5), quadrature(0.5, dps=30), reference.neg_kl(0.5, 30),
             fitting.fit_polynomial(2).coefficients]
    return [repr(each) for each in check]

def again(function, *arguments, **options):
    def forever():
        while True:
            function(*arguments, **options)
    return forever

call = {call}
before = small()
print("ready", flush=True)
try:
    call()
except KeyboardInterrupt:
    print(time.time())
    print(small() == before)
"""

CALLS = {
    "a ufunc": "arrays",
    "a function of two": "normal",
    "monte_carlo": "lambda: monte_carlo(x[::100], n_samples=2**22, rng=0)",
    "quadrature": "lambda: quadrature(np.linspace(-9, 9, 10**6), n=2000)",
    "quadrature in digits": "lambda: quadrature(np.linspace(-9, 9, 10**4), dps=200)",
    "kummer": "again(methods.kummer, x)",
    "the reference": "again(reference.neg_kl, -9.5, 1000)",
    "a posterior": "again(posteriors.neg_kl_posterior, stats.t(3.5, 0.7))",
    "a polynomial": "again(fitting.fit_polynomial, 6, norm='minimax', target='both')",
    "a sigmoid": "lambda: fitting.fit_sigmoid(4)",
    "a measurement": "again(methods.measure, methods.METHODS['kummer'])",
}
SLOW = [pytest.mark.slow]
QUICK = ("a ufunc", "monte_carlo", "quadrature in digits", "a sigmoid")


def heed_interrupts():
    """Handle SIGINT as in a terminal, even if the tests run in a process that ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*arguments, environment=None):
    """Run Python until the end of the block, which begins when the child is ready."""
    command = [sys.executable, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    options = {"env": {**os.environ, **(environment or {})}, "preexec_fn": heed_interrupts}
    with subprocess.Popen(command, **pipes, **options) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            yield process
        finally:
            process.kill()


def check(call, environment=None, after=0.5):
    """Send SIGINT during a call; it must end soon, and later calls must be right."""
    with started("-c", CHILD.format(call=CALLS[call]), environment=environment) as process:
        time.sleep(after)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{call} is not interrupted")
    assert (process.returncode, err) == (0, ""), err
    when, right = out.split()
    assert right == "True"
    assert float(when) - sent < SOON


@pytest.mark.parametrize(
    ("call", "after"),
    [
        pytest.param(call, after, marks=[] if (call in QUICK and after == 0.5) else SLOW)
        for call in CALLS
        for after in (0.05, 0.5, 2.0)
    ],
)
def test_interrupted(call, after):
    check(call, after=after)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["a ufunc", "a function of two"])
def test_the_kernel_in_python_is_interrupted(call):
    check(call, environment={"LOGUNIF_KL_KERNEL": "python"})


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate", "bench --size 100000", "fit --ladder 4"])
def test_a_command_is_interrupted(command):
    with started("-c", COMMAND, *command.split()) as process:
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "logunif-kl: error: interrupted\n"


COMMAND = """
import sys
from logunif_kl.cli import _main, main
print("ready", flush=True)
sys.exit(main())
"""
