"""``logunif-kl bench``: time functions in interleaved rounds, and compare times of one round."""

from .command import add_options as add_options
from .command import add_parser as add_parser
from .command import check as check
from .command import measure as measure
from .command import sizes_of as sizes_of
