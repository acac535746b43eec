"""The execution of PTX on the CPU: its roundings exactly, and the instructions one by one."""

import math
from fractions import Fraction

import numpy as np
import pytest

from validation.accuracy.search import from_ordinals, ordinals
from validation.cuda.ptx import Approximation, Machine, flushed, fma, statements

INF, NAN = math.inf, math.nan
F32 = np.float32


@pytest.fixture
def rng():
    return np.random.default_rng(9)


def patterns(rng, count):
    top = int(ordinals(np.array([np.inf], "float32"))[0])
    return from_ordinals(rng.integers(-top + 1, top, count), "float32")


def cases(rng):
    """Numbers of any size, sums that cancel, halves of a place, and subnormal results."""
    a, b, c = (patterns(rng, 400) for _ in range(3))
    near = [rng.uniform(-4, 4, 400).astype(F32) for _ in range(3)]
    with np.errstate(all="ignore"):
        cancelling = near[0], near[1], -(near[0] * near[1])
        small = near[0] * F32(2.0**-70), near[1] * F32(2.0**-70), near[2] * F32(2.0**-140)
    odd = (1 + 2.0**-23 * rng.integers(0, 2**23, 400)).astype(F32)
    ties = odd, np.full(400, 1 + 2.0**-12, F32), np.full(400, 2.0**-60, F32)
    return [
        np.concatenate(columns)
        for columns in zip((a, b, c), near, cancelling, small, ties, strict=True)
    ]


class TestRounding:
    def test_fma_is_the_nearest(self, rng):
        a, b, c = cases(rng)
        with np.errstate(all="ignore"):
            got = fma(a, b, c)
            ways = [np.nextafter(got, F32(way)) for way in (-INF, INF)]
        assert np.isfinite(got).sum() > 1500
        for x, y, z, r, *near in zip(a, b, c, got, *ways, strict=True):
            truth = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
            if not np.isfinite(r):
                assert abs(truth) > Fraction(float(np.finfo(F32).max))
                continue
            error = abs(Fraction(float(r)) - truth)
            others = [abs(Fraction(float(o)) - truth) for o in near if np.isfinite(o)]
            even = int(r.view(np.uint32)) % 2 == 0
            assert all(error < other or (error == other and even) for other in others)


def program(*lines):
    return ".visible .entry k(\n .param .u64 p\n)\n{\n" + "\n".join(lines) + "\n}\n"


# Each thread loads its element of parameter 0, and stores %r9 to parameter 1.
LOAD = (
    "ld.param.b64 %rd1, [k_param_0];",
    "ld.param.b64 %rd2, [k_param_1];",
    "mov.u32 %r1, %tid.x;",
    "mul.wide.u32 %rd3, %r1, 4;",
    "add.s64 %rd1, %rd1, %rd3;",
    "add.s64 %rd2, %rd2, %rd3;",
    "ld.global.b32 { %r2 }, [ %rd1 + 0 ];",
)
STORE = ("st.global.b32 [ %rd2 + 0 ], { %r9 };", "ret;")


def run(values, *lines, share=0.0):
    values = np.array(values, F32)
    out = np.zeros_like(values)
    machine = Machine(1, len(values), [values, out], Approximation(share))
    machine.run(program(*LOAD, *lines, *STORE))
    return out


VALUES = (-INF, -2.5, -0.0, 1e-40, 0.75, 2.0, INF, NAN)


class TestMachine:
    @pytest.mark.parametrize(
        ("line", "wanted"),
        [
            ("fma.rn.f32 %r9, %r2, 0f40000000, 0f3F800000;", lambda x: x * 2 + 1),
            ("mul.f32 %r9, %r2, %r2;", lambda x: x * x),
            ("mul.ftz.f32 %r9, %r2, 0f3F800000;", flushed),
            ("abs.f32 %r9, %r2;", np.abs),
            ("neg.f32 %r9, %r2;", np.negative),
            ("rcp.approx.ftz.f32 %r9, %r2;", lambda x: F32(1) / flushed(x)),
            ("max.NaN.f32 %r9, %r2, 0f00000000;", lambda x: np.maximum(x, F32(0))),
            ("and.b32 %r9, %r2, 2147483647;", np.abs),
        ],
    )
    def test_instructions(self, line, wanted):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(VALUES, line), wanted(np.array(VALUES, F32)))

    def test_what_is_unknown(self):
        with pytest.raises(ValueError, match=r"the PTX instruction sin.approx.f32 is not known"):
            run([1.0], "sin.approx.f32 %r9, %r2;")
        with pytest.raises(ValueError, match=r"'\?\?' is not a PTX statement"):
            statements(program("??;"))
