"""Where the worst errors of each kernel are, and how large.

A kernel is what is measured under one name: ``avx512``, ``python``, ``torch`` and so on.
``python -m validation.accuracy check`` compares the truth used here with rigorous balls.
``measure REPORT`` makes a report. Its parts are ``search``, which looks for the worst errors, and
``exhaustive``, which tries every input of a narrow type. ``claims`` writes what was found to
``logunif_kl/accuracy.py``.
"""
