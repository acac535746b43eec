r"""Compute -KL(q || p) from any posterior q of one weight to the log-uniform prior p(w) = C/|w|.

If -KL is finite, then with the entropy H(q) and the prior density c = 2 C of log|w| (Kingma et al.
2015, Eq. 38):

.. math::

    -\mathrm{KL} = \log c + \log\tfrac12 + H(q) - \mathrm{E} \log\lvert w\rvert
    = \log C + H(q) - \mathrm{E} \log\lvert w\rvert

H(q) - E log|w| is the joint entropy of log|w| and the sign of w (their Eq. 13 leaves out the sign).
Multiplying w by a number (their Eq. 42) or replacing w by 1/w does not change this entropy, and
replacing w by w^k adds log|k|. Most closed forms here follow from these facts and the entropy of a
Gamma distribution.

`neg_kl_posterior` computes -KL of a distribution of `scipy.stats`, of a kernel density estimate or
of a `Density`, and `kl_posterior` is its negative. `neg_kl_split` splits -KL into a part for the
sign and a part for the magnitude of w (their Eq. 37). `dropout_posterior` makes the posterior of a
weight with dropout noise. `TruncatedLogUniform` and `HorseshoePrior` are proper priors, and
`PowerPrior` is another improper one. `significant_digits` converts a KL to a number of significant
digits (their appendix A).
"""

from ._density import Density as Density
from ._digits import significant_digits as significant_digits
from ._dropout import dropout_posterior as dropout_posterior
from ._posterior import kl_posterior as kl_posterior
from ._posterior import neg_kl_posterior as neg_kl_posterior
from ._priors import HorseshoePrior as HorseshoePrior
from ._priors import PowerPrior as PowerPrior
from ._priors import TruncatedLogUniform as TruncatedLogUniform
from ._split import Split as Split
from ._split import neg_kl_split as neg_kl_split

__all__ = [
    "Density",
    "HorseshoePrior",
    "PowerPrior",
    "Split",
    "TruncatedLogUniform",
    "dropout_posterior",
    "kl_posterior",
    "neg_kl_posterior",
    "neg_kl_split",
    "significant_digits",
]
