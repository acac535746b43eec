"""VBP against sampled variational dropout on Fashion-MNIST, with the networks of `dense.py`."""

from validation.experiment import Experiment
from validation.papers.haussmann2018 import dense

EXPERIMENT = Experiment(
    __file__,
    dense.measure,
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
    images="Fashion-MNIST",
)

if __name__ == "__main__":
    EXPERIMENT.run()
