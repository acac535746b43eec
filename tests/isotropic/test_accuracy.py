"""No error is larger than claimed, at points that the search did not try."""

import platform

import pytest

from logunif_kl.isotropic import ACCURACY
from validation.accuracy import plan, worker

PROMISED = {"float64": 2.5, "float32": 1.0, "float16": 1.0}
OF_NUMPY = [c for c in ACCURACY if c.kernel == "python"]
COMPLEX = [c for c in ACCURACY if "vector" not in c.function]


def name_of(claim):
    return f"{claim.function}-{claim.dtype}-{claim.kernel}"


def test_what_was_promised():
    for claim in COMPLEX:
        assert claim.ulp <= (4.0 if claim.kernel == "jax" else PROMISED[claim.dtype]), claim
    assert {c.kernel for c in ACCURACY} == {"python", "torch", "jax"}


@pytest.mark.parametrize("claim", OF_NUMPY, ids=name_of)
def test_claims_hold_at_other_points(claim):
    count = 48 if "vector" in claim.function else 1500
    wanted = {"functions": [claim.function], "dtypes": [claim.dtype], "count": count, "rounds": 0}
    [job] = plan.jobs("isotropic", [claim.kernel], **wanted, seed=77)
    assert worker.measured(job)["ulp"] <= claim.ulp


@pytest.mark.parametrize("claim", OF_NUMPY, ids=name_of)
def test_the_recorded_error_is_found_again(claim):
    found = worker.measured({**claim._asdict(), "method": "again"})
    assert found["ulp"] <= claim.ulp
    # It was measured on x86-64. On AArch64 the errors of the same functions are smaller.
    if platform.machine() in ("x86_64", "AMD64"):
        assert claim.ulp - 0.01 <= found["ulp"]
