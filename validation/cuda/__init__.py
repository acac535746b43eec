"""The kernels for CUDA on paper: compiled on any machine, their instructions counted.

No GPU is needed, only Triton, whose wheel holds NVIDIA's assembler and disassembler.
"""
