"""What torch's compiler is to know, told when it first asks.

`torch.compiler.allow_in_graph` imports the compiler, which takes as long as torch itself. A
function that bears dynamo's mark of a constant is instead called while dynamo traces its caller:
by then the compiler is there, and what is marked is looked up next.
"""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import torch

from . import _rules


def allow() -> bool:
    """Have the functions with rules put into graphs as they are."""
    for function in (
        _rules.of_log_alpha,
        _rules.total_of_log_alpha,
        _rules.of_normal,
    ):
        torch.compiler.allow_in_graph(function)
    return True


# What torch.compiler.assume_constant_result does, once it has imported the compiler.
allow._dynamo_marked_constant = True  # type: ignore[attr-defined]
