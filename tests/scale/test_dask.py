"""Dask over worker processes whose memory is too small for the array."""

import os
import sys
import time
from functools import partial

import numpy as np
import pytest

import logunif_kl as lk
from validation.accuracy.driver import EMULATOR

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.skipif(
    EMULATOR in os.environ, reason="the memory that is limited is the emulator's too"
)

LIMIT = 300 * 2**20  # an idle worker takes half of it where pandas and pyarrow are installed
CHUNK = 500_000
BLOCKS = 90
SIZE = CHUNK * BLOCKS
CHECKED = range(0, BLOCKS, 3)
"""The blocks that this process computes too."""

FUNCTIONS = ["neg_kl", "neg_kl_grad"]


@pytest.fixture(scope="module")
def client():
    """Two workers in processes of their own; one that grows beyond the limit is killed."""
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": LIMIT}
    with (
        distributed.LocalCluster(**options, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def lazily(client):
    """Check that a dask array is larger than a worker's memory, and that nothing was computed."""

    def tasks():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    deadline = time.monotonic() + 30
    while tasks() and time.monotonic() < deadline:  # wait for those of the last test to go
        time.sleep(0.01)

    def check(lazy):
        assert isinstance(lazy, da.Array)
        assert lazy.numblocks == (BLOCKS,)
        assert lazy.nbytes > LIMIT
        assert tasks() == 0
        return lazy

    return check


def ramp(low, high):
    """From `low` to `high`, as a dask array and as a function of the block."""
    step = (high - low) / SIZE

    def block(i):
        return np.arange(i * CHUNK, (i + 1) * CHUNK) * step + low

    return da.arange(SIZE, chunks=CHUNK) * step + low, block


def checksum(block):
    """The sum of the bits, because that of the numbers depends on where dask puts the block."""
    return block.view(np.int64).sum(keepdims=True)


def checksums(lazy):
    return lazy.map_blocks(checksum, chunks=(1,), dtype=np.int64)


def peak():
    """The largest memory that this process had, in bytes; None if there is no /proc."""
    if not sys.platform.startswith("linux"):
        return None
    (line,) = (s for s in open("/proc/self/status") if s.startswith("VmHWM:"))  # noqa: SIM115
    return 1024 * int(line.split()[1])


def test_the_workers_are_processes_with_this_limit(client):
    workers = client.scheduler_info()["workers"].values()
    assert [worker["memory_limit"] for worker in workers] == [LIMIT, LIMIT]
    assert len({os.getpid(), *client.run(os.getpid).values()}) == 3


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_log_alpha(lazily, name, record_property):
    record_property("capability", f"{name}:dask:larger than a worker, over two processes")
    function = getattr(lk, name)
    x, block = ramp(-30.0, 30.0)
    lazy = lazily(function(lazily(x)))
    each = [function(block(i)) for i in (0, 7, BLOCKS - 1)]
    for i, alone in zip((0, 7, BLOCKS - 1), each, strict=True):
        np.testing.assert_array_equal(lazy.blocks[i].compute(), alone)
    alone = [checksum(function(block(i)))[0] for i in CHECKED]
    np.testing.assert_array_equal(checksums(lazy).compute()[CHECKED], alone)


def test_of_mean_and_variance(lazily, record_property):
    record_property("capability", "neg_kl_normal:dask:larger than a worker, over two processes")
    (mu, mu_block), (log_sigma2, log_sigma2_block) = ramp(-1.0, 1.0), ramp(-20.0, 5.0)
    function = partial(lk.neg_kl_normal, zero_at=1.0)
    lazy = lazily(function(mu, log_sigma2))
    blocks = [function(mu_block(i), log_sigma2_block(i)) for i in CHECKED]
    alone = [checksum(block)[0] for block in blocks]
    np.testing.assert_array_equal(checksums(lazy).compute()[CHECKED], alone)


def test_value_and_both_gradients_in_one_pass(client, lazily, record_property):
    record_property(
        "capability", "special.neg_kl_normal_and_grad:dask:larger than a worker, apply_gufunc"
    )
    (mu, mu_block), (log_sigma2, log_sigma2_block) = ramp(-1.0, 1.0), ramp(-20.0, 5.0)
    function, dtypes = lk.special.neg_kl_normal_and_grad, (float,) * 3
    lazy = da.apply_gufunc(function, "(),()->(),(),()", mu, log_sigma2, output_dtypes=dtypes)
    found = dask.compute(*[checksums(lazily(part)) for part in lazy])
    for i in CHECKED:
        alone = function(mu_block(i), log_sigma2_block(i))
        assert [sums[i] for sums in found] == [checksum(part)[0] for part in alone]
    # No worker came near its limit, and none could have held the whole array.
    assert mu.nbytes > 1.1 * LIMIT
    for most in client.run(peak).values():
        assert most is None or most < 0.9 * LIMIT
