"""Table 1, LeNet-5-Caffe: the settings of the authors' script.

See `comparison.py` for how the networks are trained.
"""

from validation.papers.molchanov2017 import comparison
from validation.papers.molchanov2017.authors_settings import show

EXPERIMENT = comparison.experiment(
    __file__,
    network="lenet_5_caffe",
    show=show,
    title="Table 1: LeNet-5-Caffe with the settings of the authors' script",
    about="As LeNet-5-Caffe above, but with the settings of the script that the authors published: "
    "200 epochs with minibatches of 100, initial means from N(0, 0.01²), biases of zero, ReLU "
    "after the convolutions, a likelihood without the means with log α ≥ 3, and images less the "
    "mean of the training images. The script begins with a network that was trained for 200 epochs "
    "on shifted images; here the weight of the KL is 0 in the first five epochs.",
    place=8,
    full={"epochs": 200, **comparison.FULL, "batch_size": 100, "cases": ["script_conv"]},
    # With a warm-up that is over sooner, small means are all pruned.
    quick={"warm_up": [3, 6]},
    noise=("*.sparse.largest_difference", "*.by_threshold.*"),
)

if __name__ == "__main__":
    EXPERIMENT.run()
