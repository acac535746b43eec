"""The sources that each kind of result depends on.

A result depends on what it measures. It does not depend on how its numbers are shown, nor on the
reference that they are compared with. Each pattern is relative to the directory that holds the
package: the root of a source tree, where ``validation`` is too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import said

ROOT = Path(__file__).resolve().parents[2]


def _files(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}.py" for name in names)


EXACT_C = ("logunif_kl/_numpy/c/exact*.[ch]", "logunif_kl/_numpy/c/*target*.h")
FLOAT32_C = ("logunif_kl/_numpy/c/float32*.[ch]", "logunif_kl/_numpy/c/*target*.h")
TORCH_C = ("logunif_kl/torch/c/*.[ch]",)
ARITHMETIC = _files(
    "logunif_kl/_arithmetic",
    *(
        "binary32",
        "coefficients*",
        "functions",
        "limits",
        "normal_float32",
        "tables",
        "compensated",
    ),
)
JAX_C = ("logunif_kl/jax/c/*.[ch]",)
_DERIVATIVES = "logunif_kl/_arithmetic/derivatives.py"

# The functions of NumPy's arrays, by whichever kernel.
_EXACT = (
    *ARITHMETIC,
    *EXACT_C,
    *_files("logunif_kl/_numpy", "blocked", "promotion"),
    "logunif_kl/_convention.py",
)
_METHODS = (*_EXACT, "logunif_kl/methods/*.py", "logunif_kl/methods/digits/*.py")
_FITTING = (*_METHODS, "logunif_kl/fitting/*.py")
_ROOMS = ("torch", "torch/_triton", "jax", "tensorflow")

_EXPERIMENTS = (
    "gradient_variance",
    "shared_noise",
    "variance_assumptions",
    "correlated_assumptions",
    "speed",
    "test_error",
    "input_rate",
    "constraint",
    "extra_variance",
)
# And the modules beside them that put their numbers beside the paper's, or train in stages.
_OF_KINGMA: dict[str, tuple[str, ...]] = {
    "gradient_variance": ("ratios",),
    "shared_noise": ("stages",),
    "variance_assumptions": ("ratios",),
    "correlated_assumptions": ("ratios", "stages"),
}
_OF_DIGITS = ("rotated", "out_of_distribution", "calibration")

# And the modules beside each that it shares with the others.
_OF_MOLCHANOV: dict[str, tuple[str, ...]] = {
    "lenet_300_100": ("comparison", "masks", "models"),
    "lenet_5_caffe": ("comparison", "masks", "models"),
    "threshold": ("comparison", "models"),
    "gradients": ("comparison", "models"),
}

# And the modules beside each that it takes its models from.
_OF_HRON: dict[str, tuple[str, ...]] = {
    "normaliser": ("models",),
    "chains": ("models",),
    "correlated": (),
    "parametrisations": ("flows",),
    "slides": (),
}

DEPENDS: dict[str, tuple[str, ...]] = {
    "table": _EXACT,
    "fit": _FITTING,
    "compare": _METHODS,
    "validate": (*_METHODS, "logunif_kl/cli/_check.py"),
    "bench": (
        *_EXACT,
        *_files("logunif_kl", "_api", "_evaluation", "_dispatch"),
        *_files("logunif_kl/_numpy", "ufuncs", "reduction"),
    ),
    "bench_torch": (
        *ARITHMETIC,
        _DERIVATIVES,
        "logunif_kl/_numpy/ufuncs.py",
        *EXACT_C,
        *FLOAT32_C,
        *TORCH_C,
        *_files("logunif_kl/torch", "_*", "_triton/*"),
    ),
    "bench_layers": (
        *ARITHMETIC,
        "logunif_kl/_numpy/ufuncs.py",
        *EXACT_C,
        *FLOAT32_C,
        *TORCH_C,
        *_files("logunif_kl/torch", "_*", "nn/*"),
    ),
    "neighbours": (
        *_files("logunif_kl/_arithmetic", "tables", "functions", "neighbours/*"),
        *_files("logunif_kl", "_neighbours/*", "neighbours/_evaluation"),
        *_files("logunif_kl", "torch/neighbours/_*", "jax/neighbours/_*"),
    ),
    "cuda": (*ARITHMETIC, "logunif_kl/torch/_triton/*.py", "validation/cuda/*.py"),
    "bench_jax": (*ARITHMETIC, _DERIVATIVES, *FLOAT32_C, *JAX_C, "logunif_kl/jax/_*.py"),
    "fuzz": (*EXACT_C, *FLOAT32_C, *TORCH_C, *JAX_C, "validation/fuzz/*.[ch]"),
    "ladder": _FITTING,
    "monte_carlo": (
        *_EXACT,
        *_files("logunif_kl/methods", "_monte_carlo", "_sampling", "_control"),
        "validation/monte_carlo.py",
    ),
    "papers": (
        *_FITTING,
        "logunif_kl/posteriors/*.py",
        "validation/papers/definition.py",
        "validation/papers/[!k]*/claims.py",
        *_files("validation/papers/kingma2015", "any_posterior", "claims", "floats", "gradient"),
    ),
    # Not the layers: a change that alters no distribution would ask for days of training again.
    # Their moments, and the gradients of the divergence, are tested.
    **{
        f"kingma2015_{name}": (
            *_files("validation/training", "average", "data", "gradient_pairs", "loop", "networks"),
            *_files("validation/papers/kingma2015", name, *_OF_KINGMA.get(name, ())),
        )
        for name in _EXPERIMENTS
    },
    **{
        f"molchanov2017_{name}": (
            *_files("validation/training", "data", "loop", "scheduled"),
            *_files("validation/papers/molchanov2017", name, *others),
        )
        for name, others in _OF_MOLCHANOV.items()
    },
    "molchanov2017_inference": (
        *_files("logunif_kl/torch/nn", "_chain", "_sparse*", "_to_sparse"),
        *_files("validation/papers/molchanov2017", "inference", "models"),
    ),
    # Nor here the last bits of the functions: their accuracy is tested. One measures the methods.
    **{
        f"hron2017_{name}": _files("validation/papers/hron2017", name, *others)
        for name, others in _OF_HRON.items()
    },
    "hron2017_remarks": (*_METHODS, "validation/papers/hron2017/remarks.py"),
    "haussmann2018_moments": (
        *_files("logunif_kl/torch/nn", "_moments", "_moments_rules", "_vbp"),
        *_files("validation/papers/haussmann2018", "moments"),
    ),
    "haussmann2018_learning_curves": (
        *_files("validation/training", "data", "loop", "scheduled"),
        *_files("validation/papers/haussmann2018", "learning_curves", "networks", "thresholds"),
    ),
    "gal2016_regression": ("validation/papers/gal2016/regression.py",),
    **{
        f"gal2016_{name}": (
            *_files("validation/training", "average", "data", "loop", "networks"),
            *_files("validation/papers/gal2016", "digit_networks", "images", name),
        )
        for name in _OF_DIGITS
    },
    "capability": (
        "logunif_kl/_arithmetic/*.py",
        *_files("logunif_kl", "_api", "_evaluation", "_dispatch", "_conversions", "_adapters"),
        *_files("logunif_kl", "_refusals", "_numpy/reduction"),
        *(f"logunif_kl/{room}/*.py" for room in _ROOMS),
        *JAX_C,
        *TORCH_C,
    ),
}
"""The patterns of the files behind each kind of result."""


def paths(patterns: Iterable[str], root: Path = ROOT) -> list[Path]:
    """List the files that match, each pattern's in order."""
    return [path for pattern in patterns for path in sorted(root.glob(pattern))]


def sha256(*results: str, root: Path = ROOT) -> str | None:
    """Hash what the sources behind these kinds of result say, taken together.

    Returns
    -------
    str or None
        None where some of the sources are absent, as those in C are from an installed wheel.
    """
    patterns = dict.fromkeys(pattern for result in results for pattern in DEPENDS[result])
    found = [paths([pattern], root) for pattern in patterns]
    return said.sha256(path for each in found for path in each) if all(found) else None
