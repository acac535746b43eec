"""The hook by which PyInstaller bundles the modules that are imported by name."""

from pathlib import Path


def hook_folders() -> list[str]:
    """Return the directories with hooks. PyInstaller calls this by the entry point."""
    return [str(Path(__file__).parent)]
