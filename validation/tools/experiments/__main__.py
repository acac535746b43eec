"""Write the page; ``python -m validation.tools.experiments``."""

import sys

from validation.tools.experiments.page import main

if __name__ == "__main__":
    sys.exit(main())
