"""The directories of the source tree."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "logunif_kl"
RESULTS = ROOT / "validation" / "results"
