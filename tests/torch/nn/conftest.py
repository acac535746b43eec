"""What the tests of the layers share."""

from importlib.util import find_spec

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("torch") else ["cases.py", "distributed.py", "models_sharded.py"]
