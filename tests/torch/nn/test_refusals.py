"""What the layers and functions refuse: the calls and errors of refusals.txt, and a few more."""

import builtins
import inspect
import math  # noqa: F401 (refusals.txt uses it)
import re
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, F401
from torch.nn import utils  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402, F401

import logunif_kl as lk  # noqa: E402
from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import CASES, Calls, made, tied  # noqa: E402, F401

# Of lazy layers, of weight_norm, and of complex modules.
pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.zeros(2, 4)


def layer(**options):
    return nn.VariationalLinear(3, 2, **options)


def scales():
    return made(CASES["linear"], posterior=nn.Correlated())


def without_shape():
    return nn.LazyVariationalConv1d(2, 3)


def tied_weights(table=nn.VariationalEmbedding, out=nn.VariationalLinear):
    model = torch.nn.ModuleDict({"table": table(4, 3), "out": out(3, 4)})
    model["out"].weight = model["table"].weight
    return model


def shared(first, second, *names):
    """Two layers, of which the second has these parameters of the first."""
    for name in names:
        setattr(second, name, getattr(first, name))
    return torch.nn.ModuleList([first, second])


def resized(layer, times=20):
    """A layer whose weight got this number of times its rows, and its second parameter not."""
    rows, *others = layer.weight.shape
    layer.weight = torch.nn.Parameter(torch.ones(times * rows, *others))
    return layer


def made_lazily():
    found = nn.LazyVariationalLinear(15)
    found(torch.ones(1, 10))
    return found


def of_type(dtype, device="cpu"):
    """A layer whose second parameter is of another type, or on another device."""
    found = layer()
    other = torch.ones(2, 3, dtype=dtype, device=device)
    found.log_sigma2 = torch.nn.Parameter(other, requires_grad=False)
    return found


def replica(module):
    """A copy, as `torch.nn.DataParallel` makes them."""
    module._is_replica = True
    return module


class Own(nn.VariationalLinear):
    """A class of a user."""


class OwnTable(nn.VariationalEmbedding):
    """Another."""


class Returns:
    """A prior whose method returns what a function gives."""

    def __init__(self, function):
        self.neg_kl = function


def quantized():
    found = torch.nn.Linear(1, 1)
    found.weight = torch.nn.Parameter(torch.ones(1, 1, dtype=torch.int8), requires_grad=False)
    return found


def masked(module, name="weight"):
    return utils.prune.l1_unstructured(module, name, amount=1)


def sparse(module, **options):
    with torch.no_grad():
        module.weight.zero_()
    return nn.to_sparse(module, **options)


def fixed():
    """A layer in evaluation mode, without gradients."""
    return nn.VariationalLinear(2, 3).eval().requires_grad_(False)


def given(output, target):
    return target + 0.0 * output.sum()


def bound_of(log_likelihood, size=10, batch=2):
    return nn.ELBO(fixed(), log_likelihood, size)(torch.ones(batch, 2), None)


def network():
    return torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(4, 3))


def returns(value):
    """A model with dropout that returns a value, or calls a function of its input."""
    drop = torch.nn.Dropout().eval()
    return Calls(lambda drop, x: value(x) if callable(value) else value, drop)


def through(module):
    return nn.moments(module, torch.ones(2, 3), torch.ones(2, 3))


def rows():
    """The calls in each section of refusals.txt, with their errors, which are indented below."""
    text = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8")
    for section in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = section.strip().splitlines()
        yield heading.split(":")[0], list(zip(lines[::2], lines[1::2], strict=True))


ROWS = dict(rows())


def wrong(call, expected, **names):
    """What is wrong with the error of a call: nothing, if it is this one.

    A message that ends with ``...`` may go on.
    """
    kind, message = expected.strip().split(": ", 1)
    try:
        eval(call, globals() | names)
    except getattr(builtins, kind) as error:
        found = str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    else:
        return "no error"
    start = message.removesuffix("...")
    fine = found == message or (message.endswith("...") and found.startswith(start))
    return "" if fine and len(found) < 250 else found


