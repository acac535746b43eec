"""Write files and figures. An old file stays until the new file is complete."""

from ._figures import new_figure, save_figure
from ._files import replacing

__all__ = ["new_figure", "replacing", "save_figure"]
