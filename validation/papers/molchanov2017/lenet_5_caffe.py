"""Table 1: LeNet-5-Caffe.

As LeNet-300-100. On a CPU an epoch takes several times as long, so there are fewer epochs, and two
of the five divergences.
"""

from validation.papers.molchanov2017 import comparison

FULL = {**comparison.FULL, "epochs": 80, "cases": ["exact", "molchanov"]}
QUICK = {"cases": comparison.FULL["cases"]}
EXPERIMENT = comparison.experiment(
    __file__,
    place=2,
    full=FULL,
    quick=QUICK,
    noise=("*.sparse.largest_difference", "*.by_threshold.*"),
)
EXPERIMENT.run(__name__)
