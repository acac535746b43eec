"""What torch.compile is told about this package, when it first traces one of its functions.

`torch.compiler.allow_in_graph` imports the compiler, which takes as long as importing torch itself.
It is therefore called by `allow`, which torch.compile calls while it traces a caller; the functions
are looked up after that.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import torch

from . import _rules
from ._internals import called_by_compiler
from ._operators import registered


@called_by_compiler
def allow() -> bool:
    """Have the functions with rules put into graphs as they are.

    A compiler may take code from its cache that calls the operators, without tracing the rules.
    They are therefore registered here.
    """
    registered()
    for function in (_rules.of_log_alpha, _rules.sum_of_log_alpha, _rules.of_normal):
        torch.compiler.allow_in_graph(function)
    return True
