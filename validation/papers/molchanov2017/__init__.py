"""# Molchanov, Ashukha and Vetrov 2017: the experiments

LeNet-300-100 with the exact divergence keeps one weight in {computed}`lenet("compression"):.0f` and
errs on {computed}`lenet("test_error_pruned")["mean"]:.2f` % of the test images. With the paper's
approximation it keeps one in {computed}`lenet("compression", "molchanov"):.0f` and errs on
{computed}`lenet("test_error_pruned", "molchanov")["mean"]:.2f` %. The paper prints one in
{computed}`result(LENET)["paper"]["compression"]:.0f` and
{computed}`result(LENET)["paper"]["error_percent"]:.2f` %.

*Variational Dropout Sparsifies Deep Neural Networks*, arXiv:1701.05369. Its Table 1 on MNIST, with
the exact divergence and with approximations. {doc}`claims` decides the paper's statements about Eq.
14.

## How they were run

See {doc}`kingma2015` for how to pass MNIST and how to resume a run. Run the two networks with
`--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results.
"""
