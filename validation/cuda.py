"""Compile the Triton kernels for a GPU that need not be there, and count their instructions.

Triton's wheel holds NVIDIA's assembler and disassembler.
"""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

KERNELS = ("value", "value_sum", "gradient")
CAPABILITIES = (80, 90, 100)
_POINTERS = ("mu", "log_sigma2", "out", "partial", "upstream", "d_mu", "d_log_sigma2")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


class Cost(NamedTuple):
    """A kernel's instructions, each once, and the registers and bytes of stack of a thread."""

    instructions: int
    registers: int
    stack: int


def cost(kernel: str, capability: int) -> Cost:
    """Compile a kernel for float32, as `launch` starts it, with sizes that are multiples of 16."""
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from logunif_kl.torch._triton import kernels, launch

    function = getattr(kernels, kernel)
    constants = {"MU": 1, "LOG_SIGMA2": 1, "UPSTREAM": 0}
    constants |= {"BLOCK": launch._BLOCK, "BLOCKS": launch._BLOCKS}
    types = dict.fromkeys(_POINTERS, "*fp32") | {"size": "i32"}
    names = function.arg_names
    source = ASTSource(
        function,
        {name: types.get(name, "constexpr") for name in names},
        {name: constants[name] for name in names if name not in types},
        {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name in types},
    )
    target = GPUTarget("cuda", capability, 32)
    compiled = triton.compile(source, target=target, options=dict(launch._OPTIONS))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(compiled.asm["cubin"])
        command = [knobs.nvidia.cuobjdump.path, "-sass", "-res-usage", str(file)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    usage = {name: int(n) for name, n in re.findall(r"\b([A-Z]+):(\d+)", text)}
    opcodes = [opcode for opcode in _INSTRUCTION.findall(text) if opcode != "NOP"]
    return Cost(len(opcodes), usage["REG"], usage["STACK"] + usage["LOCAL"])
