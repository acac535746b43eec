"""# Hron, Matthews and Ghahramani 2017: the experiments

*Variational Gaussian Dropout is not Bayesian*, arXiv:1711.02989. What the paper states in sections
2 to 4, each number next to its prediction. {doc}`claims` decides what the paper states in formulas.
These experiments need no images; `--quick` runs a small form in seconds.
"""
