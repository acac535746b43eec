"""Refitting: the published families of approximations, as good as they can be.

For those who cannot depend on this library, or who publish an approximation: `fit_polynomial` and
`fit_sigmoid` find the best constants of Kingma's and of Molchanov's formula over any range, `Fit`
says how wrong they are and writes them down in the language at hand, and `ladder` lists what each
further term buys.
"""

from ._errors import Errors as Errors
from ._errors import Extremum as Extremum
from ._fit import Fit as Fit
from ._ladder import Rung as Rung
from ._ladder import ladder as ladder
from ._polynomial import fit_polynomial as fit_polynomial
from ._sigmoid import fit_sigmoid as fit_sigmoid
