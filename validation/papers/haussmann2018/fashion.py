"""VBP against sampled variational dropout on Fashion-MNIST, with the networks of `dense.py`."""

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.papers.haussmann2018 import dense
from validation.training.data import DataError


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    if dataset.name == "MNIST":
        raise DataError("--data names MNIST: name Fashion-MNIST, as .npz or IDX files")
    return dense.measure(settings, dataset, parts)


EXPERIMENT = Experiment(
    __file__,
    measure,
    dense.of_all,
    title="Table 2 on other images: Fashion-MNIST",
    about="VBP against sampling, with the networks and settings of Table 1 above, on Fashion-MNIST "
    "(Debian's package dataset-fashion-mnist) in the place of the paper's SVHN and CIFAR.",
    place=6,
    seeds=(1, 2, 3),
    full={**dense.FULL, "priors": ["log_uniform", "log_uniform_vbp"]},
    quick=dense.QUICK,
    choose=("epochs", "priors"),
    parted=True,
)

if __name__ == "__main__":
    EXPERIMENT.run()
