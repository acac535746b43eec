"""Operations on the bits of float32, and the constants in them."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from logunif_kl._arithmetic import binary32, normal_float32
from validation.codegen.trace import Tracer


def is_float32(n):
    return int(np.float32(n)) == n


def constants(module):
    """The integers in the text of a module, and in its namespace."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {n for n in [*found, *vars(module).values()] if type(n) is int}


class TestIntegers:
    """torch.compile rounds the integers of a graph under vmap to float32."""

    @pytest.mark.parametrize("module", [binary32, normal_float32], ids=lambda m: m.__name__)
    def test_of_the_text(self, module):
        found = constants(module)
        assert found
        assert [n for n in found if not is_float32(n)] == []

    def test_of_the_computation(self):
        tracer = Tracer()
        normal_float32.neg_kl_normal(tracer, tracer.argument("mu"), tracer.argument("log_sigma2"))
        nodes = tracer.nodes.values()
        found = {node.operands[0] for node in nodes if node.operation == "integer"}
        assert {binary32.SPLIT_BITS, binary32.ONE_BITS} <= found
        assert [n for n in found if not is_float32(n)] == []

    def test_this_test_can_fail(self):
        assert not is_float32(0x3F3504F3)


class TestOperations:
    def test_split(self):
        rng = np.random.default_rng(0)
        x = np.exp2(rng.uniform(0, 127.9, 10000)).astype(np.float32)
        x[:3] = 1.0, np.float32(math.sqrt(2.0)), np.finfo(np.float32).max
        m, k = binary32.split(np, x)
        assert m.dtype == k.dtype == np.float32
        assert (np.ldexp((1.0 + m).astype(float), k.astype(int)) == x).all()
        bound = math.sqrt(2.0) * (1 + 2.0**-14)
        assert ((1.0 + m >= 1 / bound) & (1.0 + m <= bound)).all()

    def test_split_of_infinity(self):
        m, k = binary32.split(np, np.array([math.inf], np.float32))
        assert (m[0], k[0]) == (0.0, 128.0)

    def test_nearest(self):
        x = np.linspace(-300, 300, 9999, dtype=np.float32)
        n, shifted = binary32.nearest(np, x, 1.4426950408889634)
        assert (n == np.round(x * np.float32(1.4426950408889634))).all()
        assert shifted.dtype == np.int32
        assert (shifted == n + 64).all()

    def test_bits(self):
        x = np.array([1.0, -0.0, 2.0**-149], np.float32)
        assert binary32.bits(np, x).tolist() == [binary32.ONE_BITS, -(2**31), 1]
        assert binary32.unbits(np, binary32.bits(np, x)).tobytes() == x.tobytes()

    def test_horner(self):
        x = np.array([0.0, 0.5, -2.0], np.float32)
        assert binary32.horner(np, (1.0, 2.0, 3.0), x).tolist() == [1.0, 2.75, 9.0]

    def test_a_namespace_may_replace_them(self):
        class Namespace:
            fma = staticmethod(lambda a, b, c: "fma")
            inverse = staticmethod(lambda x: "inverse")

        assert binary32.fused(Namespace, 1.0, 2.0, 3.0) == "fma"
        assert binary32.inverse(Namespace, 2.0) == "inverse"
        assert binary32.quotient(Namespace, 1.0, 2.0) == 0.5
