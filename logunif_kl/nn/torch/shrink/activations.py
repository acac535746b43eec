"""What takes the place of an activation while the forward of a module is traced."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

import torch
from torch import fx


@lru_cache(4096)
def _step(code: CodeType, at: int) -> dis.Instruction:
    return next(each for each in dis.get_instructions(code) if each.offset == at)


@lru_cache(4096)
def _asks_for_type(code: CodeType, at: int) -> bool:
    """Whether an instruction calls `isinstance`, matches a class, or reads ``x.__class__``."""
    step = _step(code, at)
    if not step.opname.startswith("CALL"):
        return step.opname in ("MATCH_CLASS", "LOAD_ATTR")
    start = step.positions and step.positions[::2]
    steps = (each for each in dis.get_instructions(code) if each.argval == "isinstance")
    return any(each.positions and each.positions[::2] == start for each in steps)


class Activation(fx.Proxy):
    """A proxy that is an instance of a tensor, for code that asks for the type of an input."""

    _is_param = False  # `isinstance` of a Parameter reads this attribute.

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Say so in Python code alone. Torch reads the memory of what says in C that it is one."""
        frame = sys._getframe(1)
        asks = _asks_for_type(frame.f_code, frame.f_lasti)
        return torch.Tensor if asks else Activation

    def __getattr__(self, name: str) -> Any:
        """Remember what the code asks for, such as ``x.dtype``, which `is` compares in silence."""
        found = _Attribute(self, name)
        if not name.startswith("__") and not callable(getattr(torch.Tensor, name, None)):
            tracer: Any = self.tracer
            tracer.asked.append(found)
        return found

    def __iter__(self) -> Iterator[Any]:
        """Unpack a tuple, as `torch.fx.Proxy` does, whose frames would keep activations alive."""
        frame = sys._getframe(1)
        step = _step(frame.f_code, frame.f_lasti)
        del frame
        if step.opname != "UNPACK_SEQUENCE":
            return self.tracer.iter(self)
        unpacked: Any = self
        return iter([unpacked[i] for i in range(step.argval)])


class _Attribute(fx.proxy.Attribute):
    """An attribute of an activation, such as its shape, which may be unpacked."""

    __iter__ = Activation.__iter__


def _in_place(name: str) -> Any:
    """Return a method that records ``x += y``, which `torch.fx` would record as ``x + y``."""

    def method(self: fx.Proxy, other: Any) -> Any:
        target = getattr(operator, name)
        return self.tracer.create_proxy("call_function", target, (self, other), {})

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(Activation, f"__i{_name}__", _in_place(f"i{_name}"))
