"""The steps of the float32 kernels of training, found in the graph."""

from typing import Any, NamedTuple

from .graph import Graph, Node

LEAST_X = -263.0  # less than log(2 u/mu^2) for all u > 2^-124


class Steps(NamedTuple):
    """The nodes of a kernel that other numbers than its arguments decide."""

    limited: int
    most: int
    size: int
    excess: int
    half_e: int
    c: int
    u: int
    t: int
    far: int
    bound: float


class Matcher:
    """Takes a graph apart, and fails if it is not as expected."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, i: int, operation: str) -> tuple[Any, ...]:
        node = self.graph.nodes[i]
        if node.operation != operation:
            raise AssertionError(f"node {i} is {node.operation}, not {operation}")
        return node.operands

    def same(self, *nodes: Any) -> None:
        if len(set(nodes)) != 1:
            raise AssertionError(f"different nodes where one is expected: {nodes}")

    def constant(self, i: int, value: float | None = None) -> float:
        found = float(self(i, "const")[0])
        if value is not None and found != value:
            raise AssertionError(f"a constant is {found}, not {value}")
        return found

    def multiply_add(self, i: int) -> tuple[int, int, int]:
        if self.graph.fused:
            a, b, c = self(i, "fma")
        else:
            product, c = self(i, "add")
            a, b = self(product, "mul")
        return a, b, c

    def input(self, i: int, name: str) -> None:
        self.same(self(i, "input")[0], name)


def _argument(match: Matcher, half_e: int, excess: int, c: int) -> tuple[int, int, int]:
    """Check that x is -log sigma^2 where `excess` is 0; return x, its limit and |mu|.

    For mu != 0 the rounded |mu| - log sigma^2 is not below -log sigma^2.
    """
    raised, limited = match(excess, "sub")
    before, most = match(limited, "min")
    match.same(before, raised)
    smaller, least = match(raised, "max")
    both, x = match(smaller, "min")
    size, log_sigma2 = match(both, "sub")
    match.same(match(x, "neg")[0], log_sigma2)
    match.input(log_sigma2, "log_sigma2")
    word, mask = match(match(size, "unbits")[0], "and")
    match.input(match(word, "bits")[0], "mu")
    match.same(match(mask, "bits_const")[0], 0x7FFFFFFF)
    if not match.constant(least) <= LEAST_X:
        raise AssertionError("x is raised")
    # c is a power of two: only its exponent is computed.
    shifted, one = match(match(c, "unbits")[0], "bits_add")
    match.same(match(one, "bits_const")[0], 0x3F800000)
    if match(match(shifted, "shift_left")[1], "bits_const")[0] < 23:
        raise AssertionError("c is not a power of two")
    return limited, most, size


def take_apart(graph: Graph, name: str) -> Steps:
    """Find the steps of a result, and check that they are joined as this module says."""
    match, output = Matcher(graph), graph.label(name)
    if name.endswith(".dmu"):
        chosen, c = match(output, "mul")
        mask, far_s, near = match(chosen, "choose")
        s, q_c = match(near, "mul")
        q, minus_2c = match(q_c, "mul")
        scaled, divisor = match(far_s, "div")
        far, factor = match(scaled, "mul")
        match.same(divisor, s)
        match.same(factor, minus_2c)
        match.same(match(minus_2c, "mul")[0], c)
        match.constant(match(minus_2c, "mul")[1], -2.0)
    else:
        choice = output if name.endswith("sigma2") else match(output, "neg")[0]
        mask, far, near = match(choice, "choose")
        s, s_q = match(near, "mul")
        s_again, q = match(s_q, "mul")
        match.same(s, s_again)
    bound, u = match(mask, "less_equal")
    mu_c, c = match(s, "mul")
    mu, c_again = match(mu_c, "mul")
    match.same(c, c_again)
    match.input(mu, "mu")
    e, t, e_again = match.multiply_add(q)
    match.same(e, e_again)
    excess, factor, half_e = match.multiply_add(e)
    match.constant(factor)  # times an excess of 0
    match.same(match(u, "mul"), (s, graph.number(Node("mul", (s, half_e)))))
    limited, most, size = _argument(match, half_e, excess, c)
    return Steps(limited, most, size, excess, half_e, c, u, t, far, match.constant(bound))
