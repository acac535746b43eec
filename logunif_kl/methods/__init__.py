"""The published methods to compute -KL, with their errors against the exact value.

Every method has the signature of `logunif_kl.neg_kl`, ``method(log_alpha, *, zero_at=inf,
log_c=None)``, and a gradient ``method_grad(log_alpha)``. `monte_carlo` returns an estimate and its
standard error. `dawson_grad` gives the gradient only. `zero_at` and `log_c` add the same constant
to a method and to the exact value, so they do not change a method's error. `METHODS` holds each
method's source, the range where it may be used, and its worst error there. ``logunif-kl validate``
checks these errors.

The methods take the arrays and the tensors that `logunif_kl.neg_kl` takes, except `monte_carlo`,
which takes no tensors. For a tensor, the derivative of a method is its gradient. The closed forms
and `kummer` can be compiled, vectorised and differentiated any number of times (once in PyTensor).
`series`, `quadrature` and `dawson_grad` copy tensors to NumPy on the CPU, and can be differentiated
once: PyTorch runs them outside of ``torch.compile`` and ``vmap``, JAX by a callback.

To compute -KL, use `logunif_kl.neg_kl`, which is exact and faster. Use the methods to reproduce
papers, to interpret published numbers, and to compare approximations.
"""

from ._dawson import dawson_grad as dawson_grad
from ._extrema import Extremum as Extremum
from ._kingma import KINGMA as KINGMA
from ._kingma import kingma as kingma
from ._kingma import kingma_grad as kingma_grad
from ._kummer import KUMMER as KUMMER
from ._kummer import kummer as kummer
from ._kummer import kummer_grad as kummer_grad
from ._lower_bound import LOWER_BOUND as LOWER_BOUND
from ._lower_bound import lower_bound as lower_bound
from ._lower_bound import lower_bound_grad as lower_bound_grad
from ._measure import Measurement as Measurement
from ._measure import measure as measure
from ._method import WIDE as WIDE
from ._method import Declared as Declared
from ._method import Interval as Interval
from ._method import Method as Method
from ._method import Methods as _Methods
from ._molchanov import MOLCHANOV as MOLCHANOV
from ._molchanov import molchanov as molchanov
from ._molchanov import molchanov_grad as molchanov_grad
from ._monte_carlo import MONTE_CARLO as MONTE_CARLO
from ._monte_carlo import monte_carlo as monte_carlo
from ._monte_carlo import monte_carlo_grad as monte_carlo_grad
from ._quadrature import QUADRATURE as QUADRATURE
from ._quadrature import quadrature as quadrature
from ._quadrature import quadrature_grad as quadrature_grad
from ._series import SERIES as SERIES
from ._series import series as series
from ._series import series_grad as series_grad

_EVERY = (KINGMA, MOLCHANOV, LOWER_BOUND, SERIES, KUMMER, QUADRATURE, MONTE_CARLO)

#: The old name of `Declared`, from version 0.1.0.
Claim = Declared

#: The methods by name: closed forms first, then numerical methods, then sampling.
METHODS: dict[str, Method] = _Methods((method.name, method) for method in _EVERY)
