"""What Haussmann et al. 2018 say of their results, and what is taken from their code.

The text that we have of the first version of arXiv:1805.07654 has lost the numbers of its tables
and formulas: the test errors of Tables 1 to 3, the shares that are pruned, and the learning rate.
What it says in words is decided by `learning_curves`. The published code
(github.com/manuelhaussmann/vbp) has the sizes of the network.
"""

CHANNELS, KERNEL, STRIDE, HIDDEN = (20, 50), 5, 2, 500  # the code: a strided LeNet-5 for MNIST
EPOCHS = 100  # section 4: Adam, with a rate that falls linearly to zero over 100 epochs
STEEPNESS = 100.0  # the code: C of the relaxed step
THRESHOLD = 3.0  # section 4: after Molchanov et al. 2017, log alpha > 3 is pruned

STATEMENTS = {
    "error": "VBP has a lower test error than sampled variational dropout",
    "steeper": "VBP has the steeper learning curve",
    "majority": "VBP prunes the far majority of the weights",
    "less_sparse": "VBP is less sparse than sampled variational dropout",
    "fixed": "log α > 3 prunes more than the histogram's threshold, at a greater cost in accuracy",
}
"""Section 4, of all four data sets ("majority": of three)."""
