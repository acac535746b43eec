"""Where a number came from: versions, machine, date and command, for every JSON that is written."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "mpmath")


def provenance(command: str, *packages: str) -> dict[str, Any]:
    """Say what is needed to make a result again, without naming host, user or path.

    Parameters
    ----------
    command : str
        The command line that made the result.
    *packages : str
        Further packages whose versions matter, left out where they are not installed.
    """
    from .. import __version__
    from .._numpy.ufuncs import kernel_name

    versions = {"logunif_kl": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *packages):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "machine": {
            "cpu": cpu_name(),
            "architecture": platform.machine(),
            "system": platform.system(),
            "cpus_usable": cpus_usable(),
        },
        "kernel": kernel_name(),
    }


def cpu_name() -> str:
    """Read the processor's name, or its architecture where it tells no name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cpus_usable() -> int:
    """Count the processors that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
