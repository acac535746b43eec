"""The functions for NumPy: ufuncs in C, or in Python if the C extension is missing."""
