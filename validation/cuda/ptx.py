"""Execute PTX on the CPU: every thread at once, an array for each register.

Only the instructions are here that the kernels have; another one raises. Threads may part at a
branch forward. The results of the special functions are chosen by an `Approximation`, since their
bits are not documented; the errors are, in the PTX ISA.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import rounding
from .rounding import flushed, shifted

Word = NDArray[Any]

# The most that the PTX ISA lets a result be off, in ulp from the correctly rounded one.
ULP = {"ex2": 2, "rcp": 1, "div": 2}
LG2 = 2.0**-22
"""Likewise the error of a logarithm: absolute for arguments in (1/2, 2), else relative."""

# The address of a pointer's first byte is its number among the parameters, times this.
SPACE = 1 << 40


class Approximation:
    """Which of the results that the PTX ISA allows a special function returns.

    A share of 0 is the correctly rounded result, and 1 or -1 the documented error above or below.
    With ``rng`` every result gets a random share, of at most that size.
    """

    def __init__(self, share: float, rng: np.random.Generator | None = None) -> None:
        self.share, self.rng = share, rng

    def apply(self, name: str, exact: Word, a: Word) -> Word:
        """Return float32 results near the ``exact`` ones, in float64, of arguments ``a``."""
        shares: Any = self.share
        if self.rng is not None:
            shares = self.share * self.rng.uniform(-1.0, 1.0, exact.shape)
        if name != "lg2":
            steps = np.rint(shares * ULP[name]).astype(np.int64)
            return shifted(exact.astype(np.float32), np.where(_special(exact, a), 0, steps))
        size = np.where((a > 0.5) & (a < 2.0), 1.0, np.abs(exact))
        return np.where(_special(exact, a), exact, exact + shares * size * LG2).astype(np.float32)


def _special(exact: Word, a: Word) -> Word:
    """Tell which results are documented as they are: those of zeros, infinities and NaN."""
    found: Word = (exact == 0) | ~np.isfinite(exact) | (a == 0) | ~np.isfinite(a)
    return found


class Statement(NamedTuple):
    """An instruction, or the label before one."""

    predicate: str
    opcode: str
    operands: tuple[str, ...]


_STATEMENT = re.compile(r"^(?:@(!?%\w+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.DOTALL)
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


@cache
def statements(ptx: str) -> tuple[Statement, ...]:
    """Read the body of the only kernel in a PTX file."""
    text = re.sub(r"//[^\n]*", "", ptx)
    body = text[text.index("{", text.index(".entry")) + 1 :]
    found = []
    for line in body.splitlines():
        line = line.strip()
        if line.startswith(".section") or line == "}":
            break
        if label := re.fullmatch(r"(\$\w+):", line):
            found.append(Statement("", "label", (label[1],)))
        elif line and not line.startswith((".", "{")):
            for part in filter(None, (each.strip() for each in line.split(";"))):
                if (match := _STATEMENT.match(part)) is None:
                    raise ValueError(f"{part!r} is no PTX statement that is known here")
                predicate, opcode, rest = match.groups()
                found.append(Statement(predicate or "", opcode, tuple(_OPERAND.findall(rest))))
    return tuple(found)


class Machine:
    """Threads, in so many programs of so many each, their registers and the arrays they reach.

    An array among the kernel's parameters, in float32, is a pointer to it.
    """

    def __init__(
        self,
        programs: int,
        threads: int,
        parameters: list[int | NDArray[np.float32]],
        approximation: Approximation,
    ) -> None:
        lanes = np.arange(programs * threads)
        self.registers: dict[str, Word] = {
            "%ctaid.x": (lanes // threads).astype(np.uint32),
            "%tid.x": (lanes % threads).astype(np.uint32),
        }
        self.parameters, self.near = parameters, approximation
        self.active = np.ones(len(lanes), dtype=bool)

    def run(self, ptx: str) -> None:
        waiting: dict[str, Word] = {}
        passed = set()
        for each in statements(ptx):
            name, *modifiers = each.opcode.split(".")
            if name == "label":
                passed.add(each.operands[0])
                self.active = self.active | waiting.pop(each.operands[0], False)
            elif name == "bra":
                if each.operands[0] in passed:
                    raise ValueError("a branch backward is not executed here")
                leaving = self.active & self._predicate(each.predicate)
                target = waiting.get(each.operands[0], np.zeros_like(self.active))
                waiting[each.operands[0]] = target | leaving
                self.active = self.active & ~leaving
            elif name == "ret":
                self.active = self.active & ~self._predicate(each.predicate)
            else:
                self._execute(each, name, modifiers)

    def _predicate(self, text: str) -> Word:
        if not text:
            return np.ones_like(self.active)
        found: Word = self.registers[text.lstrip("!")]
        return ~found if text.startswith("!") else found

    def _execute(self, each: Statement, name: str, modifiers: list[str]) -> None:
        mask = self.active & self._predicate(each.predicate)
        if name == "st":
            self._store(each, mask)
        elif name == "ld" and modifiers[0] == "global":
            self._load(each, mask)
        elif name == "ld" and modifiers[0] == "param":
            self._write(each.operands[0], self._parameter(each.operands[1]), mask)
        else:
            result = self._computed(name, modifiers, each.operands[1:])
            self._write(each.operands[0], result, mask)

    def _computed(self, name: str, modifiers: list[str], operands: tuple[str, ...]) -> Word:
        kind = modifiers[-1] if modifiers else ""
        try:
            if name == "cvt":
                return rounding.CONVERSIONS[".".join(modifiers)](self._read(operands[0]))
            if name == "selp":
                a, b, p = (self._read(o) for o in operands)
                return np.where(p, a, b)
            if kind == "f32" and name != "mov":
                values = [self._float(o) for o in operands]
                if name != "setp":
                    return self._of_float(name, modifiers, values)
            else:
                dtype = _DTYPES.get(kind)
                values = [self._read(o) if dtype is None else self._as(o, dtype) for o in operands]
            if name == "setp":
                return _COMPARED[modifiers[0]](*values)
            if name == "mul" and modifiers[0] == "wide":
                wide = np.int64 if kind == "s32" else np.uint64
                return values[0].astype(wide) * values[1].astype(wide)
            return _INTEGER[name](*values)
        except KeyError as error:
            text = ".".join([name, *modifiers])
            raise ValueError(f"the PTX instruction {text} is not known here ({error})") from None

    def _of_float(self, name: str, modifiers: list[str], values: list[Word]) -> Word:
        if "ftz" in modifiers:
            values = [flushed(a) for a in values]
        with np.errstate(all="ignore"):
            if name == "fma":
                result = rounding.fma(*values, down="rm" in modifiers)
            elif name == "div" and "full" in modifiers:
                exact = values[0].astype(np.float64) / values[1]
                result = self.near.apply("div", exact, values[1])
            elif name in ("ex2", "lg2", "rcp") and "approx" in modifiers:
                exact = _EXACT[name](values[0].astype(np.float64))
                result = self.near.apply(name, exact, values[0])
            else:
                known = ".".join([name, *(m for m in modifiers[:-1] if m != "ftz")])
                result = _FLOAT[known](*values)
        return (flushed(result) if "ftz" in modifiers else result).view(np.uint32)

    def _read(self, text: str) -> Word:
        if text.startswith("0f"):
            return np.array(int(text[2:], 16), np.uint32)
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text):
            return np.array(int(text, 0))
        return self.registers[text]

    def _as(self, text: str, dtype: Any) -> Word:
        value = self._read(text)
        return value.astype(dtype) if value.ndim == 0 else value.view(dtype)

    def _float(self, text: str) -> Word:
        value = self._read(text)
        return (value if value.dtype == np.uint32 else value.astype(np.uint32)).view(np.float32)

    def _write(self, name: str, value: Word, mask: Word) -> None:
        value = np.broadcast_to(value, mask.shape)
        if value.dtype == np.int64 and name.startswith("%r") and not name.startswith("%rd"):
            value = value.astype(np.uint32)
        old = self.registers.get(name)
        if old is None or old.dtype != value.dtype:
            old = value if old is None else old.view(value.dtype)
        self.registers[name] = np.where(mask, value, old)

    def _parameter(self, text: str) -> Word:
        number = int(text.strip("[]").rpartition("_")[2])
        value = self.parameters[number]
        return np.array(value if isinstance(value, int) else number * SPACE, np.int64)

    def _places(self, text: str, mask: Word) -> tuple[NDArray[np.float32], Word]:
        base, _, offset = text.strip("[] ").partition("+")
        address = self.registers[base.strip()].astype(np.int64)[mask] + int(offset or 0)
        numbers = np.unique(address // SPACE)
        if len(numbers) > 1:
            raise ValueError("threads of one instruction reach different arrays")
        array = self.parameters[int(numbers[0])] if len(numbers) else np.empty(0, np.float32)
        assert isinstance(array, np.ndarray)
        return array, address % SPACE // 4

    def _load(self, each: Statement, mask: Word) -> None:
        array, places = self._places(each.operands[1], mask)
        for i, name in enumerate(_names(each.operands[0])):
            value = np.zeros(mask.shape, np.uint32)
            value[mask] = array.view(np.uint32)[places + i]
            self._write(name, value, mask)

    def _store(self, each: Statement, mask: Word) -> None:
        array, places = self._places(each.operands[0], mask)
        for i, name in enumerate(_names(each.operands[1])):
            array.view(np.uint32)[places + i] = self.registers[name][mask]


def _names(text: str) -> list[str]:
    return re.findall(r"%\w+", text)


_DTYPES = {
    "b32": np.uint32,
    "u32": np.uint32,
    "s32": np.int32,
    "b64": np.int64,
    "u64": np.uint64,
    "s64": np.int64,
}
_EXACT: Mapping[str, Callable[[Word], Word]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda a: 1.0 / a,
}
_FLOAT: Mapping[str, Callable[..., Word]] = {
    **dict.fromkeys(("add", "add.rn"), lambda a, b: a + b),
    **dict.fromkeys(("sub", "sub.rn"), lambda a, b: a - b),
    **dict.fromkeys(("mul", "mul.rn"), lambda a, b: a * b),
    "div.rn": lambda a, b: a / b,
    "rcp.rn": lambda a: np.float32(1.0) / a,
    "abs": np.abs,
    "neg": np.negative,
    "min": np.fmin,
    "max": np.fmax,
    "min.NaN": np.minimum,
    "max.NaN": np.maximum,
    "copysign": lambda a, b: np.copysign(b, a),
}
_COMPARED: Mapping[str, Callable[[Word, Word], Word]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
_INTEGER: Mapping[str, Callable[..., Word]] = {
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}
