r"""F, -KL and their derivatives to any number of digits, each from two independent definitions.

Every function evaluates two definitions, each at its own precision. Both precisions are raised
until the values agree to the requested digits and twelve more bits. The definitions are

- at moderate u, the alternating series 2F2 and 1F1, and Hron's Eq. 1 or Dawson's integral;
- at large u, the asymptotic series with a proved bound on its remainder, and the expectation of
  log|eps| that defines the divergence.

The functions ``enclosure*`` use python-flint, and return balls proved to contain the value.

Arguments are single numbers: float, int, str, mpf, Fraction, Decimal or a NumPy scalar. Floats are
taken exactly, and a string means the exact decimal. A result is an ``mpmath.mpf`` with ``dps``
digits, whatever ``mpmath.mp.dps`` is. Arithmetic on results rounds to ``mpmath.mp.dps`` as usual,
so use ``mpmath.workdps`` to keep their digits. mpmath's exponents are integers of any size:
``neg_kl(1e308)`` is the number -exp(-1e308)/2, not zero.

The precision of ``mpmath.mp`` is not changed. A lock serialises calls from several threads.

Notation: u = mu^2/(2 sigma^2) = 1/(2 alpha), x = log alpha, and F is :func:`kl_gap`.

References
----------
.. [1] J. Hron, A. G. de G. Matthews, Z. Ghahramani, "Variational Gaussian Dropout is not
   Bayesian", 2017, arXiv:1711.02989, Eqs. 1 to 3.
.. [2] D. P. Kingma, T. Salimans, M. Welling, "Variational Dropout and the Local
   Reparameterization Trick", 2015, arXiv:1506.02557.
"""

from ._enclosure import (
    enclosure,
    enclosure_gap,
    enclosure_gap_grad,
    enclosure_gap_hess,
    enclosure_grad,
    enclosure_hess,
)
from ._gap import kl_gap, kl_gap_grad, kl_gap_hess
from ._isotropic import (
    neg_kl_complex,
    neg_kl_complex_grad,
    neg_kl_complex_hess,
    neg_kl_vector,
    neg_kl_vector_grad,
)
from ._neg_kl import neg_kl, neg_kl_grad, neg_kl_hess, neg_kl_normal, neg_kl_normal_grad

__all__ = [
    "enclosure",
    "enclosure_gap",
    "enclosure_gap_grad",
    "enclosure_gap_hess",
    "enclosure_grad",
    "enclosure_hess",
    "kl_gap",
    "kl_gap_grad",
    "kl_gap_hess",
    "neg_kl",
    "neg_kl_complex",
    "neg_kl_complex_grad",
    "neg_kl_complex_hess",
    "neg_kl_grad",
    "neg_kl_hess",
    "neg_kl_normal",
    "neg_kl_normal_grad",
    "neg_kl_vector",
    "neg_kl_vector_grad",
]
