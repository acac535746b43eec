"""Experiments of the papers in their quick forms, as their tests run them."""

import json

from logunif_kl.cli import sources
from validation.tools import stale


def run(module, *arguments):
    """Run the command of an experiment, and return its exit status."""
    return module.EXPERIMENT.main(module.measure, [*map(str, arguments)])


class Records:
    """The records of the quick forms, each made once, when a test asks for it.

    ``module`` gives the module of a name, and ``options`` what its command has beside ``--quick``
    and ``--out``. A picture that ``--plot`` names must say which sources it measured.
    """

    def __init__(self, folder, module, options=lambda name, folder: []):
        self._folder, self._module, self._options = folder, module, options
        self._found = {}

    def __call__(self, name, *arguments):
        if name not in self._found:
            its, out = self._module(name), self._folder / f"{name}.json"
            options = [*self._options(name, self._folder), *arguments]
            assert run(its, "--quick", "--out", out, *options) == 0
            if "--plot" in options:
                plot = options[options.index("--plot") + 1]
                told = stale.png_text(plot.read_bytes())
                kind = f"{its.EXPERIMENT.paper}_{its.EXPERIMENT.name}"
                assert told["sources_sha256"] == sources.sha256(kind)
            self._found[name] = json.loads(out.read_text(encoding="utf-8"))
        return self._found[name]
