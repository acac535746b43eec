"""Refit the published approximations of -KL, over any range and with any number of terms.

`fit_polynomial` finds the best constants of Kingma's formula over any range, and `fit_sigmoid`
finds those of Molchanov's formula. Both return a `Fit`, which measures its errors and writes the
formula as source code in several languages. `ladder` lists the best errors for each number of
terms. Use a fit in code that cannot depend on this library, or in a publication.
"""

from ..methods import Extremum as Extremum
from ._error_measures import Errors as Errors
from ._fit import Fit as Fit
from ._ladder import Rung as Rung
from ._ladder import ladder as ladder
from ._polynomial import fit_polynomial as fit_polynomial
from ._sigmoid import fit_sigmoid as fit_sigmoid
