"""What the tests of PyTorch share."""

import warnings
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from tests.torch.processes import Group

# Doctests are looked for in every module, whether or not what it imports is there.
collect_ignore = [] if find_spec("torch") else ["cases.py", "rows.py", "sharded.py"]


@pytest.fixture(autouse=True)
def _warnings_of_torch():
    """The forward mode of PyTorch compiles rules of its own with its deprecated compiler, once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".torch.jit.script", DeprecationWarning)
        yield


@pytest.fixture
def capability(record_property):
    """Record that a test shows a function under a transform, for the capability table."""

    def record(function: str, transform: str) -> None:
        record_property("capability", f"{function}:torch:{transform}")

    return record


@pytest.fixture
def set_threads():
    """How many threads PyTorch uses, until the test ends."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def fresh_compiler():
    """Leave nothing of other tests to the compiler, nor of this one to them."""
    torch = pytest.importorskip("torch")
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def unvalidated():
    """Have no distribution validate its arguments, as PyTorch's compiler does when it is loaded.

    Pyro has all of them do so when it is imported, and the compiler cannot trace that.
    """
    kind = pytest.importorskip("torch").distributions.Distribution
    before = kind._validate_args
    kind.set_default_validate_args(False)
    yield
    kind.set_default_validate_args(before)


@pytest.fixture(scope="session")
def two_processes(tmp_path_factory):
    """A group of two processes, which runs the checks of every module that is named to it."""
    if not pytest.importorskip("torch").distributed.is_available():
        pytest.skip("this PyTorch was built without torch.distributed")
    group = Group(tmp_path_factory.mktemp("processes"))
    yield group
    group.end()


@pytest.fixture
def wrong_arithmetic(monkeypatch):
    """Make the derivative of every forward wrong, and have it computed by arithmetic over torch.

    Its values are right. Wherever a rule of differentiation is dropped, a thousand shows.
    """
    import torch

    from logunif_kl.torch import _composite, _cpu
    from logunif_kl.torch._namespace import xp

    def wrong(function):
        def changed(xp, *arguments):
            tensors = [a for a in arguments if not isinstance(a, int)]
            error = sum(1000.0 * (x - x.detach()) for x in tensors)
            result = function(xp, *arguments)
            if isinstance(result, tuple):
                return tuple(r.detach() + error for r in result)
            return result.detach() + error

        return changed

    for module, suffix in (("functions", ""), ("derivatives", "_derivative")):
        given = getattr(_composite, module)
        names = [name + suffix for name in ("neg_kl", "neg_kl_normal")]
        changed = SimpleNamespace(**{name: wrong(getattr(given, name)) for name in names})
        monkeypatch.setattr(_composite, module, changed)
    monkeypatch.setattr(_cpu, "takes", lambda *tensors: False)
    # Otherwise no test that uses this fixture could fail.
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(_composite.functions.neg_kl(xp, x).sum(), x)
    assert (slope == 1000.0).all()
