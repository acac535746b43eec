"""The inputs of the golden tables: edges, landmarks and a walk over all bit patterns.

There are no random numbers. The walk steps through the bit patterns by the golden ratio, which
leaves no large gaps and gives the same points on every machine.
"""

import math
import struct
from collections.abc import Iterable, Iterator

INF, NAN = math.inf, math.nan
TINY, NORMAL, MAX = 5e-324, 2.0**-1022, float.fromhex("0x1.fffffffffffffp+1023")
STEP = (math.sqrt(5) - 1) / 2

F16 = (2.0**-24, 2.0**-14, 65504.0)
BF16 = (2.0**-133, 2.0**-126, float.fromhex("0x1.fep+127"))
F32 = (2.0**-149, 2.0**-126, float.fromhex("0x1.fffffep+127"))

# Landmarks, the maximum of (1+2u)F', the zero of -KL's second derivative.
U_MARKS = (0.5, 1.0, 10.0, 50.0, 1.38, 2.2559297064905674)
# In log alpha: E log|eps| = 0, Molchanov's worst error, the zero, and the limits of exp by type.
X_MARKS = (
    0.0,
    0.88428365,
    -3.5,
    -1.5067093552398294,
    -710.4758600739439,
    -709.782712893384,
    708.3964185322641,
    744.4400719213812,
    745.1332191019411,
    -88.72283905206835,
    87.33654475055310,
    103.97207708399179,
    -11.089866488461016,
    9.7040605278392343,
    17.328679513998633,
)


def of(name: str) -> list[tuple[float, ...]]:
    if name == "neg_kl_normal":
        return _unique(_pairs())
    return _unique((v,) for v in (_u() if name.startswith("kl_gap") else _x()))


def around(v: float, ulps: Iterable[int]) -> Iterator[float]:
    """Yield v moved by each number of ulps."""
    for n in ulps:
        yield _float(_pattern(v) + n)


def walk(low: float, high: float, count: int) -> Iterator[float]:
    """Yield floats between two of one sign, evenly spaced by bit pattern."""
    a, b = _pattern(low), _pattern(high)
    for i in range(1, count + 1):
        yield _float(a + int(math.fmod(i * STEP, 1.0) * (b - a)))


def _u() -> Iterator[float]:
    yield from (0.0, -0.0, INF, NAN, -1.0, -TINY, -INF)
    yield from (TINY, 2 * TINY, NORMAL - TINY, NORMAL, 1e-300, 1e300, 1e308, MAX)
    yield from (*F16, *BF16, *F32)
    for mark in U_MARKS:
        yield from around(mark, (-8, -1, 0, 1, 8))
    for k in range(-30, 31):
        yield 4.0**k
    for k in range(-3, 8):
        yield from around(2.0**k, (-1, 1))
    yield from walk(TINY, MAX, 70)
    yield from walk(2.0**-12, 2.0**12, 190)


def _x() -> Iterator[float]:
    yield from (-0.0, INF, -INF, NAN, TINY, -TINY, NORMAL, -NORMAL, MAX, -MAX)
    yield from (1e308, -1e308, 1e300, -1e300, 745.0, -745.0)
    for edge in (*F16, *BF16, *F32):
        yield from (edge, -edge)
    for mark in X_MARKS:
        yield from around(mark, (-8, -1, 0, 1, 8)) if mark else (0.0,)
    for k in range(-48, 49):
        yield k / 4
    yield from (-800 + 1600 * math.fmod(i * STEP, 1.0) for i in range(1, 81))
    for sign in (1, -1):
        yield from walk(sign * TINY, sign * MAX, 25)
        yield from walk(sign * 2.0**-6, sign * 2.0**7, 60)


def _pairs() -> Iterator[tuple[float, float]]:
    edges = (0.0, -0.0, TINY, -TINY, NORMAL, 1e-160, -1e-10, 1.0, -3.0, 1e10, 1e160, -MAX)
    logs = (0.0, TINY, 1.0, -8.0, -10.0, 20.0, 745.2, -745.2, 1490.0, -1490.0, MAX, -MAX)
    for mu in (*edges, INF, -INF, NAN):
        for log_sigma2 in (*logs, INF, -INF, NAN):
            yield mu, log_sigma2
    for i, mu in enumerate(walk(2.0**-20, 2.0**6, 120)):
        yield (-mu if i % 3 == 0 else mu), -20 + 26 * math.fmod(i * STEP * STEP, 1.0)
    for i, mu in enumerate(walk(TINY, MAX, 60)):
        yield (-mu if i % 3 == 0 else mu), -1500 + 3000 * math.fmod(i * STEP * STEP, 1.0)


def _unique(rows: Iterable[tuple[float, ...]]) -> list[tuple[float, ...]]:
    return list({tuple(v.hex() for v in row): row for row in rows}.values())


def _pattern(v: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", v))[0])


def _float(pattern: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", pattern))[0])
