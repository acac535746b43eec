"""Fuzz every loop in C under the sanitizers, with libFuzzer.

    python -m validation.fuzz [--minutes 30] [--targets exact ...] [--json FILE]

The targets share the time evenly. An input chooses a function, type, instruction set, length,
strides, alignment and overlap, and the bits of the arguments. A target that finds a fault leaves
the input in ``build/fuzz``, prints the command that repeats it, and ends the run with an error.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from validation import record
from validation.fuzz.build import SANITIZERS, TARGETS, BuildError, build_fuzzer, find_clang, version
from validation.output import Record, track, write_record
from validation.paths import ROOT

FOLDER = ROOT / "build" / "fuzz"
SEED = 1
SEEDS = 500
MOST_BYTES = 512
# By default, newer compilers check uses of returned stack memory.
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def running(process: subprocess.Popen[str], seconds: int) -> Iterator[None]:
    for _ in range(seconds):
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            yield


def fuzz(target: str, program: Path, seconds: int) -> Record:
    """Run one target for some seconds, and read its log."""
    corpus, rng = FOLDER / f"{target}-corpus", random.Random(SEED)
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir(parents=True)
    for i in range(SEEDS):
        length = rng.randrange(4, 64 if i % 8 else MOST_BYTES)
        (corpus / f"{i:04}").write_bytes(rng.randbytes(length))
    options = {
        "seed": SEED,
        "max_total_time": seconds,
        "max_len": MOST_BYTES,
        "timeout": 60,
        "rss_limit_mb": 4096,
        "print_final_stats": 1,
        "artifact_prefix": f"{FOLDER}/{target}-",
    }
    command = [str(program), *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
    began = time.monotonic()
    with open(FOLDER / f"{target}.log", "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, text=True, env={**os.environ, **ENVIRONMENT}
        )
        try:
            for _ in track(running(process, seconds), f"fuzzing {target}", seconds):
                pass
            process.wait()
        finally:
            process.kill()
        log.seek(0)
        found = read_log(log.read())
    took = round(time.monotonic() - began, 1)
    return {**found, "seconds": took, "ended": process.returncode}


def read_log(said: str) -> Record:
    """Read the number of inputs, the covered code, and a fault if there is one."""
    inputs = re.findall(r"number_of_executed_units: (\d+)", said)
    status = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", said)
    edges, features, corpus = map(int, status[-1]) if status else (0, 0, 0)
    found: Record = {
        "inputs": int(inputs[-1]) if inputs else 0,
        "edges": edges,
        "features": features,
        "corpus": corpus,
    }
    written = re.findall(r"Test unit written to (\S+)", said)
    if written:
        line = re.search(
            r"^(fuzz: .*|.*runtime error: .*|==\d+==\s?ERROR: .*)$", said, re.MULTILINE
        )
        found["finding"] = {"input": written[-1], "said": line[0] if line else ""}
    return found


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="python -m validation.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    share = round(options.minutes * 60.0 / len(options.targets))
    if share < 1:
        parser.error(f"--minutes must be 1 second or more for each target, got {options.minutes:g}")
    # Compile again, because a source may have changed.
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    try:
        clang = find_clang()
        programs = {}
        for target in track(options.targets, "compiling", len(options.targets)):
            programs[target] = build_fuzzer(target, FOLDER, clang)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    # Hash before the runs, because a source may change during them.
    about = record.about(shlex.join(["python", "-m", "validation.fuzz", *arguments]))
    results = {}
    findings = 0
    for target, program in programs.items():
        results[target] = result = fuzz(target, program, share)
        print(f"{target}: {result['inputs']:,} inputs in {result['seconds']:g} s", flush=True)
        finding = result.pop("finding", None)
        ended = result.pop("ended")
        if finding is not None:
            again = f"{os.path.relpath(program, ROOT)} {os.path.relpath(finding['input'], ROOT)}"
            print(f"  {finding['said']}\n  to try it again: {again}")
        elif ended != 0:
            log = os.path.relpath(FOLDER / f"{target}.log", ROOT)
            print(f"  it ended with status {ended}: see {log}")
        findings += ended != 0
    if options.json and not findings:
        document = {
            **about,
            "compiler": version(clang),
            "sanitizers": list(SANITIZERS),
            "seed": SEED,
            "inputs": sum(result["inputs"] for result in results.values()),
            "findings": findings,
            "targets": results,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_record(str(options.json), document)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
