"""The worst errors of -KL of complex weights, and of groups of weights.

    python -m validation.accuracy.neighbours measure {python,torch,jax}
    python -m validation.accuracy.neighbours claims

The first searches by sampling over the range of each function and climbing among neighbouring bit
patterns, with Arb's balls (python-flint) as the truth, and puts what it finds into
``validation/results/neighbours/neighbours.json``. The second writes
``logunif_kl/neighbours/_accuracy.py`` from that, and from ``neighbours.NAME.json``, what was found
on other processors: PyTorch's vector functions round differently on Intel's with AVX-512.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from logunif_kl.accuracy import Claim
from logunif_kl.cli._output import write_record
from logunif_kl.cli.provenance import provenance
from validation.paths import PACKAGE, RESULTS

RESULT = RESULTS / "neighbours" / "neighbours.json"
CLAIMS = PACKAGE / "neighbours" / "_accuracy.py"
COMMAND = "python -m validation.accuracy.neighbours"
BITS = 200
# Of each type: the digits, the least exponent, the largest |log alpha|, 2^x of the smallest mean.
FORMATS = {"float64": (53, -1022, 740.0, 450.0), "float32": (24, -126, 86.0, 55.0)}
FORMATS["float16"] = (11, -14, 9.0, 3.0)
UNARY = ("neg_kl_complex", "neg_kl_complex_grad", "neg_kl_complex_hess")
NORMAL = ("neg_kl_complex_normal",)
SLOPES = ("d_re", "d_im", "d_log_sigma2")
DIMENSIONS = (1.0, 3.0, 9.0, 64.0, 1000.0)
VECTOR = ("neg_kl_vector", "neg_kl_vector_grad")
Points = tuple[NDArray, ...]


class Case(NamedTuple):
    """A function of one kernel and one type."""

    function: str
    dtype: str
    kernel: str
    k: float = 0.0


def ein(u: Any) -> Any:
    """Return gamma + log u + E1(u)."""
    if u < 1e-20:
        return u - u * u / 4 + u * u * u / 18
    bits = ctx.prec
    if u < 1:
        ctx.prec = bits + 90
    try:
        found = arb.const_euler() + u.log()
        return found + u.expint(1) if u < 300 else found
    finally:
        ctx.prec = bits


def gap(u: Any, a: Any, slope: bool) -> Any:
    """Return F_k(u), or u F_k'(u), with a = k/2, by series of positive terms or in 1/u."""
    if u < 1e-20:
        return u
    if u > 400 and u > 4 * a:
        term, total = arb(1), arb(0)
        for n in range(1, 160):
            term *= (n - a) / u
            total += term if slope else term / n
        return a * (1 + total) if slope else a * (u.log() - a.digamma() - total)
    weight, harmonic, total, n = (-u).exp(), arb(0), arb(0), 0
    top = float(u.mid())
    while n < top + 16 * math.sqrt(top) + 80:
        total += weight / (a + n) if slope else weight * harmonic
        harmonic += 1 / (a + n)
        n += 1
        weight *= u / n
    return a * u * total if slope else a * total


def truth(case: Case, *at: float) -> Any:
    """Return the exact value at a point, as a ball."""
    ctx.prec = BITS
    if case.function in VECTOR:
        u = (-arb(at[0])).exp() / 2
        found = gap(u, arb(case.k) / 2, case.function == "neg_kl_vector_grad")
        return found if case.function == "neg_kl_vector_grad" else -found
    if case.function in UNARY:
        u = (-arb(at[0])).exp()
        if case.function == "neg_kl_complex":
            return -ein(u)
        return -(-u).expm1() if case.function == "neg_kl_complex_grad" else -u * (-u).exp()
    re, im, log_sigma2 = map(arb, at)
    square = re * re + im * im
    u = square * (-log_sigma2).exp()
    if case.function == "neg_kl_complex_normal":
        return -ein(u)
    slope = -(-u).expm1()
    part = {"d_re": re, "d_im": im}.get(case.function)
    return slope if part is None else -2 * part * slope / square


def error(case: Case, got: float, exact: Any) -> float:
    """Return the error in units in the last place; 0 outside of the type's range."""
    digits, least, *_ = FORMATS[case.dtype]
    size = float(abs(exact).mid())
    top = float(np.finfo(case.dtype).max)
    # XLA flushes subnormal numbers; what underflows altogether has no digits to lose.
    least_normal = float(np.finfo(case.dtype).tiny)
    if size > top or (size < least_normal and case.kernel != "python") or size == 0.0:
        return 0.0
    exponent = max(math.frexp(size)[1] - 1, least) - digits + 1
    return abs(float(((arb(got) - exact) * arb(2) ** (-exponent)).mid()))


