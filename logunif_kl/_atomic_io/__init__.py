"""Write files and figures. An old file stays until the new file is complete."""

from ._figures import new_axes, new_figure, plain_log_scale, save_figure
from ._files import replacing

__all__ = ["new_axes", "new_figure", "plain_log_scale", "replacing", "save_figure"]
