"""Where the worst errors of the kernels are, and how large.

``python -m validation.accuracy check`` compares the truth used here with rigorous balls;
``search`` looks for the worst errors of the float64 loops; ``exhaustive`` tries every float16,
bfloat16 and float32 input; ``claims`` writes what they found to ``logunif_kl/accuracy.py``.
"""
