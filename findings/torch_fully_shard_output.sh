#!/usr/bin/env bash
# PyTorch's `fully_shard` of a module that returns an object of a plain class leaves all parameters without gradients, silently.
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


class Output:
    def __init__(self, mean):
        self.mean = mean


class Model(torch.nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.linear, self.wrap = torch.nn.Linear(4, 2), wrap

    def forward(self, x):
        return self.wrap(self.linear(x))


def run(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29641")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh, found = init_device_mesh("cpu", (2,)), []
    for name, wrap, mean in (
        ("a tuple", lambda y: (y,), lambda output: output[0]),
        ("an object of a plain class", Output, lambda output: output.mean),
    ):
        model = fully_shard(Model(wrap), mesh=mesh)
        held = [*model.parameters()]
        mean(model(torch.ones(3, 4))).sum().backward()
        found.append([each.grad is not None for each in held])
        if rank == 0:
            print(f"output {name}: parameters with gradients {found[-1]}")
    dist.destroy_process_group()
    sys.exit(found != [[True, True], [False, False]])


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
    mp.start_processes(run, nprocs=2, start_method="spawn")
    print("The second one does not train.")
END
"$work/bin/python" -I "$work/shows.py" || { echo "CHANGED: both train, or it is refused."; exit 1; }
