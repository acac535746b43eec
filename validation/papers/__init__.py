"""What the papers state about this divergence, each statement decided by a computation.

    python -m validation.papers [NAME ...]

The command writes validation/results/papers/papers.json. Each statement is a function that measures
and then decides the verdict, ``holds`` or ``fails``; no verdict is written into the source. With
names, it decides and prints those statements only. `definition` has the integrals that all the
papers start from.
"""
