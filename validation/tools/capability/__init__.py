"""What works where, by the tests' own outcome: function x framework x transform.

A test that shows a function under a transform records the property ``capability`` as
``function:framework:transform`` before it does anything else; `plugin` collects the properties with
the outcomes, `table` makes rows of them, and ``python -m validation.tools.capability`` keeps the
rows in ``validation/results/capability/capability.json``.
"""
