"""# Gal 2016: dropout as a Bayesian network

The spread of the samples warns of unknown inputs: the mutual information of class and weights is
larger for most turned digits and for most images that are not digits than for test digits. It is
not always the best score: the entropy of the network without noise separates several of these sets
as well, or better.

After *Uncertainty in Deep Learning* (thesis, 2016), and Gal and Ghahramani, *Dropout as a Bayesian
Approximation*, arXiv:1506.02142. {func}`logunif_kl.torch.nn.predict` draws the noise of a trained
network again. The mutual information says how much the samples contradict each other. The
experiments are ours, modelled on their figures, so there are no printed numbers to compare with.
{doc}`claims` tests a blog post about them, "Dropout as Bayesian neural networks"; our copy of it
names neither an author nor an address.

## How they were run

The networks are 784-256-256-10, trained for 10 epochs on MNIST; the experiments on digits share
them. See {doc}`kingma2015` for how to pass MNIST and how to resume a run. Nothing is downloaded, so
the other images are made from what is installed.
"""
