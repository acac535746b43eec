"""The committed records of the experiments, and their commands."""

import json
from functools import cache

from validation import record
from validation.paths import RESULTS


@cache
def committed(paper, name):
    return record.read(RESULTS / paper / f"{name}.json")


def quick(module, folder, *arguments):
    """Run the quick form of an experiment with its checkpoints in a folder."""
    out = folder / "quick.json"
    given = ("--quick", "--work", folder / "work", "--out", out, *arguments)
    status = module.EXPERIMENT.main([*map(str, given)])
    return json.loads(out.read_text(encoding="utf-8")) if status == 0 and out.exists() else status
