"""# Haussmann, Hamprecht and Kandemir 2018: the experiments

Of the paper's statements about Figure 2 and Table 2,
{computed}`held("haussmann2018/learning_curves")` hold for each seed on MNIST, over 100 epochs.
Variance back-propagation (VBP) has a lower test error than sampling, at the end and in the mean of
the first ten epochs, and prunes the far majority of the weights. It is not less sparse than
sampling; nor is it with a warm-up, over the first 20 epochs. Whether log α > 3 prunes more than the
histogram's threshold depends on what counts as a mode of the histogram; by our rule it does not.

Of the statements about the dense networks of Table 1, {computed}`held("haussmann2018/dense")` hold
in short runs with untuned priors. On Fashion-MNIST, with these networks, VBP has the lower error
without noise; in the mean of samples it has not.

*Sampling-Free Variational Inference of Bayesian Neural Networks by Variance Backpropagation*,
arXiv:1805.07654. Our copy is of the first version, and its tables have lost their numbers, so this
page tests its statements in words.

## How they were run

See {doc}`kingma2015` for how to pass MNIST and how to resume a run. The experiment on Fashion-MNIST
takes these images by `--data` or `LOGUNIF_KL_FASHION_MNIST`; `python -m validation.reproduce` takes
both data sets, by `--data` and `--fashion-mnist`. Run the learning curves with
`--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results.

## What was not tried

- Figure 2 with the authors' initial values. Sampled training with a warm-up, and the other two
  forms of the bound, were trained for the first epochs only.
- Figure 2 and Table 2 on SVHN, CIFAR-10 and CIFAR-100, which we do not have. The networks that
  were trained on Fashion-MNIST in their place are those of Table 1, not the convolutional ones.
- Table 1 with 800 and 1200 units, and tuned priors.
"""
