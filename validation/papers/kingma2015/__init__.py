"""# Kingma, Salimans and Welling 2015: the experiments

Table 1 comes out much as in the paper, Table 2 and Figure 1a only in part.

- Table 1: {computed}`near("table_1")` ratios of variances are within a factor of 2 of the paper's
  after as many epochs. Where the test error is the paper's, {computed}`near("table_1", True)` are.
- Table 2: {computed}`near("table_2")`. The estimators have the paper's order, but local
  reparameterisation gains less here than in the paper, and without noise the variance after 100
  epochs is far smaller. "Table 2 by the training likelihood" follows each ratio: it falls as the
  network fits the training images, at two learning rates along nearly the same curve. The four
  ratios of the paper's 100 epochs are those of our network after 3 to 10 epochs, when its test
  error is still 1.7 to 3.0 %. So the paper's network fits its training images less closely at a
  lower test error. Why is unexplained; so is one ratio, 0.49, that ours never has.
- Figure 1a: {computed}`held("kingma2015.test_error")` statements hold, and the others are not
  decided. Variational dropout A gains the most in the narrowest networks and learns far lower rates
  there, as the paper says. Variational dropout B does not: with 100 and 200 units it is worse than
  Gaussian dropout B. "Figure 1a: B in narrow networks", with more training images and run at 100
  units only, finds no such difference. That A2 beats a method is shown at each width against
  Gaussian dropout A alone.
- Eqs. 4 and 5: {computed}`held("kingma2015.minibatch_size")` statements about the variance of the
  gradient hold on a trained network, and none fails. With local reparameterisation it is inversely
  proportional to the size of the minibatch. With one sample of the weights for a minibatch it
  decreases more slowly, because the noise makes the examples' gradients covary. Among 1000 examples
  these covariances are most of the variance, except in the bottom layer with independent noise
  after 10 epochs, where this is not decided.
- Convergence (abstract): with minibatches of 1000, local reparameterisation fits the training
  images after 6 epochs as closely as one weight sample for each minibatch does after 20. With
  minibatches of 100 it takes 6 to 9 epochs. The paper gives no number for "much faster".
- Speed: local reparameterisation takes a training step
  {computed}`result("kingma2015/speed")["per_example_over_local"]:.0f` times as fast as a weight
  sample for each data point; the paper has
  {computed}`result("kingma2015/speed")["paper_per_example_over_local"]:.0f`.

*Variational Dropout and the Local Reparameterization Trick*, arXiv:1506.02557. {doc}`claims` tests
its formulas.

## How they were run

Pass MNIST with `--data`, or by the environment variable `LOGUNIF_KL_MNIST`: an .npz file with
`x_train`, `y_train`, `x_test` and `y_test`, such as the `mnist.npz` of Keras, or a folder with the
four IDX files, plain or gzipped. Pass CIFAR-10 likewise, or by `LOGUNIF_KL_CIFAR10`: such an .npz
file, or the folder of its binary files. An .npz file can also hold the images as JPEG files, one
after the other: `train_jpeg`, `train_ends`, `train_labels`, and the same of `test`. Nothing is
downloaded. `--quick` runs a small form on scikit-learn's digits, in seconds. To resume a run that
was ended, give the same command again: its checkpoints are in `build/`, or in the folder that an
experiment's own command takes as `--work`. Run `python -m validation.papers.kingma2015.test_error
--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results. All experiments need what `pip install -r validation/frameworks.txt` installs.

## What was not tried

- Table 2 by the training likelihood with other minibatches, rates of dropout at the input and
  weights of the divergence.
- Figure 1a with five seeds, 200 epochs for each run, widths up to 1200 (5 core hours at 800 units,
  with three seeds and 40 epochs; training the seeds together by `vmap` would take longer, see
  {doc}`/guide/performance_tables`), the divergence counted once for each α, and a margin fixed
  before.
- Figure 1b with the pixels of CIFAR-10 instead of JPEG files, with k = 2 and 3, and until the error
  stops falling: most runs reached the limit of 30 epochs.
"""
