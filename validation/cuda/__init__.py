"""The CUDA kernels without a GPU: compiled on any machine, with their instructions counted.

Only Triton is needed, whose wheel holds NVIDIA's assembler and disassembler.
"""
