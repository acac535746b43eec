"""A PyTorch without the private names that the package reads: the composite computes, by the rules.

The names are hidden while the package is imported, in a process of its own.
"""

import pytest

from tests import child

pytest.importorskip("torch")

CODE = """
import importlib, sys, types
import pytest, torch
from torch.autograd import forward_ad

HIDDEN = (
    lambda patch: patch.delattr(torch, "_is_functional_tensor"),
    lambda patch: patch.delattr(torch._C, "_len_torch_dispatch_stack"),
    lambda patch: patch.delattr(forward_ad, "_set_fwd_grad_enabled"),
    lambda patch: patch.setitem(sys.modules, "torch._C._functorch", types.ModuleType("empty")),
)
with pytest.MonkeyPatch.context() as patch:
    for hide in HIDDEN:
        hide(patch)
    import logunif_kl.torch as lt
    from logunif_kl.torch import _cpu, _internals, _backends

from tests.torch.cases import CASES
from tests.torch.rows import EAGER, TRANSFORMS
from tests.torch.test_transforms import compare

x = torch.ones(3)
assert not _cpu.takes(x)
assert _backends.choose(x) is _backends.choose(x, x) is _backends._COMPOSITE

rows = [EAGER[row] for row in ("value", "backward", "second backward", "third backward")]
rows += [TRANSFORMS[row] for row in ("grad", "vmap(grad)", "grad(grad(grad))", "jacrev")]
for case in CASES:
    for dtype in (torch.float64, torch.float32):
        for row in rows:
            compare(case, row(case.function, case.arguments(dtype)), dtype)

for dtype in (torch.float32, torch.float64, torch.bfloat16):
    mu = torch.tensor([0.0, 1.0, -1.0], dtype=dtype, requires_grad=True)
    lt.neg_kl_normal(mu, 0.0, reduction="sum").backward()
    wanted = torch.tensor([0.0, -0.7247784590, 0.7247784590], dtype=torch.float64)
    torch.testing.assert_close(mu.grad, wanted.to(dtype))
    eye = torch.eye(3, dtype=dtype)
    (found,) = torch.autograd.grad(lt.neg_kl_normal(mu, 0.0), mu, eye, is_grads_batched=True)
    assert torch.equal(found, torch.diag(mu.grad))

# Otherwise a tangent might be zero where it should not be.
words = "lacks internals that forward-mode derivatives need here"
with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=words):
    lt.neg_kl(forward_ad.make_dual(x, x))

# Each name alone, and none.
for i, hide in enumerate(HIDDEN):
    with pytest.MonkeyPatch.context() as patch:
        hide(patch)
        importlib.reload(_internals)
    assert not _internals._COMPLETE, i
importlib.reload(_internals)
assert _internals._COMPLETE and _cpu.takes(x)
print("done")
"""


def test_the_composite_is_right():
    assert child.output(CODE) == "done\n"
