"""Table 1: LeNet-5-Caffe.

As LeNet-300-100. On a CPU an epoch takes several times as long, so there are fewer epochs, and two
of the five divergences.
"""

from validation.papers.molchanov2017 import comparison

FULL = {**comparison.FULL, "epochs": 80, "cases": ["exact", "molchanov"]}
QUICK = {"cases": comparison.FULL["cases"]}
NOISE = ("*.sparse.largest_difference", "*.by_threshold.*")
EXPERIMENT = comparison.experiment(
    __file__, "lenet_5_caffe", comparison.show, FULL, QUICK, place=2, noise=NOISE
)
EXPERIMENT.run(__name__)
