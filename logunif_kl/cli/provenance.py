"""Where a number came from: the command, date, versions, machine and sources of every result."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from . import sources

PACKAGES = ("numpy", "scipy", "mpmath")
SEAL = "content_sha256"


def provenance(command: str, *packages: str, of: str | Sequence[str] = ()) -> dict[str, Any]:
    """Say what is needed to make a result again, without naming host, user or path.

    Parameters
    ----------
    command : str
        The command line that made the result.
    *packages : str
        Further packages whose versions matter, left out where they are not installed.
    of : str or sequence of str
        The kinds of result, as `sources.DEPENDS` names them, whose sources are hashed. With none,
        no hash is written.
    """
    from .. import __version__
    from .._numpy.ufuncs import kernel_name

    versions = {"logunif_kl": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *packages):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    about: dict[str, Any] = {
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
    if of:
        about["sources_sha256"] = sources.sha256(*([of] if isinstance(of, str) else of))
    return about


def stamp(path: str, of: str) -> dict[str, str] | None:
    """Return the metadata that puts the hash of the sources into a PNG; none for other formats."""
    sha256 = sources.sha256(of) if path.lower().endswith(".png") else None
    return None if sha256 is None else {"sources_sha256": sha256}


def seal(document: dict[str, Any]) -> str:
    """Hash all that a JSON document says, but for the hash that it may have already."""
    content = {key: value for key, value in document.items() if key != SEAL}
    read_back = json.loads(json.dumps(content, allow_nan=False))  # with strings for keys
    text = json.dumps(read_back, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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
