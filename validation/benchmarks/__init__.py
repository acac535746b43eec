"""Benchmarks that take minutes: ``python -m validation.benchmarks NAME [--json FILE]``."""
