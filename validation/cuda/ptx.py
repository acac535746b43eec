"""Execute PTX on the CPU: all threads at once, with an array for each register.

Only the instructions of the kernels are known; others raise an error. The PTX ISA documents the
largest error of an approximate reciprocal, but not its bits. An `Approximation` chooses them.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Word = NDArray[Any]

# The address of a pointer is its parameter number times this.
SPACE = 1 << 40


def fma(a: Word, b: Word, c: Word) -> Word:
    """Return ``a*b + c`` in float32, rounded once.

    The product is exact in float64. The sum is rounded to odd there, so that rounding to float32
    gives the same as rounding the exact number.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    c = c.astype(np.float64)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = np.atleast_1d(total).view(np.int64).reshape(total.shape)
    even = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    away = (error > 0) == (total > 0)
    odd = np.where(even, bits + np.where(away, 1, -1), bits)
    return np.atleast_1d(odd).view(np.float64).reshape(total.shape).astype(np.float32)


def shifted(a: NDArray[np.float32], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the float32 numbers this many places further from zero, at most infinity."""
    bits = np.atleast_1d(a).view(np.uint32).astype(np.int64).reshape(a.shape)
    sign = bits & 0x80000000
    magnitude = np.clip((bits & 0x7FFFFFFF) + steps, 0, 0x7F800000)
    moved = np.where(steps == 0, bits, sign | magnitude).astype(np.uint32)
    result: NDArray[np.float32] = np.atleast_1d(moved).view(np.float32).reshape(a.shape)
    return result


def flushed(a: Word) -> Word:
    """Replace subnormal numbers by zeros of the same sign."""
    zero = np.copysign(np.float32(0.0), a)
    return np.where(np.abs(a) < np.finfo(np.float32).smallest_normal, zero, a)


class Approximation:
    """The choice among the results that the PTX ISA allows for ``rcp.approx``, up to 1 ulp off.

    A share of 0 gives the correctly rounded result, and 1 or -1 the documented error up or down.
    With ``rng`` every result gets a random share of at most that size.
    """

    def __init__(self, share: float, rng: np.random.Generator | None = None) -> None:
        self.share, self.rng = share, rng

    def apply(self, exact: Word, a: Word) -> Word:
        """Return float32 results near ``exact``, the reciprocals of ``a`` in float64."""
        shares: Any = self.share
        if self.rng is not None:
            shares = self.share * self.rng.uniform(-1.0, 1.0, exact.shape)
        # The results for zeros, infinities and NaN are documented.
        special = (exact == 0) | ~np.isfinite(exact) | (a == 0) | ~np.isfinite(a)
        steps = np.rint(shares).astype(np.int64)
        return shifted(exact.astype(np.float32), np.where(special, 0, steps))


class Statement(NamedTuple):
    """An instruction and its predicate."""

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
        if line and not line.startswith((".", "{")) and not re.fullmatch(r"\$\w+:", line):
            for part in filter(None, (each.strip() for each in line.split(";"))):
                if (match := _STATEMENT.match(part)) is None:
                    raise ValueError(f"{part!r} is not a PTX statement that is known here")
                predicate, opcode, rest = match.groups()
                found.append(Statement(predicate or "", opcode, tuple(_OPERAND.findall(rest))))
    return tuple(found)


class Machine:
    """Threads of several programs, their registers, and the arrays that they access.

    A float32 array among the kernel's parameters stands for a pointer to it.
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
        for each in statements(ptx):
            name, *modifiers = each.opcode.split(".")
            if name == "ret":
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
                return _CONVERTED[".".join(modifiers)](self._read(operands[0]))
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
            if name == "rcp" and "approx" in modifiers:
                result = self.near.apply(1.0 / values[0].astype(np.float64), values[0])
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
_CONVERTED: Mapping[str, Callable[[Word], Word]] = {
    "rn.f32.s32": lambda a: a.view(np.int32).astype(np.float32).view(np.uint32),
    "rn.f32.u32": lambda a: a.view(np.uint32).astype(np.float32).view(np.uint32),
    "u32.u64": lambda a: a.astype(np.uint32),
}
_FLOAT: Mapping[str, Callable[..., Word]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma.rn": fma,
    "abs": np.abs,
    "neg": np.negative,
    "min.NaN": np.minimum,
    "max.NaN": np.maximum,
}
_COMPARED: Mapping[str, Callable[[Word, Word], Word]] = {
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "num": lambda a, b: (a == a) & (b == b),
}
_INTEGER: Mapping[str, Callable[..., Word]] = {
    "mov": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": np.minimum,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}
