"""The functions for NumPy: ufuncs in C, and the same in Python where there is no extension."""
