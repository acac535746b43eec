"""How files and figures are written: the old file stays until the new one is complete."""

from ._figures import new_figure, save_figure
from ._files import replacing

__all__ = ["new_figure", "replacing", "save_figure"]
