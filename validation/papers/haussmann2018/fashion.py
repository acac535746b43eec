"""VBP against sampling on Fashion-MNIST.

The dense networks and settings of Table 1 above, on Fashion-MNIST (Debian's package
dataset-fashion-mnist). The paper compares VBP with sampling on SVHN and CIFAR, with convolutional
networks.
"""

from validation.experiment import Experiment
from validation.papers.haussmann2018 import dense

FULL = {**dense.FULL, "priors": ["log_uniform", "log_uniform_vbp"]}
EXPERIMENT = Experiment(
    __file__,
    dense.measure,
    dense.of_all,
    FULL,
    dense.QUICK,
    place=6,
    seeds=(1, 2, 3),
    parted=True,
    images="Fashion-MNIST",
)
EXPERIMENT.run(__name__)
