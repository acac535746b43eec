"""Python processes of their own: for a fault, for another kernel, or for a clean import."""

import os
import subprocess
import sys


def run(code, *arguments, kernel=None, timeout=900, **options):
    """Run code to its end; what it prints is text. With a kernel, every warning is an error."""
    flags = [] if kernel is None else ["-W", "error"]
    chosen = {} if kernel is None else {"env": {**os.environ, "LOGUNIF_KL_KERNEL": kernel}}
    return subprocess.run(
        [sys.executable, *flags, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **chosen | options,
    )


def output(code, *arguments, **options):
    """Run code that must succeed, and return what it prints."""
    done = run(code, *arguments, **options)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return done.stdout
