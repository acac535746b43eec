"""The cases of `tests.derivatives` as functions of JAX."""

from typing import Any

import logunif_kl.jax as lj
from tests import derivatives


class Case(derivatives.Case):
    """A function of `logunif_kl.jax`."""

    @property
    def function(self) -> Any:
        return getattr(lj, self.name)


CASES = derivatives.cases(Case)
