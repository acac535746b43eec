"""The golden tables of tests/golden and how they are made."""
