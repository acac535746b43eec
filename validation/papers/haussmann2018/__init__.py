"""# Haussmann, Hamprecht and Kandemir 2018: the experiments

Of the {computed}`len(result("haussmann2018/learning_curves")["statements"])` statements about the
learning curves below,
{computed}`sum(s["holds"] for s in result("haussmann2018/learning_curves")["statements"])` hold for
each seed: variance back-propagation learns faster and ends with a lower test error than sampling.
Of those about dense networks in Table 1,
{computed}`sum(s["holds"] for s in result("haussmann2018/dense")["statements"])` of
{computed}`len(result("haussmann2018/dense")["statements"])` hold.

*Sampling-Free Variational Inference of Bayesian Neural Networks by Variance Backpropagation*,
arXiv:1805.07654, first version. Our copy of the paper has tables without numbers, so this page
tests its statements in words.

## How they were run

See {doc}`kingma2015` for how to pass MNIST and how to resume a run. Run the learning curves with
`--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results.

## What was not tried

- Figure 2 with the authors' initial values, with a warm-up of sampled training, and with the other
  two forms of the bound. `learning_curves --methods` takes the last three. Nor was a sampled bound
  computed for the networks that VBP trained, to find why they are less sparse.
- Table 1 with 800 and 1200 units, and tuned priors.
"""
