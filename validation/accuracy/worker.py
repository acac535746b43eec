"""Measure one kernel in a process: ``python -m validation.accuracy.worker``.

Standard input has a job on each line, in JSON. Standard output has lines of JSON of the kinds
``progress``, ``message`` and ``row``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from . import exhaustive as _exhaustive
from . import flushing
from .frameworks import c_kernel
from .functions import FUNCTIONS, edges
from .implementations import implementation
from .search import digits, search
from .truth import truth

Row = dict[str, Any]


def _say(kind: str, content: object) -> None:
    print(json.dumps({kind: content}), flush=True)


def _search(job: dict[str, Any]) -> Row:
    name, dtype = job["function"], job["dtype"]
    key = [job["seed"], list(FUNCTIONS).index(name), np.dtype(dtype).itemsize]
    worst = search(
        name,
        implementation(FUNCTIONS[name], job["kernel"], dtype),
        rng=np.random.default_rng(key),
        dtype=dtype,
        count=job["count"],
        rounds=job["rounds"],
        edges={domain: edges(domain) for domain in ("u", "x")},
        known=[tuple(map(float.fromhex, point)) for point in job["known"]],
        flushes=job["kernel"] in flushing.KERNELS,
        progress=lambda count: _say("progress", count),
    )
    return worst._asdict()


def _exhaust(job: dict[str, Any]) -> Row:
    name, kernel, dtype = job["function"], job["kernel"], job["dtype"]
    tally = _exhaustive.exhaustive(
        name,
        kernel,
        dtype,
        jobs=job["jobs"],
        progress=lambda count: _say("progress", count),
        complain=lambda text: _say("message", text),
    )
    wanted = digits(truth(name, np.array([tally.input])))
    return {
        "ulp": tally.ulp,
        "inputs": (tally.input.hex(),),
        "got": tally.got.hex(),
        "wanted": wanted,
        "tried": tally.tried,
        "not_nearest": tally.not_nearest,
        "wrong_special": tally.wrong_special,
        "not_monotone": tally.not_monotone if name in _exhaustive.MONOTONE else None,
    }


def main() -> None:
    """Do the jobs on standard input."""
    for line in sys.stdin:
        job = json.loads(line)
        began = time.perf_counter()
        row = {"search": _search, "exhaustive": _exhaust}[job["method"]](job)
        about = {key: job[key] for key in ("function", "dtype", "kernel", "method")}
        function = FUNCTIONS[job["function"]]
        about["range"] = flushing.range_of(job["kernel"], function.domain, function.range)
        if used := c_kernel(job["kernel"], function.arithmetic, job["dtype"]):
            about["c_kernel"] = used
        _say("row", {**about, **row, "seconds": round(time.perf_counter() - began, 1)})


if __name__ == "__main__":
    main()
