"""Every function under every transform: the right derivatives, and by the rules alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

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
