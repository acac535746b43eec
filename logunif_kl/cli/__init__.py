"""The command line, ``logunif-kl``."""

from ._main import main as main
