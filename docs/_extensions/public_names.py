"""Every public name has an entry in the reference, or the build warns.

The names are those of ``tests/golden/public.txt``, which a test holds to the modules.
"""

from __future__ import annotations

import re
from pathlib import Path
from pydoc import locate

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

logger = logging.getLogger(__name__)
NAMES = Path(__file__).parents[2] / "tests" / "golden" / "public.txt"


def public(text: str) -> set[str]:
    """Return the names on file: functions, classes, constants and modules, not their members."""
    names = set(re.findall(r"^[\w.]+", text, re.MULTILINE))
    classes = {name for name in names if name.rpartition(".")[2][:1].isupper()}
    return {name for name in names if name.rpartition(".")[0] not in classes}


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of each public name that no page documents."""
    documented = {name for name, *_ in env.get_domain("py").get_objects()}
    # An object has one page, under one of its names.
    objects = {id(found) for name in documented if (found := locate(name)) is not None}
    for name in sorted(public(NAMES.read_text(encoding="utf-8")) - documented):
        if id(locate(name)) not in objects:
            logger.warning("%s is public, and no page describes it", name, type="public_names")


def setup(app: Sphinx) -> dict[str, bool]:
    """Check when all pages have been read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
