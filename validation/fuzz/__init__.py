"""Fuzzing of every loop in C: `python -m validation.fuzz`."""
