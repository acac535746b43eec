"""Proofs: upper bounds, in ulp, of the errors of the float64 kernels."""
