"""The kernels in Triton: generated arithmetic, loops over memory, and how they are launched."""
