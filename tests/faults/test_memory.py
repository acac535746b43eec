"""If memory runs out, a call raises MemoryError, and a command ends with one sentence.

A child process limits its address space to a little more than it has, then to more, until the call
succeeds. Calls without a limit afterwards must be right.
"""

import os
import sys

import pytest

from tests.child import output
from validation.accuracy.driver import EMULATOR

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space so"),
    pytest.mark.skipif(EMULATOR in os.environ, reason="the address space is the emulator's"),
]

LIMITED = """
import contextlib, io, resource, sys
import numpy as np
import logunif_kl as lk
from logunif_kl import fitting, methods, posteriors, reference, special
from logunif_kl.cli import main
from tests.faults.calls import bits

KIB = 1024
STEPS = [0, 64, 256, 512, *(KIB * 2**k for k in range(10)), *(3 * KIB * 2**k for k in range(9))]

@contextlib.contextmanager
def limited(kibibytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + kibibytes * KIB
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
"""

OF_A_CALL = (
    LIMITED
    + """
x = np.linspace(-9.0, 9.0, 1_000_000)
x32, matrix, backwards = x.astype("f4"), x.reshape(1000, 1000), x[::-1]
call = lambda: {call}
wanted = bits(call()) if {warm} else None
refused = 0
for kibibytes in sorted(STEPS):
    found = None
    try:
        with limited(kibibytes):
            found = call()
    except MemoryError:
        refused += 1
        continue
    if wanted is None:
        wanted = bits(call())
    assert bits(found) == wanted
    found = None
assert bits(call()) == wanted
print(refused)
"""
)

CALLS = {
    "neg_kl": "lk.neg_kl(x)",
    "a constant": "lk.kl(x, zero_at=1.0)",
    "backwards": "lk.neg_kl_grad(backwards)",
    "a transpose": "lk.neg_kl(matrix.T)",
    "three results": "special.neg_kl_normal_and_grad(x, backwards)",
    "two arguments": "lk.kl_normal(x32, backwards)",
    "an outer product": "lk.neg_kl_normal(x[:1000, None], x[:1000])",
    "where": "special.kl_gap(x, where=x > 0, out=np.zeros_like(x))",
    "monte_carlo": "methods.monte_carlo(x[::20000], n_samples=2**10, rng=0)",
    "quadrature": "methods.quadrature(x[::100])",
    "series": "methods.series(x[::10])",
    "the reference": "repr(reference.neg_kl(-9.5, 5000))",
    "a polynomial": "fitting.fit_polynomial(3).to_json()",
    "a sigmoid": "fitting.fit_sigmoid(1).to_json()",
}
LARGE = tuple(CALLS)[:8]
QUICK = ("neg_kl", "three results", "monte_carlo", "a polynomial", "table 1 --dps 30")
QUICK += ("bench --size 300000 --rounds 2 --threads 3",)


def marks(quick):
    return [] if quick else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "warm"),
    [
        pytest.param(name, warm, marks=marks(name in QUICK and warm == (name in LARGE)))
        for name in CALLS
        for warm in (True, False)
    ],
)
def test_calls(name, warm):
    refused = int(output(OF_A_CALL.format(call=CALLS[name], warm=warm)))
    # A small call may need no more memory than was allocated before.
    assert refused > 0 or name not in LARGE


OF_A_COMMAND = (
    LIMITED
    + """
import os
os.environ.pop("FORCE_COLOR", None)
refused = 0
for kibibytes in sorted(STEPS):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        with limited(kibibytes):
            status = main(sys.argv[1:])
    said = err.getvalue()
    if status == 0:
        assert said == "" and out.getvalue(), said
        break
    assert status == 2, status
    assert said.startswith("logunif-kl: error: not enough memory"), said
    assert said.count(chr(10)) == 1 and said.endswith("ask for less, or give the process more\\n")
    refused += 1
else:
    raise AssertionError("no limit was wide enough")
print(refused)
"""
)

COMMANDS = (
    "table 1 --dps 30",
    "bench --size 300000 --rounds 2 --threads 3",
    "fit polynomial",
    "validate lower_bound monte_carlo",
)


@pytest.mark.parametrize("command", [pytest.param(c, marks=marks(c in QUICK)) for c in COMMANDS])
def test_commands(command):
    assert int(output(OF_A_COMMAND, *command.split())) > 0
