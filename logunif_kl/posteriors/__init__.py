"""-KL(q || p) of any posterior q over a weight to the log-uniform prior p(w) = C/|w|.

For every density q for which it is finite (Kingma et al. 2015, Eq. 38, where c = 2 C is the prior
density of log|w|)::

    -KL = log c + log(1/2) + H(q) - E log|w| = log C + H(q) - E log|w|

H(q) - E log|w| is the joint entropy of log|w| and the sign of w (their Eq. 13 has it without the
sign). This entropy does not change when w is multiplied by a number (their Eq. 42) or replaced by
1/w, and w -> w^k adds log|k|. Most of the closed forms here follow from these three facts and the
entropy of a Gamma distribution.

`neg_kl_posterior` computes -KL of a distribution of `scipy.stats`, of a kernel density estimate or
of a `Density`, and `kl_posterior` is its negative. `neg_kl_split` computes the parts for the sign
and for the magnitude (their Eq. 37). `dropout_posterior` makes the posterior w = theta eps.
`TruncatedLogUniform` is a proper prior. `significant_digits` expresses a KL as a number of digits,
as their appendix A does.
"""

from ._density import Density as Density
from ._digits import significant_digits as significant_digits
from ._dropout import dropout_posterior as dropout_posterior
from ._posterior import kl_posterior as kl_posterior
from ._posterior import neg_kl_posterior as neg_kl_posterior
from ._priors import TruncatedLogUniform as TruncatedLogUniform
from ._split import Split as Split
from ._split import neg_kl_split as neg_kl_split

__all__ = [
    "Density",
    "Split",
    "TruncatedLogUniform",
    "dropout_posterior",
    "kl_posterior",
    "neg_kl_posterior",
    "neg_kl_split",
    "significant_digits",
]
