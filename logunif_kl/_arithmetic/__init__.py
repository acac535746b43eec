"""Exact functions, such as -KL, computed by array operations, with tables of coefficients."""
