"""What the code of a function asks that a trace does not see."""

from __future__ import annotations

import dis
import inspect
from itertools import pairwise
from typing import Any

from torch import nn

from ..hooks import held, is_mask


def compares(function: Any) -> bool:
    """Whether the code of a function asks if two of its variables are one tensor."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    steps = [] if code is None else [*dis.get_instructions(code)]
    return any(b.opname == "IS_OP" and "LOAD_FAST" in a.opname for a, b in pairwise(steps))


def loads(function: Any, name: str) -> bool:
    """Whether the code of a function reads an argument."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or name in code.co_cellvars:
        return True
    steps = (each for each in dis.get_instructions(code) if "LOAD_FAST" in each.opname)
    return any(name in ([x] if isinstance(x := each.argval, str) else x) for each in steps)


_PARTS = nn.Module, nn.Parameter


def reads_module(hook: Any) -> bool:
    """Whether a hook may read more of a module than its inputs and outputs, such as sizes."""
    if is_mask(hook):
        return False
    function = getattr(hook, "__func__", hook)
    code, first = getattr(function, "__code__", None), int(function is not hook)
    if code is None or any(isinstance(each, _PARTS) for each in held(hook, objects=True)):
        return True
    return loads(function, code.co_varnames[first]) if code.co_varnames[first:] else False
