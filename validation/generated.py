"""Write generated files, or find those that their source would change."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Files = Mapping[Path, str] | Mapping[Path, bytes]
"""The content of each file."""


def update(files: Files, command: str, *, check: bool) -> int:
    """Write the files whose content has changed; with ``check`` name them and return 1 instead.

    Unchanged files keep their date, so that nothing is compiled again because of them.
    """
    changed = 0
    for path, content in files.items():
        new = content.encode() if isinstance(content, str) else content
        if path.exists() and path.read_bytes() == new:
            continue
        changed += 1
        if check:
            name = "/".join(path.parts[-2:])
            print(f"{name} differs from its source: run {command}", file=sys.stderr)
        else:
            path.write_bytes(new)
    return int(check and changed > 0)


def main(command: str, files: Callable[[], Files], arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=command)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    return update(files(), command, check=options.check)
