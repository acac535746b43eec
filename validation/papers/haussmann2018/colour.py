"""Figure 2 and Table 2: learning curves on CIFAR-10.

As on MNIST above, with 32 and 64 channels and 500 units, and 30 epochs. The paper's network for
CIFAR-10 has “more filters per layer”; it does not say how many. The images are standardised.
"""

from validation.experiment import Dataset, Experiment, Parts, Record
from validation.papers.haussmann2018 import learning_curves

NOTE = (
    "The images are CIFAR-10, compressed as JPEG, not the published ones, so the methods can be "
    "compared with each other, and not with the paper's numbers."
)


statements = learning_curves.statements


def measure(settings: Record, dataset: Dataset, parts: Parts) -> Record:
    return learning_curves.measure(settings, dataset.standardised(), parts)


def show(record: Record) -> str:
    return learning_curves.show(record, NOTE)


FULL = {**learning_curves.FULL, "methods": ["vbp", "sampled"], "epochs": 30}
EXPERIMENT = Experiment(
    __file__,
    measure,
    show,
    FULL,
    learning_curves.QUICK,
    place=11,
    seeds=(1, 2, 3),
    choose=("methods",),
    parted=True,
    images="CIFAR-10",
    draw=learning_curves.draw,
)
EXPERIMENT.run(__name__)
