"""Compile the kernels in Triton for a given GPU, as `launch` starts them, and disassemble them."""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from validation.output import Record

KERNELS = ("value", "value_sum", "gradient")
_POINTERS = ("mu", "log_sigma2", "out", "partial", "upstream", "d_mu", "d_log_sigma2")


class Compiled(NamedTuple):
    """A kernel's machine code, and the assembler's report."""

    sass: str
    ptx: str
    registers: int
    stack: int
    """Bytes of local memory a thread, where registers are spilled."""
    weights: int
    """The weights that a thread computes."""
    loads: int
    """The bytes that a thread loads: two numbers for each weight, and one of upstream for all."""
    trips: int
    """How often a loop over blocks runs."""


def settings() -> Record:
    """Return the constants and options of `launch` for the gradient of a sum."""
    from logunif_kl.torch._triton import launch

    steps = {"MU": 1, "LOG_SIGMA2": 1, "UPSTREAM": 0}
    return steps | {"BLOCK": launch._BLOCK, "BLOCKS": launch._BLOCKS, **launch._OPTIONS}


@cache
def compiled(kernel: str, capability: int) -> Compiled:
    """Compile a kernel for float32, with pointers and a size that are multiples of 16."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from logunif_kl.torch._triton import kernels, launch

    function, constants = getattr(kernels, kernel), settings()
    types = dict.fromkeys(_POINTERS, "*fp32") | {"size": "i32"}
    names = function.arg_names
    source = ASTSource(
        function,
        {name: types.get(name, "constexpr") for name in names},
        {name: constants[name] for name in names if name not in types},
        {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name in types},
    )
    target = GPUTarget("cuda", capability, 32)
    assembly = triton.compile(source, target=target, options=dict(launch._OPTIONS)).asm
    trips = constants["BLOCKS"] if "BLOCKS" in names else 1
    weights = constants["BLOCK"] * trips // (32 * launch._OPTIONS["num_warps"])
    sass, usage = _disassembled(assembly["cubin"])
    return Compiled(
        sass,
        assembly["ptx"],
        usage["REG"],
        usage["STACK"] + usage["LOCAL"],
        weights,
        8 * weights + (4 if "upstream" in names else 0),
        trips,
    )


def _disassembled(cubin: bytes) -> tuple[str, dict[str, int]]:
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        command = [knobs.nvidia.cuobjdump.path, "-sass", "-res-usage", str(file)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text, {name: int(n) for name, n in re.findall(r"\b([A-Z]+):(\d+)", text)}


def toolchain() -> dict[str, str]:
    import triton
    from triton import knobs

    found = {"triton": triton.__version__}
    for name in ("ptxas", "ptxas_blackwell"):
        found[name] = getattr(knobs.nvidia, name).version
    return found
