"""Generate the coefficients of `_arithmetic` and of the exact functions in C from ``spec.toml``.

Run ``python -m validation.coefficients`` to write both files, or with ``--check`` to compare them
with the current result of the spec. A table is a list of ranges. On each range a polynomial is
fitted by the exchange algorithm (`remez`) in mpmath arithmetic, and rounded, one coefficient at a
time, to the format of the table.
"""