def sample(case: Case, rng: np.random.Generator, count: int) -> Points:
    """Return arguments: most where the function varies, the others over the range of the type."""
    _, _, largest, binades = FORMATS[case.dtype]
    if case.function in (*NORMAL, *SLOPES):
        half = count // 2
        log_u = np.concatenate(
            [rng.uniform(-5, 5, half), rng.uniform(-1, 1, count - half) * largest]
        )
        size = np.exp2(
            np.concatenate([rng.uniform(-2, 2, half), rng.uniform(-binades, binades, count - half)])
        )
        angle = np.where(rng.random(count) < 0.2, 0.0, rng.uniform(0, 2 * np.pi, count))
        log_sigma2 = 2.0 * np.log(size) - log_u
        return tuple(
            x.astype(case.dtype) for x in (size * np.cos(angle), size * np.sin(angle), log_sigma2)
        )
    low = -math.log(2.0 * max(45.0, case.k)) - 2.0 if case.k else -7.0
    x = [rng.uniform(low, 3.0, count // 2), rng.uniform(-largest, largest, count // 4)]
    x.append(
        rng.choice((-1, 1), count // 4) * np.exp2(rng.uniform(-60, math.log2(largest), count // 4))
    )
    return (np.concatenate(x).astype(case.dtype),)


def moved(points: Points, rng: np.random.Generator, each: int) -> Points:
    """Return neighbours of points: other bit patterns near them, in one argument or in several."""
    found = []
    for x in points:
        kind = f"int{8 * x.dtype.itemsize}"
        step = np.exp2(rng.uniform(0, 8 * x.dtype.itemsize - 16, len(x) * each)).astype(kind)
        step *= rng.integers(-1, 2, len(step)).astype(kind)
        found.append((np.repeat(x, each).view(kind) + step).view(x.dtype))
    return tuple(found)


def search(
    case: Case, evaluate: Callable[..., NDArray], *, count: int, rounds: int, seed: int
) -> dict[str, Any]:
    """Search for the largest error of a function."""
    rng = np.random.default_rng(seed)
    pool: list[tuple[float, tuple[float, ...]]] = []
    tried = 0
    points = sample(case, rng, count)
    for turn in range(rounds + 1):
        with np.errstate(all="ignore"):
            got = np.asarray(evaluate(*points), dtype=np.float64)
        for value, *at in zip(got.tolist(), *(x.tolist() for x in points), strict=True):
            if all(map(math.isfinite, at)):
                pool.append((error(case, value, truth(case, *at)), tuple(at)))
        tried += len(got)
        pool = sorted(pool, reverse=True)[:48]
        if turn < rounds:
            columns = zip(*(at for _, at in pool), strict=True)
            points = moved(tuple(np.array(c, case.dtype) for c in columns), rng, 24)
    worst, found = pool[0]
    return {
        **case._asdict(),
        "ulp": math.ceil(worst * 100) / 100,
        "inputs": [x.hex() for x in found],
        "tried": tried,
    }


def cases(kernel: str) -> list[Case]:
    """Return what is measured of a kernel."""
    dtypes = ("float64", "float32", "float16") if kernel == "python" else ("float64", "float32")
    functions = (*UNARY, *NORMAL) if kernel == "python" else (*UNARY, *NORMAL, *SLOPES)
    # There is no complex number of two float16.
    found = [
        Case(f, d, kernel) for f in functions for d in dtypes if d != "float16" or f not in NORMAL
    ]
    return found + [
        Case(f, d, kernel, k)
        for f in VECTOR
        for d in (dtypes if kernel == "jax" else ("float64",))
        for k in DIMENSIONS
        if kernel != "torch"  # whose operations are those of NumPy
    ]


def case_of(claim: Claim) -> Case:
    """Return what a claim is about."""
    name, _, rest = claim.function.partition(", ")
    k = float(rest[2:]) if rest.startswith("k=") else 0.0
    return Case(rest if rest and not k else name, claim.dtype, claim.kernel, k)


def implementation(case: Case) -> Callable[..., NDArray]:
    """Return the function as a function of NumPy's arrays."""
    if case.kernel == "python":
        return _of_numpy(case)
    return _of_torch(case) if case.kernel == "torch" else _of_jax(case)


def _of_numpy(case: Case) -> Callable[..., NDArray]:
    import logunif_kl as lk

    function = getattr(lk, case.function)
    if case.function in NORMAL:
        return lambda re, im, s: function(
            re + np.array(1j, f"complex{2 * 8 * re.itemsize}") * im, s
        )
    return partial(function, k=case.k) if case.k else function


def _of_torch(case: Case) -> Callable[..., NDArray]:
    import torch

    from logunif_kl.torch import neighbours

    def evaluate(*points: NDArray) -> NDArray:
        tensors = [torch.tensor(x) for x in points]
        if case.function in SLOPES:
            index = SLOPES.index(case.function)
            re, im, log_sigma2 = (x.requires_grad_() for x in tensors)
            value = neighbours.neg_kl_complex_normal(torch.complex(re, im), log_sigma2)
            found = torch.autograd.grad(value.sum(), (re, im, log_sigma2))[index]
        elif case.function in NORMAL:
            found = neighbours.neg_kl_complex_normal(torch.complex(*tensors[:2]), tensors[2])
        else:
            options = {"k": case.k} if case.k else {}
            found = getattr(neighbours, case.function)(tensors[0], **options)
        return np.asarray(found.detach())

    return evaluate


def _of_jax(case: Case) -> Callable[..., NDArray]:
    import jax

    from logunif_kl.jax import neighbours

    def of_parts(re: Any, im: Any, log_sigma2: Any) -> Any:
        return neighbours.neg_kl_complex_normal(jax.lax.complex(re, im), log_sigma2)

    function: Any
    if case.function in SLOPES:
        index = SLOPES.index(case.function)
        function = jax.grad(lambda *a: of_parts(*a).sum(), index)
    elif case.function in NORMAL:
        function = of_parts
    else:
        options = {"k": case.k} if case.k else {}
        function = partial(getattr(neighbours, case.function), **options)
    function = jax.jit(function)

    def evaluate(*points: NDArray) -> NDArray:
        with jax.enable_x64(case.dtype == "float64"):
            return np.asarray(function(*map(jax.numpy.asarray, points)))

    return evaluate


def measure(kernel: str, count: int, rounds: int, seed: int) -> None:
    """Measure a kernel, and put what is found in place of its rows in the record."""
    rows = []
    for case in cases(kernel):
        # The truth of groups takes longer.
        some, turns = (count // 16, 1) if case.k else (count, rounds)
        rows.append(search(case, implementation(case), count=some, rounds=turns, seed=seed))
        print(f"{case}: {rows[-1]['ulp']} ulp", file=sys.stderr)
    about = provenance(f"{COMMAND} measure KERNEL", "torch", "jax", "python-flint", of="neighbours")
    record = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {"rows": []}
    # What was measured of other sources has to be measured again.
    same = record.get("sources_sha256") == about["sources_sha256"]
    kept = [row for row in record["rows"] if same and row["kernel"] != kernel]
    RESULT.parent.mkdir(exist_ok=True)
    write_record(str(RESULT), {**about, "rows": [*kept, *rows]})


def claims() -> str:
    """Return the text of the module of claims: the worst that any processor has shown."""
    worst: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in sorted(RESULT.parent.glob(f"{RESULT.stem}*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            key = row["function"], row["k"], row["dtype"], row["kernel"]
            if key not in worst or row["ulp"] > worst[key]["ulp"]:
                worst[key] = row
    lines = [
        '"""The worst errors found of the functions of this room, rounded up."""',
        "",
        f"# Generated by `{COMMAND} claims` from validation/results/neighbours/;",
        "# do not edit.",
        "# ruff: noqa: E501",
        "",
        "from __future__ import annotations",
        "",
        "from ..accuracy import Claim",
        "",
        "# fmt: off",
        "ACCURACY: tuple[Claim, ...] = (",
    ]
    for _, row in sorted(worst.items()):
        name = row["function"]
        if name in SLOPES:
            name = f"neg_kl_complex_normal, {name}"
        if row["k"]:
            name = f"{name}, k={row['k']:g}"
        flushed = "" if row["kernel"] == "python" else "normal results"
        values = (name, row["dtype"], row["kernel"], flushed or "all", row["ulp"])
        text = ", ".join(json.dumps(v) for v in values)
        inputs = ", ".join(json.dumps(x) for x in row["inputs"])
        lines.append(f'    Claim({text}, ({inputs},), "search", {row["tried"]}),')
    return "\n".join([*lines, ")", "# fmt: on", ""])


def main(arguments: list[str]) -> int:
    """Measure, or write the claims."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("kernel", choices=("python", "torch", "jax"))
    one.add_argument("--count", type=int, default=12_000)
    one.add_argument("--rounds", type=int, default=10)
    one.add_argument("--seed", type=int, default=1)
    commands.add_parser("claims")
    given = parser.parse_args(arguments)
    if given.command == "claims":
        CLAIMS.write_text(claims(), encoding="utf-8")
    else:
        measure(given.kernel, given.count, given.rounds, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
