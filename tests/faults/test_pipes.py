"""Standard streams that are closed, full or not read: no traceback, and a sensible status."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("rich")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the shell closes them as on POSIX")

COMMANDS = {
    "--help": 0,
    "fit --help": 0,
    "table": 0,
    "table 1 --json -": 0,
    "table 1 --dps 2000": 0,
    "compare kingma": 0,
    "fit polynomial": 0,
    "fit polynomial --formula c": 0,
    "fit polynomial --ladder 1": 0,
    "validate lower_bound": 0,
    "bench --size 100 --rounds 2": 0,
    "table x": 2,
}
FULL = "logunif-kl: error: cannot write to standard output: No space left on device; send it "
FULL += "elsewhere\n"
CLOSED = "logunif-kl: error: standard output is closed: leave it open, or send it to a file\n"
# Redirections, and what happens to the output: kept, lost without an error, or this error.
STREAMS = {
    "nobody reads": ("| :", "lost"),
    "one line is read": ("| head -n 1", "lost"),
    "stdout is full": (">/dev/full", FULL),
    "stdout is closed": (">&-", CLOSED),
    "stdin is closed": ("<&-", "kept"),
    "stderr is closed": ("2>&-", "kept"),
    "stderr is full": ("2>/dev/full", "kept"),
    "all are closed": ("<&- >&- 2>&-", CLOSED),
    "both are full": (">/dev/full 2>/dev/full", FULL),
    "stdout is full, stderr closed": (">/dev/full 2>&-", FULL),
}

# What is tried by default.
QUICK = {
    "table": tuple(STREAMS),
    "--help": ("stdout is full", "all are closed"),
    "table x": ("stderr is full",),
}
PROGRAM = "import sys; from logunif_kl.cli import main; sys.exit(main())"


def run(command, stream, unbuffered):
    """Return the status, and what is said on standard error."""
    redirection, _ = STREAMS[stream]
    if "/dev/full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("there is no full device")
    given = [sys.executable, *(["-u"] if unbuffered else []), "-c", PROGRAM, *command.split()]
    if redirection.startswith("|"):
        whole = f'{{ "$@"; echo $? >"$STATUS"; }} {redirection}'
    else:
        whole = f'"$@" {redirection}; echo $? >"$STATUS"'
    read, write = os.pipe()
    with os.fdopen(read) as status:
        done = subprocess.run(
            ["sh", "-c", whole, "sh", *given],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "STATUS": f"/dev/fd/{write}"},
            pass_fds=(write,),
            timeout=900,
        )
        os.close(write)
        found = int(status.read())
    return found, done.stdout, done.stderr


SLOW = [pytest.mark.slow]
CASES = [
    pytest.param(command, stream, False, marks=[] if stream in QUICK.get(command, ()) else SLOW)
    for command in COMMANDS
    for stream in STREAMS
]
CASES += [
    pytest.param(command, stream, True, marks=SLOW)
    for command in COMMANDS
    for stream in ("nobody reads", "stdout is full", "all are closed")
]


@pytest.mark.parametrize(("command", "stream", "unbuffered"), CASES)
def test_streams(command, stream, unbuffered):
    redirection, then = STREAMS[stream]
    status, out, err = run(command, stream, unbuffered)
    of_stderr = "2>" in redirection
    if then in ("kept", "lost"):
        assert status == COMMANDS[command]
        assert (out != "") == (status == 0 and (then == "kept" or "head" in redirection))
        if not of_stderr:
            assert err.count("\n") == (1 if status else 0)
    else:
        assert status == 2
        # A closed stream is found at the start, a full one at the first write.
        if not of_stderr and (then == CLOSED or COMMANDS[command] == 0):
            assert err == then
    assert "Traceback" not in err
    assert "Exception ignored" not in err
