"""Fuzz every C loop: `python -m validation.fuzz`."""
