"""Every experiment of every paper, by one command.

    python -m validation.reproduce [NAME ...] [--list] [--quick] [--data FILE] [--again]

runs them one after the other, each as a command of its own, and prints its results beside the
paper's. NAME is a paper (``kingma2015``), one of its experiments (``kingma2015.speed``), or one of
the studies that decide what the papers state (``papers``, ``validate``, ``monte_carlo``,
``ladder``); the default is all. What fails does not stop the others: the exit status is 1, and the
last lines say which.

An interrupt ends the command that is running. The same command then goes on: what was finished is
kept, and an experiment takes up its checkpoints. ``--again`` runs the finished ones once more.
``--quick`` runs small forms, on the digits of scikit-learn where an experiment takes MNIST. They
write no committed record: all of them take three and a half minutes of processor time.

``--list`` runs nothing. It goes through the systems and the claims of the papers, as `systems.toml`
has them, and says of each which part of the library has it, and which file shows it.
"""
