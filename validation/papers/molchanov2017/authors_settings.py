"""Table 1: the settings of the authors' scripts.

LeNet-300-100 with the exact divergence, as above but with minibatches of 100 and four settings of
the authors' script for this network: the learning rate is constant over the first half of the
epochs and then falls to 0; the initial means are from N(0, 0.01²) and the biases zero; the
likelihood leaves out the means with log α ≥ 3; and the mean of the training images is subtracted
from all images. Each setting is left out, three of them with the first seed only. Without the first
setting, the rate falls linearly from the start.
"""

from validation.experiment import Record
from validation.papers.molchanov2017 import comparison

ONCE = ["no_start", "no_masking", "no_centring"]  # with the first seed only
CASES = ["script", "no_rate", *ONCE]


def show(record: Record) -> str:
    good = ", ".join(c["title"] for c in record["summary"] if c["as_good_as_the_paper"]) or "none"
    return f"{comparison.of_all(record)}\n\nNo worse than the paper in both numbers: {good}."


FULL = {"epochs": 200, **comparison.FULL, "batch_size": 100, "cases": CASES, "once": ONCE}
# With a warm-up that is over sooner, small means are all pruned.
QUICK = {"warm_up": [3, 6]}
EXPERIMENT = comparison.experiment(
    __file__, "lenet_300_100", show, FULL, QUICK, place=6, noise=("*.sparse.largest_difference",)
)
EXPERIMENT.run(__name__)
