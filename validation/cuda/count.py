"""Count the machine instructions that a warp executes for each weight of a thread.

The usual path through a kernel is followed once, from entry to exit, and a loop as often as it
runs. The subroutine of a division is left out, because a warp calls it only for extreme numbers,
such as a subnormal divisor. Code that a branch might skip or a predicate might disable is counted.
"""

import re
from collections import Counter
from typing import NamedTuple

from .compiled import Compiled

_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")

# The first pattern that matches an instruction's text determines its kind.
_KINDS = (
    ("move", r"HFMA2(\.MMA)? \w+, -RZ, RZ|IMAD\.MOV|U?MOV\d*\b|U?P?S?CS2U?R|S2U?R|R2UR|UMOV"),
    ("multiply and add", r"F(FMA|ADD|MUL)2?(32I)?\b|HFMA2"),
    ("special function", r"MUFU"),
    ("compare and select", r"U?[FI]SETP|U?F?SEL|FMNMX|U?[IV]I?MNMX|U?PLOP3|FSET|FCHK|P2R|R2P|VOTE"),
    ("memory", r"U?LDC|U?LDG|STG|LDS|STS|LDL|STL"),
    ("integer and logic", r"U?(IADD|VIADD|IMAD|LOP|SHF|LEA|PRMT|I2F|F2I|FRND|IABS|SGXT|BREV|FLO)"),
    ("control", r"BRA|EXIT|BSSY|BSYNC|BAR|NOP|WARPSYNC|CALL|RET|ACQBULK|DEPBAR|SHFL|REDUX"),
)
KINDS = tuple(kind for kind, _ in _KINDS)


class Instruction(NamedTuple):
    address: int
    predicate: str
    opcode: str
    operands: str

    @property
    def target(self) -> int:
        found = _TARGET.search(self.operands)
        if found is None:
            raise ValueError(f"{self.opcode} {self.operands} names no address to jump to")
        return int(found[1], 16)

    @property
    def conditional(self) -> bool:
        """Whether the instruction has a predicate: ``@P0 BRA 0x80`` or ``BRA.U UP0, 0x80``."""
        return self.predicate != "" or re.match(r"!?U?P\w+,", self.operands) is not None

    @property
    def kind(self) -> str:
        text = f"{self.opcode} {self.operands}"
        for kind, pattern in _KINDS:
            if re.match(pattern, text):
                return kind
        raise ValueError(f"no kind is known for the instruction {text}")


class Count(NamedTuple):
    instructions: float
    """The instructions that a warp issues, for each weight of a thread."""
    lanes: float
    """The same, with a packed instruction, which has two results, counted twice."""
    kinds: dict[str, float]
    registers: int
    spills: int
    """Loads and stores of spilled registers, anywhere in the code."""
    stack: int
    """Bytes of local memory a thread."""
    apart: int
    """The instructions off the usual path, once each, for a thread."""


def instructions(sass: str) -> list[Instruction]:
    found = [
        Instruction(int(address, 16), predicate, opcode, operands.strip())
        for address, predicate, opcode, operands in _LINE.findall(sass)
    ]
    if not found:
        raise ValueError("the text holds no instruction; give what cuobjdump -sass prints")
    return found


def usual_path(code: list[Instruction], trips: int) -> Counter[Instruction]:
    """Count how often each instruction is executed from the entry to the exit.

    The code has at most one loop, which runs ``trips`` times.
    """
    place = {each.address: i for i, each in enumerate(code)}
    path: list[int] = []
    loop: tuple[int, int] | None = None
    i = 0
    while True:
        here = code[i]
        path.append(i)
        name = here.opcode.partition(".")[0]
        if name == "EXIT" and not here.conditional:
            break
        if name == "BRA":
            there = place[here.target]
            if there <= i:
                if loop is not None or trips < 2:
                    raise ValueError(f"an unexpected loop ends at {here.address:#x}")
                loop = there, i
                if not here.conditional:  # for sm_80, the "call" before it leaves the loop
                    i = place[code[i - 1].target]
                    continue
            elif not here.conditional or any(
                skipped.opcode.startswith("CALL") for skipped in code[i + 1 : there]
            ):
                i = there
                continue
        elif name in ("CALL", "RET", "BRX", "JMP") and not _leaves_loop(code[i], code[i + 1]):
            raise ValueError(f"the usual path has {here.opcode} at {here.address:#x}")
        i += 1
    counted = Counter({code[i]: 1 for i in path})
    if loop is not None:
        counted.update({code[i]: trips - 1 for i in path if loop[0] <= i <= loop[1]})
    return counted


def _leaves_loop(here: Instruction, following: Instruction) -> bool:
    """Whether a conditional call stands for a jump out of a loop that ends after it."""
    return (
        here.opcode.startswith("CALL")
        and here.conditional
        and following.opcode == "BRA"
        and not following.conditional
        and following.target < here.address < here.target
    )


def loaded(path: Counter[Instruction]) -> int:
    total = 0
    for each, times in path.items():
        if each.opcode.startswith("LDG"):
            bits = re.search(r"\.(64|128)\b", each.opcode)
            total += times * (int(bits[1]) // 8 if bits else 4)
    return total


def count(kernel: Compiled) -> Count:
    code = instructions(kernel.sass)
    path = usual_path(code, kernel.trips)
    if loaded(path) != kernel.loads:
        raise ValueError(
            f"the path loads {loaded(path)} bytes where a thread loads {kernel.loads}, so it is "
            "not what a thread executes; correct usual_path"
        )
    kinds: Counter[str] = Counter()
    for each, times in path.items():
        kinds[each.kind] += times
    packed = sum(n for each, n in path.items() if re.match(r"F(FMA|ADD|MUL)2\b", each.opcode))
    total = sum(path.values())
    return Count(
        total / kernel.weights,
        (total + packed) / kernel.weights,
        {kind: kinds[kind] / kernel.weights for kind in KINDS if kinds[kind]},
        kernel.registers,
        sum(each.opcode.startswith(("LDL", "STL")) for each in code),
        kernel.stack,
        sum(each not in path and each.opcode != "NOP" for each in code),
    )
