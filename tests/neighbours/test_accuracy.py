"""No error is larger than claimed, at points that the search did not try."""

import numpy as np
import pytest

from logunif_kl.neighbours import ACCURACY
from validation.accuracy import neighbours as measured

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
    case = measured.case_of(claim)
    count = 48 if case.k else 1500
    found = measured.search(case, measured.implementation(case), count=count, rounds=0, seed=77)
    assert found["ulp"] <= claim.ulp


@pytest.mark.parametrize("claim", OF_NUMPY, ids=name_of)
def test_the_recorded_error_is_found_again(claim):
    case = measured.case_of(claim)
    at = [float.fromhex(x) for x in claim.inputs]
    with np.errstate(all="ignore"):
        got = measured.implementation(case)(*(np.array([x], claim.dtype) for x in at))
    assert measured.error(case, float(np.asarray(got)[0]), measured.truth(case, *at)) <= claim.ulp
