"""Which tensors of a compiler are computed by the operators: plain float32 ones on the CPU.

The rules of differentiation run while AOTAutograd traces them under `torch.compile`. An operator
may then stand in its graph. `torch.export` gets plain operations alone, which run anywhere.
"""

from __future__ import annotations

import torch

from ._internals import being_compiled, hint
from ._operators import is_number, registered

Tensor = torch.Tensor

# A compiler fuses the composite with what stands around it. For fewer elements that takes less time
# than the call of an operator.
_LEAST = 32_000


def takes(*tensors: Tensor) -> bool:
    """Tell whether the operators serve these tensors, the last two of which are the arguments."""
    if not being_compiled(*tensors):
        return False
    for x in tensors:
        if x.dtype is not torch.float32 or x.device.type != "cpu" or x.layout is not torch.strided:
            return False
    if all(is_number(x) for x in tensors[-2:]) or hint(tensors[-1].numel()) < _LEAST:
        return False
    if not all(is_number(x) or x.is_contiguous() for x in tensors[-2:]):
        return False
    return registered() is not None
