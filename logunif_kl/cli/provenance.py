"""Record how a result was made: command, date, versions and machine."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import shlex
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

PACKAGES = ("numpy", "scipy", "mpmath")
SEAL = "content_sha256"


def provenance(command: str, *packages: str) -> dict[str, Any]:
    """Return the command, date, versions and machine, but no host name, user name or path.

    Parameters
    ----------
    command : str
        The command line that made the result. Of absolute paths only the names are kept.
    *packages : str
        Further packages whose versions to record. Packages that are not installed are left out.
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
        "command": _without_directories(command),
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


def _without_directories(command: str) -> str:
    def short(word: str) -> str:
        option, equals, path = word.rpartition("=")
        return option + equals + PurePath(path).name if PurePath(path).is_absolute() else word

    words = shlex.split(command)
    shortened = [*words[:1], *map(short, words[1:])]
    return command if shortened == words else shlex.join(shortened)


def seal(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON document, leaving out a hash that it already has."""
    content = {key: value for key, value in document.items() if key != SEAL}
    read_back = json.loads(json.dumps(content, allow_nan=False))  # JSON turns all keys into strings
    text = json.dumps(read_back, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def cpu_name() -> str:
    """Return the model name of the processor, or its architecture if there is no name."""
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
