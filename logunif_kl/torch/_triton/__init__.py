"""The Triton kernels: generated arithmetic, loops over memory, and the code that starts them."""
