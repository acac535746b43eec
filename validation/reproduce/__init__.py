"""Run every experiment of every paper with one command.

    python -m validation.reproduce [NAME ...] [--list] [--quick]
        [--data FILE] [--fashion-mnist FILE]

The command runs the experiments one after the other and prints their results next to the paper's.
NAME is a paper (``kingma2015``), an experiment (``kingma2015.speed``) or a study (``papers``,
``validate``, ``monte_carlo``, ``ladder``); the default is all. If one fails, the others still run,
and the exit status is 1. An experiment that was interrupted resumes from its checkpoints.

``--quick`` runs small forms, on scikit-learn's digits, and writes no committed record. ``--list``
runs nothing: for each system and claim of the papers in `systems.toml`, it names the part of the
library that implements it and the file that shows it.
"""
