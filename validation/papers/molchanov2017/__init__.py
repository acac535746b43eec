"""# Molchanov, Ashukha and Vetrov 2017: the experiments

*Variational Dropout Sparsifies Deep Neural Networks*, arXiv:1701.05369. Its Table 1 on MNIST, with
the exact divergence and with approximations. {doc}`claims` decides the paper's statements about Eq.
14. See {doc}`kingma2015` for how to pass MNIST and how to resume a run. Run the two networks with
`--part 1/2` and `--part 2/2` in two processes, then run the command without `--part` to merge their
results.
"""
