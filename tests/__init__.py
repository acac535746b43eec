"""Tests of logunif_kl; run from the repository root with `python -m pytest`."""
