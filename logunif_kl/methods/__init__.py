"""Every published way to compute -KL, each measured against the exact one.

All have the signature of `logunif_kl.neg_kl`, ``method(log_alpha, *, zero_at=inf, log_c=None)``,
and a gradient ``method_grad(log_alpha)``; `monte_carlo` returns a standard error beside the
estimate, and of Dawson's form there is the gradient alone. A convention moves a method and the
exact value by the same number, so a method's error does not depend on it. `METHODS` says of each
where it comes from, where it may be used, and its worst error there; ``logunif-kl validate`` holds
each to that.

Which one should I choose? None, for results: `logunif_kl.neg_kl` is exact and faster. They are here
to reproduce papers, to read other people's numbers, and to be compared.
"""

from ._dawson import dawson_grad as dawson_grad
from ._kingma import KINGMA
from ._kingma import kingma as kingma
from ._kingma import kingma_grad as kingma_grad
from ._kummer import KUMMER
from ._kummer import kummer as kummer
from ._kummer import kummer_grad as kummer_grad
from ._lower_bound import LOWER_BOUND
from ._lower_bound import lower_bound as lower_bound
from ._lower_bound import lower_bound_grad as lower_bound_grad
from ._measure import Extremum as Extremum
from ._measure import Measurement as Measurement
from ._measure import measure as measure
from ._method import WIDE as WIDE
from ._method import Claim as Claim
from ._method import Interval as Interval
from ._method import Method as Method
from ._molchanov import MOLCHANOV
from ._molchanov import molchanov as molchanov
from ._molchanov import molchanov_grad as molchanov_grad
from ._monte_carlo import MONTE_CARLO
from ._monte_carlo import monte_carlo as monte_carlo
from ._monte_carlo import monte_carlo_grad as monte_carlo_grad
from ._quadrature import QUADRATURE
from ._quadrature import quadrature as quadrature
from ._quadrature import quadrature_grad as quadrature_grad
from ._series import SERIES
from ._series import series as series
from ._series import series_grad as series_grad

_EVERY = (KINGMA, MOLCHANOV, LOWER_BOUND, SERIES, KUMMER, QUADRATURE, MONTE_CARLO)

#: Every method by name: closed forms, those that only rounding keeps from being exact, sampling.
METHODS: dict[str, Method] = {method.name: method for method in _EVERY}
