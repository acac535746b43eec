"""The arithmetic written in other languages: the files are those of today's `_arithmetic`."""

import math

import numpy as np
import pytest

from validation import generated
from validation.codegen import __main__ as generator
from validation.codegen import emit_c, emit_triton
from validation.codegen.trace import Output, Tracer

INF = math.inf


class TestFiles:
    def test_are_what_the_generator_makes(self):
        assert generated.update(generator.sources(), generator.COMMAND, check=True) == 0


class TestTracing:
    @pytest.mark.parametrize("x", [0.1, 1 / 3, 2.0**-126, 3.4e38, 1e20, -7.0, 2.0**32])
    def test_literals(self, x):
        x = float(np.float32(x))
        assert np.float32(eval(emit_triton.literal(x))) == np.float32(x)
        assert eval(emit_triton.literal(-INF)) == -INF
        text = emit_c.literal(x).removeprefix("set1(").removesuffix("f)")
        assert np.float32(text) == np.float32(x)

    def test_a_constant_that_float32_lacks(self):
        with pytest.raises(ValueError, match="1e-40 is not a normal float32"):
            Tracer().argument("a") * 1e-40

    @pytest.mark.parametrize("n", [2**24 + 1, -(2**25) + 1])
    def test_an_integer_that_float32_lacks(self, n):
        bits = Tracer().bits(Tracer().argument("a"))
        with pytest.raises(ValueError, match="is not a float32: keep it out of the arithmetic"):
            bits + n

    def test_what_cannot_be_traced(self):
        with pytest.raises(NotImplementedError, match=r"the arithmetic uses xp\.sinh"):
            Tracer().sinh(1.0)
        with pytest.raises(NotImplementedError, match="the arithmetic uses exp, for which C has"):
            lines(lambda xp, a, b: xp.exp(a))
        with pytest.raises(TypeError, match="use where"):
            bool(Tracer().argument("a") > 0.0)


def lines(function, arguments=("a", "b"), pick=(0,)):
    """The statements of a function in C."""
    text = emit_c.inline_function(Output("f", arguments, function, pick, "."))
    return [line.strip() for line in text.splitlines()[4:-1]]


class TestC:
    @pytest.mark.parametrize(
        ("function", "text"),
        [
            (lambda xp, a, b: a * b + a, "MADD(a[i], b[i], a[i])"),
            (lambda xp, a, b: a + a * b, "MADD(a[i], b[i], a[i])"),
            (lambda xp, a, b: a * b - a, "MADD(a[i], b[i], -a[i])"),
            (lambda xp, a, b: a - a * b, "MADD(-a[i], b[i], a[i])"),
            (lambda xp, a, b: 1.0 - a * 2.0, "MADD(-a[i], set1(2.0f), set1(1.0f))"),
        ],
    )
    def test_a_product_in_a_sum_is_fused(self, function, text):
        assert lines(function) == [f"EACH(V, t0, {text});", "SET(result0, t0[i]);"]

    def test_a_product_of_two_uses_is_not(self):
        def twice(xp, a, b):
            product = a * b
            return product + a, product

        assert lines(twice, pick=(0, 1))[1] == "EACH(V, t1, t0[i] + a[i]);"
        assert lines(twice, pick=(0,))[0] == "EACH(V, t0, MADD(a[i], b[i], a[i]));"
