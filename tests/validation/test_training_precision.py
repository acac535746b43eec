"""Training in float32 and under autocast in the half types: finite, and to the same error."""

import contextlib
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from logunif_kl.torch import nn  # noqa: E402
from validation.training import data, loop  # noqa: E402

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def train(precision, steps, batch_size=50):
    """Train a small network on digits, and return its test error in per cent."""
    dtype, digits = PRECISIONS[precision], data.digits()
    examples, noise = loop.Examples(digits.train), loop.seeded(1, 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            nn.VariationalLinear(64, 48, generator=noise),
            torch.nn.ReLU(),
            nn.VariationalLinear(48, 48, generator=noise),
            torch.nn.ReLU(),
            nn.VariationalLinear(48, 10, generator=noise),
        )
    elbo = nn.ELBO(model, nn.categorical_log_likelihood, len(examples))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "float16")
    order = loop.seeded(1, 0)
    for step in range(steps):
        rows = torch.randint(len(examples), (batch_size,), generator=order)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype) if dtype else contextlib.nullcontext():
            output = model(examples.x[rows])
            warm = nn.linear_warm_up(step, 0, steps // 2)
            bound = elbo.bound(output.float(), examples.y[rows], warm)
        scaler.scale(bound.loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert math.isfinite(bound.loss.item()), step
    assert all(bool(torch.isfinite(value).all()) for value in model.parameters())
    return loop.evaluate(model, digits.test)["error_percent"]


def same_within_noise(errors, examples=359):
    """No two differ by more than three standard deviations of their difference."""
    mean = sum(errors) / len(errors) / 100.0
    deviation = 100.0 * math.sqrt(2.0 * mean * (1.0 - mean) / examples)
    return max(errors) - min(errors) < 3.0 * deviation


@pytest.mark.parametrize(
    ("steps", "most"), [(400, 30.0), pytest.param(20_000, 8.0, marks=pytest.mark.slow)]
)
def test_each_precision(steps, most):
    errors = [train(precision, steps) for precision in PRECISIONS]
    assert max(errors) < most
    assert same_within_noise(errors)
