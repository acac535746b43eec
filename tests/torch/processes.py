"""Two processes of one group, in which the tests of distributed tensors run their checks.

A module of checks has a function ``checks(mesh)``, which yields the name and the outcome of each.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROCESSES = 2
SECONDS = 900


class Group:
    """The parent's side: start the processes, and name modules to them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._logs = [directory / f"log{rank}.txt" for rank in range(PROCESSES)]
        self._processes = []
        for rank, log in enumerate(self._logs):
            with log.open("w") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.torch.processes", str(rank), str(directory)],
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            self._processes.append(process)

    def found(self, module: str) -> list[dict[str, bool]]:
        """Return what the checks of a module found in each process."""
        reports = [report(self._directory, module, rank) for rank in range(PROCESSES)]
        until = time.monotonic() + SECONDS
        if self.is_running():
            for process in self._processes:
                print(module, file=process.stdin, flush=True)
        while not all(path.exists() for path in reports):
            ended = not self.is_running() or time.monotonic() > until
            assert not ended, "\n".join(log.read_text() for log in self._logs)
            time.sleep(0.02)
        return [json.loads(path.read_text()) for path in reports]

    def is_running(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


def report(directory: Path, module: str, rank: int) -> Path:
    return directory / f"{module}.{rank}.json"


def main(rank: int, directory: Path) -> None:
    """Run the checks of each module that is named on the standard input."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    torch.set_num_threads(1)
    store = f"file://{directory}/store"
    dist.init_process_group("gloo", store, rank=rank, world_size=PROCESSES)
    mesh = init_device_mesh("cpu", (PROCESSES,))
    for line in sys.stdin:
        module = line.strip()
        checks = importlib.import_module(module).checks
        found = {name: bool(fine) for name, fine in checks(mesh)}
        path = report(directory, module, rank)
        path.with_suffix(".part").write_text(json.dumps(found))
        path.with_suffix(".part").replace(path)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
