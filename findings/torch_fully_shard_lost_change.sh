#!/usr/bin/env bash
# PyTorch's `fully_shard` loses what changes a parameter in place after an evaluation, silently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 numpy==2.4.6
cat >"$work/shows.py" <<'END'
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def run(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29643")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh, found = init_device_mesh("cpu", (2,)), []
    for evaluated in (False, True):
        model = fully_shard(torch.nn.Linear(4, 2), mesh=mesh)
        with torch.no_grad():
            if evaluated:
                model(torch.ones(3, 4))
            model.weight.zero_()
            seen = int(model.weight.count_nonzero())
        kept = int(model.state_dict()["weight"].full_tensor().count_nonzero())
        found.append((seen, kept))
        if rank == 0:
            print(f"evaluated before: {evaluated!s:5}  weights that are not 0: {seen}, saved: {kept}")
    dist.destroy_process_group()
    sys.exit(found != [(0, 0), (0, 8)])


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
    mp.start_processes(run, nprocs=2, start_method="spawn")
    print("After a call the root keeps a gathered copy, which takes the change and is thrown away.")
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: the change is kept, or refused."; exit 1; }
