"""No method is worse than it declares, at whatever log alpha Hypothesis finds in its domain.

`logunif-kl validate` measures the same on grids; here the points are drawn over bit patterns, with
the ends of each domain and their neighbours among them.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import logunif_kl as lk
from logunif_kl.methods import METHODS
from logunif_kl.methods._dawson import DAWSON
from tests import strategies

DETERMINISTIC = [method for method in METHODS.values() if method.kind != "statistical"]
CLAIMS = [
    pytest.param(method, claim, id=f"{method.name}, {claim.interval.name}")
    for method in (*DETERMINISTIC, DAWSON)
    for claim in method.claims
]
EPS = 2**-52


def inside(interval):
    """Log alphas of an interval, its ends and their neighbours among them."""
    low, high = interval.low, interval.high
    ends = [low, high, *(math.nextafter(end, 0.0) for end in (low, high) if math.isfinite(end))]
    ends = [end for end in ends if low <= end <= high]
    return strategies.floats(low=low, high=high).map(float) | st.sampled_from(ends)


@pytest.mark.parametrize(("method", "claim"), CLAIMS)
@given(data=st.data())
def test_value_and_gradient_are_within_the_declared_errors(method, claim, data):
    x = data.draw(inside(claim.interval))
    if claim.gradient is not None:
        found, exact = float(method.gradient(x)), float(lk.neg_kl_grad(x))
        # Where the exact gradient underflows, a unit of the smallest number is all that is left.
        assert abs(found - exact) <= (claim.gradient + 8 * EPS) * exact + 8 * math.ulp(0.0)
    if method is DAWSON:  # it gives no value
        return
    found, exact = float(method.function(x)), float(lk.neg_kl(x))
    if math.isinf(exact):
        assert found == exact
        return
    allowed = claim.value * (max(1.0, abs(exact)) if method.kind == "numerical" else 1.0)
    if method.kind == "closed form":
        # Its error is measured in the continuum, and it sums a few terms of its size and of 1.
        allowed += 8 * EPS * (abs(exact) + 1.0)
    assert abs(found - exact) <= allowed


@pytest.mark.parametrize("method", DETERMINISTIC, ids=lambda method: method.name)
@given(
    x=strategies.floats(low=-40.0, high=40.0).map(float),
    zero_at=st.floats(1e-3, 1e3),
    log_c=st.floats(-50.0, 50.0),
)
def test_a_convention_adds_the_same_to_every_method(method, x, zero_at, log_c):
    plain = float(method.function(x))
    for convention in ({"zero_at": zero_at}, {"log_c": log_c}):
        constant = float(lk.neg_kl(math.inf, **convention))
        moved = float(method.function(x, **convention))
        assert abs(moved - (plain + constant)) <= 4 * EPS * (abs(plain) + abs(constant))
