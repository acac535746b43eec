"""What the papers state about this divergence, each statement decided by a computation.

    python -m validation.papers [NAME ...]

writes validation/results/papers/papers.json, with one record for each statement: {name, paper,
where, claim, verdict, measured, note, command}, and whether the paper makes the statement or only
suggests it. Each statement is a function that measures and then decides the verdict, ``holds`` or
``fails``; no verdict is written into the source. With names, only those statements are decided,
and printed.

Each paper has a folder, with its statements in ``claims.py`` and the modules beside it.
`definition` has the integrals that all the papers start from.
"""
