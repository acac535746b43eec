"""Find the worst errors of each kernel.

A kernel is what is measured under one name: ``avx512``, ``python``, ``torch`` and so on. ``python
-m validation.accuracy check`` compares the truth used here with rigorous balls. ``measure REPORT``
makes a report, by a ``search`` for the worst errors or by an ``exhaustive`` trial of every input of
a narrow type. ``claims`` writes the results to the package's modules of claims, ``accuracy.py`` and
``isotropic/_accuracy.py``.
"""
