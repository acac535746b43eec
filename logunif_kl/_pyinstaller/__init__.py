"""The hook by which PyInstaller bundles the modules that are imported by name."""

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the folders with hooks, for the entry point ``pyinstaller40``."""
    return [str(Path(__file__).parent)]
