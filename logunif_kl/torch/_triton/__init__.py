"""The kernels in Triton: generated arithmetic, loops over memory, and the code that starts them."""
