"""What the papers state about this divergence, claim by claim, each decided by a computation.

    python -m validation.papers [NAME ...]

writes validation/results/papers/papers.json, one record per claim: {name, paper, where, claim,
verdict, measured, note, command}, and whether the paper states the claim or only suggests it. The
verdict, ``holds`` or ``fails``, is never written down: each claim is a function that measures and
then decides. With names, those claims are decided again and printed.
"""
