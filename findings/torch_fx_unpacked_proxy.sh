#!/usr/bin/env bash
# PyTorch's `torch.fx` trace of `a, b = x.shape` keeps all local variables of the traced function alive until the garbage collector runs.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
"$work/bin/python" -I - <<'END'
import gc
import sys
import weakref

import torch

print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
gc.disable()
kept = {}


class Local:
    """An object that only the traced function holds, such as a large temporary."""


def trace(name, unpack):
    def function(x):
        local = Local()
        kept[name] = weakref.ref(local)
        rows, columns = unpack(x)
        return x.reshape(columns, rows)

    torch.fx.symbolic_trace(function)
    alive = kept[name]() is not None
    gc.collect()
    after = kept[name]() is not None
    print(f"{name}: alive after the trace: {alive}, after gc.collect(): {after}")
    return alive, after


unpacked = trace("rows, columns = x.shape", lambda x: x.shape)
indexed = trace("rows, columns = x.shape[0], x.shape[1]", lambda x: (x.shape[0], x.shape[1]))
as_described = unpacked == (True, False) and indexed == (False, False)
print("Proxy.__iter__ leaves a cycle with the frame of its caller." if as_described else "CHANGED")
sys.exit(not as_described)
END
