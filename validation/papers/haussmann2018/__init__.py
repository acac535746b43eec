"""# Haussmann, Hamprecht and Kandemir 2018: the experiments

Of the paper's statements about Figure 2 and Table 2,
{computed}`held("haussmann2018.learning_curves")` hold on MNIST, over 100 epochs, and the others are
not decided. Variance back-propagation (VBP) has the steeper learning curve, and prunes the far
majority of the weights. At the end its error is lower than that of sampling for each of three
seeds, but the 95 % interval of the difference includes 0. It is more sparse than sampling for each
seed, where the paper says less, and that interval includes 0, too. Whether log α > 3
prunes more than the histogram's threshold depends on what counts as a mode of the histogram.

Of the statements about Table 1, {computed}`held("haussmann2018.dense", "OF_TABLE_1")` hold in short
runs; the others are not decided, because neither the prior nor the baseline is the paper's. With
the prior and the initial values of the published code, and Bayes by Backprop as the baseline,
{computed}`held("haussmann2018.published_dense")` hold: the 95 % interval of the difference between
VBP and the baseline includes 0 at each of three widths. There the mean of networks that are sampled
from VBP's posterior errs more than the network of its means, and more so in wider networks. On
Fashion-MNIST, with the dense networks, VBP has the lower error without noise for each seed; in the
mean of samples it has not. On CIFAR-10, compressed as JPEG, with a convolutional network of 30
epochs, {computed}`held("haussmann2018.colour")` statements about the curves hold: VBP has the lower
error and the steeper curve for each seed, but the 95 % intervals include 0. Both methods keep half
a percent of the weights.

*Sampling-Free Variational Inference of Bayesian Neural Networks by Variance Backpropagation*, by
Haussmann, Hamprecht and Kandemir, UAI 2019, arXiv:1805.07654. Our copy is of the first version of
2018, *Sampling-Free Variational Inference of Bayesian Neural Nets*, whose first author is Kandemir.
We have not compared with the version of 2019, which states other things and has other experiments.
Our copy has lost the numbers of the tables, the formulas within sentences, and the bodies of Eqs. 1
to 4 and of Propositions 1 and 2. So this page tests statements in words, and a verdict on one of
these equations or propositions judges our reconstruction of it.

The [published code](https://github.com/manuelhaussmann/vbp) at its last commit, f70be32, belongs to
the version of 2019. Its default is `sample=True`: one sample of the outputs, N(mean, variance), in
each step. The other branch is the second-order Taylor expansion ("delta method"), which is
``form="taylor"`` here. Its prior is normal with precision 10, and its initial values are means from
N(0, 1/n), log σ² near -9 and biases of 0. Ours are torch's means and log σ² of the layers' default.

## How they were run

See {doc}`kingma2015` for how to pass MNIST and how to resume a run. The experiment on Fashion-MNIST
takes these images by `--data` or `LOGUNIF_KL_FASHION_MNIST`, and that on CIFAR-10 by `--data` or
`LOGUNIF_KL_CIFAR10`; `python -m validation.reproduce` takes all, by `--data`, `--fashion-mnist` and
`--cifar10`. Run the learning curves with
`--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results.

## What was not tried

- Figure 2 with the initial values of the published code: the run can be resumed, and has not ended
  (4 to 9 core hours). Sampled training with a warm-up, and the other two forms of the bound, were
  trained for the first epochs only.
- Figure 2 and Table 2 with the published pixels of CIFAR-10, and on SVHN and CIFAR-100, which we do
  not have. The networks that were trained on Fashion-MNIST in their place are those of Table 1, not
  the convolutional ones.
- Table 1's scale mixture with 800 and 1200 units (about 3 core hours).
"""
