"""The parts of the package's command line that `validation` uses: terminal, files, errors."""

from typing import Any

from logunif_kl.cli._output import CommandError, require, track, write_record
from logunif_kl.cli._process import complain, emit
from logunif_kl.cli.provenance import SEAL, cpu_name, cpus_usable, provenance, seal

__all__ = [
    "SEAL",
    "CommandError",
    "Record",
    "complain",
    "cpu_name",
    "cpus_usable",
    "emit",
    "provenance",
    "require",
    "seal",
    "track",
    "write_record",
]

Record = dict[str, Any]
"""A document in JSON, or a row of one."""
