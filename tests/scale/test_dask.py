"""Dask over worker processes whose memory is too small for the array."""

import os
import sys
import time
from functools import partial

import numpy as np
import pytest

import logunif_kl as lk
from validation.accuracy.driver import EMULATOR

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.skipif(
    EMULATOR in os.environ, reason="the memory that is limited is the emulator's too"
)

LIMIT = 300 * 2**20  # an idle worker takes half of it where pandas and pyarrow are installed
CHUNK = 500_000
BLOCKS = 90
SIZE = CHUNK * BLOCKS
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


def block_sums(lazy):
    return lazy.map_blocks(lambda block: block.sum(keepdims=True), chunks=(1,)).compute()


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
    alone = [function(block(i)).sum() for i in range(BLOCKS)]
    np.testing.assert_array_equal(block_sums(lazy), alone)


def test_of_mean_and_variance(lazily, record_property):
    record_property("capability", "neg_kl_normal:dask:larger than a worker, over two processes")
    (mu, mu_block), (log_sigma2, log_sigma2_block) = ramp(-1.0, 1.0), ramp(-20.0, 5.0)
    function = partial(lk.neg_kl_normal, zero_at=1.0)
    lazy = lazily(function(mu, log_sigma2))
    alone = [function(mu_block(i), log_sigma2_block(i)).sum() for i in range(BLOCKS)]
    np.testing.assert_array_equal(block_sums(lazy), alone)
    assert lazy.sum().compute() == pytest.approx(sum(alone), rel=1e-14)


def test_value_and_both_gradients_in_one_pass(lazily, record_property):
    record_property(
        "capability", "special.neg_kl_normal_and_grad:dask:larger than a worker, apply_gufunc"
    )
    (mu, mu_block), (log_sigma2, log_sigma2_block) = ramp(-1.0, 1.0), ramp(-20.0, 5.0)
    function, dtypes = lk.special.neg_kl_normal_and_grad, (float,) * 3
    lazy = da.apply_gufunc(function, "(),()->(),(),()", mu, log_sigma2, output_dtypes=dtypes)
    blocks = (function(mu_block(i), log_sigma2_block(i)) for i in range(BLOCKS))
    alone = np.array([np.sum(block, axis=1) for block in blocks])
    for part, expected in zip([lazily(part) for part in lazy], alone.T, strict=True):
        np.testing.assert_array_equal(block_sums(part), expected)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_no_worker_came_near_its_limit(client):
    def peak():
        (line,) = (s for s in open("/proc/self/status") if s.startswith("VmHWM:"))  # noqa: SIM115
        return 1024 * int(line.split()[1])

    x, _ = ramp(-30.0, 30.0)
    lk.neg_kl(x).sum().compute()
    for each in client.run(peak).values():
        assert each < 0.9 * LIMIT
    # No worker could have held the whole array.
    assert x.nbytes > 1.1 * LIMIT
