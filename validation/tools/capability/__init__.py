"""Which function works in which framework under which transform, by the results of the tests.

A test that shows a function under a transform first records the property ``capability`` as
``function:framework:transform``. `plugin` collects the properties with the outcomes, `table` makes
rows of them, and ``python -m validation.tools.capability`` writes the rows to
``validation/results/capability/capability.json``.
"""
