"""What the tests of the layers for JAX share."""

from importlib.util import find_spec

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("jax") else ["layers.py", "sharded.py"]
collect_ignore_glob = ["examples/*"]
