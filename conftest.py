"""The modules to look through for doctests, and the number of processes that run the tests."""

import os
from importlib.util import find_spec

import pytest

# The modules of a framework are looked through for doctests only where it is installed.
_NEEDED = {
    "logunif_kl/_layers/*": "torch",
    "logunif_kl/nn/*": "torch",
    "logunif_kl/torch/*": "torch",
    "logunif_kl/torch/_triton/[!l]*": "triton",
    "logunif_kl/torch/pyro.py": "pyro",
    "logunif_kl/jax/*": "jax",
    "logunif_kl/jax/numpyro.py": "numpyro",
    "logunif_kl/jax/tfp.py": "tensorflow_probability",
    "logunif_kl/tensorflow/*": "tensorflow",
    **{
        f"logunif_kl/_adapters/{name}.py": name
        for name in ("autograd", "keras", "mlx", "paddle", "pytensor", "tinygrad")
    },
    "logunif_kl/_numba/*": "numba",
    "logunif_kl/cli/bench/_torch.py": "torch",
    "logunif_kl/cli/bench/_jax.py": "jax",
}

collect_ignore_glob = [
    pattern for pattern, package in _NEEDED.items() if find_spec(package) is None
]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Accept the options of pytest-xdist in pyproject.toml where it is missing or disabled."""
    if not pluginmanager.hasplugin("xdist"):
        group = parser.getgroup("xdist", "ignored, because pytest-xdist is not in use")
        group.addoption("--numprocesses")
        group.addoption("--dist")


def pytest_configure(config: pytest.Config) -> None:
    """Let processes that share the processors use one thread each, if the caller does not say."""
    if config.getoption("numprocesses") and config.pluginmanager.hasplugin("xdist"):
        os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use every processor, where pytest-xdist would count two hardware threads of a core as one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
