"""Every function under every transform: the right derivatives, and by the rules alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import logunif_kl as lk  # noqa: E402
from tests.derivatives import check_borders  # noqa: E402
from tests.torch.cases import by_name  # noqa: E402
from tests.torch.rows import EAGER, TRANSFORMS  # noqa: E402

ROWS = EAGER | TRANSFORMS
# Of an element's own error, by the order in all: the tables lose digits with each.
TOLERANCE = {0: 4, 1: 8, 2: 16, 3: 32, 4: 2**10, 5: 2**15}


def compare(case, found, dtype):
    eps = torch.finfo(dtype).eps
    for orders, tensor in found.items():
        truth = case.truth(orders)
        got = tensor.detach().double().numpy()
        assert tensor.dtype == dtype, orders
        error = np.abs(got - truth) / np.abs(truth)
        assert (error <= TOLERANCE[sum(orders) + case.order] * eps).all(), (orders, error / eps)


@pytest.mark.parametrize("row", ROWS)
@by_name
class TestEager:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
    def test_derivatives(self, case, row, dtype, capability):
        capability(case.name, row)
        compare(case, ROWS[row](case.function, case.arguments(dtype)), dtype)

    def test_by_the_rules_alone(self, case, row, capability, wrong_arithmetic):
        capability(case.name, f"{row}, over arithmetic with a wrong derivative")
        compare(case, ROWS[row](case.function, case.arguments()), torch.float64)


def test_where_tables_end():
    def derivative(orders, *arguments):
        tensors = [torch.tensor(a, requires_grad=True) for a in arguments]
        value = lk.neg_kl_normal(*tensors)
        for tensor, order in zip(tensors, orders, strict=True):
            for _ in range(order):
                (value,) = torch.autograd.grad(value.sum(), tensor, create_graph=True)
        return value.detach()

    check_borders(derivative)
