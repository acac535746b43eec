"""Run every experiment of every paper with one command.

    python -m validation.reproduce [NAME ...] [--list] [--quick]
        [--data FILE] [--fashion-mnist FILE] [--cifar10 FILE]

NAME is a paper (``kingma2015``), an experiment (``kingma2015.speed``) or a study (``papers``,
``validate``, ``monte_carlo``, ``ladder``). If one fails, the others still run, and the exit status
is 1. ``--quick`` runs small forms, and writes no committed record. ``--list`` names, for each
system and claim in `systems.toml`, the part of the library that has it and the file that shows it.
"""
