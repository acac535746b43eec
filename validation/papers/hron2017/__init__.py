"""# Hron, Matthews and Ghahramani 2017: the experiments

The posterior under the log-uniform prior cannot be normalised, as Proposition 1 says: down to a
cut-off of 10⁻³⁰⁰ the normaliser grows in proportion to the logarithm of the cut-off.

*Variational Gaussian Dropout is not Bayesian*, arXiv:1711.02989. The statements of sections 2 to 4,
with each number next to its prediction. {doc}`claims` tests the paper's formulas.

## How they were run

All but `overfitting` need no images: name the experiments, as in `python -m validation.reproduce
hron2017.remarks hron2017.chains`, to run them without data. `--quick` runs a small form in seconds.
"""
