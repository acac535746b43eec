"""Run the experiments; ``python -m validation.reproduce``."""

import sys

from validation.reproduce.command import main

if __name__ == "__main__":
    sys.exit(main())