@pytest.mark.parametrize("section", ROWS)
def test_refusals(section):
    """Inputs are refused in training and in evaluation mode."""
    modes = (True, False) if section == "inputs" else (True,)
    found = {
        (call, mode): what
        for call, expected in ROWS[section]
        for mode in modes
        if (what := wrong(call, expected, mode=mode))
    }
    assert not found


MAKE = {
    **{name: partial(case.layer, *case.arguments, **case.options) for name, case in CASES.items()},
    "lazy linear": partial(nn.LazyVariationalLinear, 2),
    "lazy conv": partial(nn.LazyVariationalConv2d, 2, 1),
    "of a module": partial(nn.to_variational, torch.nn.Linear(3, 2)),
    "of a table": partial(nn.VariationalEmbedding.from_pretrained, torch.ones(4, 2)),
}


OPTION_ERRORS = {
    "posterior": ("scaled", "posterior='scaled' was given, but a posterior is an object: pass pos"),
    "sharing": (
        "input",
        "sharing='input' was given, but a posterior is an object: pass posterior=",
    ),
    "posteriour": ("additive", "there is no option 'posteriour': pass one of posterior, estimator"),
    "dtype": (torch.int64, "dtype must be a real floating type, but torch.int64 was given: pass "),
    "bias": ("no", "bias must be True or False, but 'no' was given: pass one"),
}


@pytest.mark.parametrize("name", MAKE)
def test_every_layer_checks_its_options(name):
    without = {"of a module": ("dtype", "bias"), "of a table": ("dtype", "bias")}
    for option, (value, error) in OPTION_ERRORS.items():
        if option not in without.get(name, ("bias",) if name == "embedding" else ()):
            with pytest.raises((TypeError, ValueError), match=f"^{re.escape(error)}"):
                MAKE[name](**{option: value})


def test_a_refused_option_changes_nothing():
    for call, expected in ROWS["options_later"]:
        one = layer(posterior=nn.Grouped("output")) if "(posterior=" in call else layer()
        before = dict(vars(one))
        assert not wrong(call, expected, layer=lambda one=one, **_: one)
        assert vars(one) == before, call


def test_options_that_may_be_assigned():
    posterior = nn.Multiplicative("input", 0.0, initial=-2.0)
    given = {"posterior": posterior, "penalty": "molchanov", "estimator": "per_batch"}
    given["generator"] = torch.Generator()
    one = layer(posterior=nn.Multiplicative("input"))
    for name, value in given.items():
        setattr(one, name, value)
    assert {name: getattr(one, name) for name in given} == given


def test_help_lists_the_options():
    """Also those that a signature in the code sums up as ``**options``."""
    expected = "posterior: 'Additive' = Additive(), estimator: 'str' = 'local', penalty: 'Any' = "
    for function in (*(case.layer for case in CASES.values()), nn.to_variational):
        assert f"*, {expected}" in str(inspect.signature(function))


def test_a_generator_of_another_device():
    from torch._subclasses.fake_tensor import FakeTensorMode

    one = layer(generator=torch.Generator())
    sentence = "generator is on cpu and the layer on cuda: pass torch.Generator('cuda')"
    # No such device is needed: these tensors have no memory.
    with FakeTensorMode():
        named = {name: torch.empty(p.shape, device="cuda") for name, p in one.named_parameters()}
        x = torch.empty(2, 3, device="cuda")
        with pytest.raises(RuntimeError, match=f"^{re.escape(sentence)}$"):
            torch.func.functional_call(one, named, (x,))


def test_a_fit_is_shown_in_short():
    shown = repr(layer(penalty=lk.fit_polynomial(3)))
    assert "penalty=<Fit: polynomial of degree 3, minimax of the val" in shown
    assert len(shown) < 250
