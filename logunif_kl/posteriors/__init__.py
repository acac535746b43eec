"""-KL(q || p) of any posterior q over a weight to the log-uniform prior p(w) = C/|w|.

The Gaussian is one posterior of many. For every density q with a finite answer (Kingma et al.
2015, Eq. 38, where c = 2 C is the prior density of log|w|)::

    -KL = log c + log(1/2) + H(q) - E log|w| = log C + H(q) - E log|w|

H(q) - E log|w| is the entropy of log|w| taken together with the sign of w, which is their Eq. 13
with the sign kept. It does not change when w is multiplied by a number (their Eq. 42), nor when
w becomes 1/w, and w -> w^k moves it by log|k|: most of the closed forms here are these three
remarks and one function of Gamma's.

`neg_kl_posterior` gives the value, `neg_kl_split` its parts for the sign and for the magnitude
(their Eq. 37), `dropout_posterior` makes w = theta eps, and `significant_digits` reads a KL as
their appendix A does.
"""

from ._digits import significant_digits as significant_digits
from ._dropout import dropout_posterior as dropout_posterior
from ._posterior import neg_kl_posterior as neg_kl_posterior
from ._split import Split as Split
from ._split import neg_kl_split as neg_kl_split

__all__ = [
    "Split",
    "dropout_posterior",
    "neg_kl_posterior",
    "neg_kl_split",
    "significant_digits",
]
