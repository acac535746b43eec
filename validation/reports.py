"""The committed results: the command that makes each file, and what it measures."""

from __future__ import annotations

from typing import NamedTuple

ACCURACY = ("search", "exhaustive", "neon", "torch", "torch_avx2", "jax", "tensorflow")


class Report(NamedTuple):
    """How a file is made, and its kinds of result, as `logunif_kl.cli.sources.DEPENDS` has them.

    An accuracy report names no kind: each of its rows has the hash of its own kernel's sources.
    """

    command: str
    of: tuple[str, ...] = ()


_COMPARE = Report(
    "logunif-kl compare --json validation/results/compare/compare.json "
    "--plot docs/_static/compare.png",
    ("compare",),
)
_VALIDATE = Report("logunif-kl validate --output validation/results/validate", ("validate",))
_BENCH = "validation/results/bench"


def _experiment(
    name: str, *, plot: bool = False, paper: str = "kingma2015", data: bool = True
) -> dict[str, Report]:
    """Return the reports of an experiment of a paper: its record, and its figure."""
    command = f"python -m validation.papers.{paper}.{name}{' --data FILE' * data}"
    figure = f"validation/results/{paper}/{name}.png"
    report = Report(f"{command} --plot {figure}" if plot else command, (f"{paper}_{name}",))
    record = f"validation/results/{paper}/{name}.json"
    return {record: report, **({figure: report} if plot else {})}


# By the path from the root of the repository.
REPORTS = {
    **{
        f"validation/results/accuracy/{name}.json": Report(
            f"python -m validation.accuracy measure {name.removesuffix('_avx2')}"
        )
        for name in ACCURACY
    },
    "validation/results/accuracy/neon.json": Report(
        "python -m validation.tools.emulated --measure"
    ),
    f"{_BENCH}/bench.json": Report(f"logunif-kl bench --json {_BENCH}/bench.json", ("bench",)),
    f"{_BENCH}/bench_torch.json": Report(
        f"logunif-kl bench --torch --threads 1 --rounds 15 --json {_BENCH}/bench_torch.json",
        ("bench_torch",),
    ),
    f"{_BENCH}/bench_cuda.json": Report(
        f"logunif-kl bench --torch --cuda --json {_BENCH}/bench_cuda.json", ("bench_torch",)
    ),
    f"{_BENCH}/bench_jax.json": Report(
        f"logunif-kl bench --jax --json {_BENCH}/bench_jax.json", ("bench_jax",)
    ),
    f"{_BENCH}/bench_sizes.json": Report(
        f"logunif-kl bench --sizes --json {_BENCH}/bench_sizes.json", ("bench",)
    ),
    f"{_BENCH}/bench_magnitudes.json": Report(
        f"logunif-kl bench --magnitudes --torch --jax --json {_BENCH}/bench_magnitudes.json",
        ("bench", "bench_torch", "bench_jax"),
    ),
    f"{_BENCH}/bench_training.json": Report(
        f"logunif-kl bench --training --json {_BENCH}/bench_training.json", ("bench_torch",)
    ),
    f"{_BENCH}/bench_layers.json": Report(
        f"logunif-kl bench --layers --json {_BENCH}/bench_layers.json", ("bench_layers",)
    ),
    "validation/results/capability/capability.json": Report(
        "python -m validation.tools.capability", ("capability",)
    ),
    "validation/results/neighbours/neighbours.json": Report(
        "python -m validation.accuracy.neighbours measure KERNEL", ("neighbours",)
    ),
    "validation/results/cuda/cuda.json": Report("python -m validation.cuda", ("cuda",)),
    "validation/results/fuzz/fuzz.json": Report(
        "python -m validation.fuzz --minutes 30 --json validation/results/fuzz/fuzz.json",
        ("fuzz",),
    ),
    "docs/_static/compare.png": _COMPARE,
    "validation/results/compare/compare.json": _COMPARE,
    **_experiment("gradient_variance", plot=True),
    **_experiment("shared_noise"),
    **_experiment("variance_assumptions"),
    **_experiment("correlated_assumptions"),
    **_experiment("speed"),
    **_experiment("test_error", plot=True),
    **_experiment("input_rate"),
    **_experiment("constraint", plot=True),
    **_experiment("extra_variance", plot=True),
    **_experiment("lenet_300_100", plot=True, paper="molchanov2017"),
    **_experiment("lenet_5_caffe", plot=True, paper="molchanov2017"),
    **_experiment("threshold", plot=True, paper="molchanov2017"),
    **_experiment("gradients", paper="molchanov2017"),
    **_experiment("inference", paper="molchanov2017"),
    **_experiment("normaliser", plot=True, paper="hron2017", data=False),
    **_experiment("chains", plot=True, paper="hron2017", data=False),
    **_experiment("correlated", plot=True, paper="hron2017", data=False),
    **_experiment("parametrisations", plot=True, paper="hron2017", data=False),
    **_experiment("remarks", paper="hron2017", data=False),
    **_experiment("slides", paper="hron2017", data=False),
    **_experiment("moments", plot=True, paper="haussmann2018"),
    **_experiment("learning_curves", plot=True, paper="haussmann2018"),
    **_experiment("regression", paper="gal2016", plot=True, data=False),
    **_experiment("rotated", paper="gal2016", plot=True),
    **_experiment("out_of_distribution", paper="gal2016", plot=True),
    **_experiment("calibration", paper="gal2016", plot=True),
    "validation/results/ladder/ladder.json": Report("python -m validation.ladder", ("ladder",)),
    "validation/results/monte_carlo/monte_carlo.json": Report(
        "python -m validation.monte_carlo", ("monte_carlo",)
    ),
    "validation/results/papers/papers.json": Report("python -m validation.papers", ("papers",)),
    "validation/results/validate/kingma_figure_2.png": _VALIDATE,
    "validation/results/validate/validate.json": _VALIDATE,
    "validation/results/validate/validate_errors.png": _VALIDATE,
}
