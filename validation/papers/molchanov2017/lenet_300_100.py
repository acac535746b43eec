"""Table 1: LeNet-300-100 on MNIST, sparse by the exact divergence and by its approximations.

See `comparison.py` for how the networks are trained and compared.
"""

from validation.papers.molchanov2017 import comparison

EXPERIMENT = comparison.experiment(
    __file__,
    title="Table 1: LeNet-300-100",
    about=comparison.ABOUT + "The paper prints one network.",
    place=1,
    full={"epochs": 200, **comparison.FULL},
    noise=("*.sparse.largest_difference",),
)

if __name__ == "__main__":
    EXPERIMENT.run()
