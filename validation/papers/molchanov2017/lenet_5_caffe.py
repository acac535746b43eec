"""Table 1: LeNet-5-Caffe.

As LeNet-300-100. On a CPU an epoch takes several times as long, so there are fewer epochs, and two
of the five divergences.
"""

from validation.papers.molchanov2017 import comparison

EXPERIMENT = comparison.experiment(
    __file__,
    place=2,
    full={**comparison.FULL, "epochs": 80, "cases": ["exact", "molchanov"]},
    quick={"cases": comparison.FULL["cases"]},
    noise=("*.sparse.largest_difference", "*.by_threshold.*"),
)

if __name__ == "__main__":
    EXPERIMENT.run()
