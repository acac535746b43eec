"""Table 1: LeNet-300-100.

Adam, minibatches of 200, a learning rate that falls from 0.001 to 0, log σ² from -10, and a weight
of the KL that rises from epoch 5 to 20. Weights with log α > 3 are pruned. The networks of a seed
start alike; “other noise” is the exact divergence with another order of the examples and other
noise. The paper prints one network.
"""

from validation.papers.molchanov2017 import comparison

FULL = {"epochs": 200, **comparison.FULL}
EXPERIMENT = comparison.experiment(
    __file__,
    "lenet_300_100",
    comparison.show,
    FULL,
    {},
    place=1,
    noise=("*.sparse.largest_difference",),
)
EXPERIMENT.run(__name__)
