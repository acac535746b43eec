"""Table 1: LeNet-300-100 on MNIST, sparse by the exact divergence and by its approximations.

    python -m validation.papers.molchanov2017.lenet_300_100 [--data FILE] [--quick] [--part 1/2]

`comparison.py` says how the networks are trained and compared. ``--part 1/2`` trains every second
network and ``--part 2/2`` the others, as two processes; the command without it collects them.
"""

from __future__ import annotations

import sys

from validation.papers.molchanov2017 import comparison

EXPERIMENT = comparison.experiment(
    __file__,
    __doc__,
    title="Table 1: LeNet-300-100",
    about=comparison.ABOUT + "The paper prints one network.",
    place=1,
    full={"epochs": 200, **comparison.FULL},
    noise=("*.sparse.largest_difference",),
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
