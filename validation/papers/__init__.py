"""What the papers state about this divergence, each statement decided by a computation.

    python -m validation.papers [NAME ...]

The command writes validation/results/papers/papers.json. Each statement is a function that measures
and then decides the verdict, ``holds`` or ``fails``; the source contains no verdicts. With names,
it decides and prints only those statements. `definition` has the integrals from which all the
papers start.
"""
