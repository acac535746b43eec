"""Measure one kernel in a process: ``python -m validation.accuracy.worker``.

Each line of standard input is a job in JSON. Each line of standard output is JSON of the kind
``progress``, ``message`` or ``row``.
"""

import json
import sys
import time

import numpy as np

from validation.output import Record

from . import bits, flushing
from . import exhaustive as _exhaustive
from .frameworks import c_kernel
from .functions import ALL, ISOTROPIC, edges
from .implementations import implementation
from .search import describe, digits, search
from .truth import truth
from .ulp import error, round_to_bfloat16


def _say(kind: str, content: object) -> None:
    print(json.dumps({kind: content}), flush=True)


def _search(job: Record) -> Record:
    name, kernel, dtype = job["function"], job["kernel"], job["dtype"]
    key = [job["seed"], list(ALL).index(name), np.dtype(dtype).itemsize]
    worst = search(
        name,
        implementation(ALL[name], kernel, dtype),
        rng=np.random.default_rng(key),
        dtype=dtype,
        count=job["count"],
        rounds=job["rounds"],
        climbers=job["climbers"],
        edges=None if name in ISOTROPIC else {domain: edges(domain) for domain in ("u", "x")},
        known=[tuple(map(float.fromhex, point)) for point in job["known"]],
        counted=flushing.errors_of(kernel, name),
        progress=lambda count: _say("progress", count),
    )
    return worst._asdict()


def _exhaust(job: Record) -> Record:
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


def _again(job: Record) -> Record:
    name, kernel, dtype = job["function"], job["kernel"], job["dtype"]
    loop = "float32" if dtype == "bfloat16" else dtype
    point = [np.array([float.fromhex(x)]).astype(loop) for x in job["inputs"]]
    evaluate = implementation(ALL[name], kernel, dtype)
    found = describe(name, evaluate, point, 1, flushing.errors_of(kernel, name))
    if dtype == "bfloat16":
        got = round_to_bfloat16(np.array([float.fromhex(found.got)], np.float32))
        ulp = float(error(got, truth(name, *point), dtype)[0])
        found = found._replace(got=float(got[0]).hex(), ulp=ulp)
    return found._asdict()


def measured(job: Record) -> Record:
    began = time.perf_counter()
    row = {"search": _search, "exhaustive": _exhaust, "again": _again}[job["method"]](job)
    about = {key: job[key] for key in ("function", "dtype", "kernel", "method")}
    function = ALL[job["function"]]
    about["range"] = flushing.range_of(job["kernel"], function.name)
    if used := c_kernel(job["kernel"], function.arithmetic, job["dtype"]):
        about["c_kernel"] = used
    if found := bits.of(function, job["kernel"], job["dtype"]):
        about["bits"] = found
    return {**about, **row, "seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    for line in sys.stdin:
        _say("row", measured(json.loads(line)))


if __name__ == "__main__":
    main()
