"""The modules of a framework are looked through for doctests only where it is installed."""

from importlib.util import find_spec

_NEEDED = {
    "logunif_kl/_layers/*": "torch",
    "logunif_kl/torch/*": "torch",
    "logunif_kl/torch/_triton/[!l]*": "triton",
    "logunif_kl/torch/pyro.py": "pyro",
    "logunif_kl/jax/*": "jax",
    "logunif_kl/jax/numpyro.py": "numpyro",
    "logunif_kl/jax/tfp.py": "tensorflow_probability",
    "logunif_kl/tensorflow/*": "tensorflow",
    "logunif_kl/cli/bench/_torch.py": "torch",
    "logunif_kl/cli/bench/_jax.py": "jax",
}

collect_ignore_glob = [
    pattern for pattern, package in _NEEDED.items() if find_spec(package) is None
]
