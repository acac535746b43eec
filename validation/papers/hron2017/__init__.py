"""# Hron, Matthews and Ghahramani 2017: the experiments

*Variational Gaussian Dropout is not Bayesian*, arXiv:1711.02989. The statements of sections 2 to 4,
with each number next to its prediction. {doc}`claims` decides the paper's statements in formulas.
These experiments need no images; `--quick` runs a small form in seconds.
"""
