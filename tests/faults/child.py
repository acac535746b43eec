"""Python processes in which faults are made, so that they do not harm the process of the tests."""

import subprocess
import sys


def run(code, *arguments, timeout=240, **options):
    """Run code to its end; what it prints is text."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )


def output(code, *arguments, **options):
    """Run code that must succeed, and return what it prints."""
    done = run(code, *arguments, **options)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return done.stdout
