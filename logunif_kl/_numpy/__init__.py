"""The functions for NumPy: ufuncs in C, or in Python where the C extension is missing."""
