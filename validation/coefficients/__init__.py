"""Generate the coefficients of `_arithmetic` and of the exact functions in C from ``spec.toml``.

Run ``python -m validation.coefficients`` to write both files, ``--check`` to compare them with
what the spec gives now. Every table is a list of ranges; on each of them a polynomial is fitted by
the exchange algorithm (`remez`) in mpmath arithmetic and rounded, one coefficient at a time, to the
format of the table.
"""
