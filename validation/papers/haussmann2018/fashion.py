"""VBP against sampling on Fashion-MNIST.

The dense networks and settings of Table 1 above, on Fashion-MNIST (Debian's package
dataset-fashion-mnist). The paper compares VBP with sampling on SVHN and CIFAR, with convolutional
networks.
"""

from validation.experiment import Experiment
from validation.papers.haussmann2018 import dense

EXPERIMENT = Experiment(
    __file__,
    dense.measure,
    dense.of_all,
    place=6,
    seeds=(1, 2, 3),
    full={**dense.FULL, "priors": ["log_uniform", "log_uniform_vbp"]},
    quick=dense.QUICK,
    parted=True,
    images="Fashion-MNIST",
)

if __name__ == "__main__":
    EXPERIMENT.run()
