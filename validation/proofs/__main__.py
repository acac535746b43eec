"""Prove upper bounds, in ulp, of the errors of the float64 kernels.

    python -m validation.proofs [FUNCTION ...] [--arithmetic fused|unfused] [--samples N] [-v]

The C headers of the kernels are traced, the graph is compared with the compiled kernels bit by bit,
and a bound is proved for each function, in the usual form of the kernels and in the rare form.
`float32` is about the float32 kernels of training, of the functions of (mu, log sigma^2). It fails
if a bound is larger than `CLAIMS` says, or if a random argument errs by more than the bound of its
piece.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

from logunif_kl._numpy import ufuncs
from validation.accuracy.functions import FUNCTIONS
from validation.accuracy.proved import CLAIMS, KERNELS

from . import check, check_float32, normal, rare_normal
from .bounds import Bound
from .graph import Graph, trace
from .lemma import error_of_product_error
from .one_argument import prove_u, prove_x
from .rare import prove_rare


def prove(graph: Graph, name: str) -> Bound:
    """Prove a function by its name."""
    domain = FUNCTIONS[name].domain
    if domain == "normal":
        return normal.prove(graph, name.removeprefix(normal.NAME))
    return (prove_u if domain == "u" else prove_x)(graph, name)


def bind(kernel: str, graph: Graph) -> str | None:
    """Compare the graph with the kernel that this process runs; return what is wrong."""
    rng = np.random.default_rng(1)
    for name in FUNCTIONS:
        found, tried = check.differing(graph, name, kernel, rng)
        if found:
            return f"{name}: {found} of {tried} results of {kernel} are not those of the graph"
    if fault := check_float32.bind(kernel, graph.fused):
        return fault
    print(f"{kernel}: all results are those of the graph", flush=True)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m validation.proofs", description=__doc__.split("\n")[0]
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=", ".join(FUNCTIONS))
    parser.add_argument(
        "--arithmetic", choices=tuple(KERNELS), help="with FMA or without; both by default"
    )
    parser.add_argument(
        "--samples", type=int, default=1_000_000, help="random arguments for each function"
    )
    parser.add_argument(
        "--bind", choices=sum(KERNELS.values(), ()), help="only compare the graph with this kernel"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print what makes the worst bound"
    )
    options = parser.parse_args(argv)
    unknown = set(options.functions) - set(FUNCTIONS)
    if unknown:
        parser.error(f"unknown function {min(unknown)}: choose from {', '.join(FUNCTIONS)}")
    if options.bind:
        fault = bind(options.bind, trace(fused=options.bind in KERNELS["fused"]))
        if fault:
            print(fault, file=sys.stderr)
        return int(fault is not None)
    print(f"product_error without FMA errs by at most {error_of_product_error():.2g}", flush=True)
    failed, start = False, time.perf_counter()
    for arithmetic in [options.arithmetic] if options.arithmetic else list(KERNELS):
        for kernel in KERNELS[arithmetic]:
            if kernel in ufuncs.available_kernels():
                command = [sys.executable, "-m", "validation.proofs", "--bind", kernel]
                environment = {**os.environ, "LOGUNIF_KL_KERNEL": kernel}
                failed |= subprocess.run(command, env=environment).returncode != 0
        graph = trace(fused=arithmetic == "fused")
        for name in options.functions or FUNCTIONS:
            failed |= not report(graph, arithmetic, name, options.samples, options.verbose)
        failed |= not check_float32.report(
            arithmetic, options.functions or FUNCTIONS, options.samples, options.verbose
        )
    print(f"{time.perf_counter() - start:.0f} s")
    return int(failed)


def report(graph: Graph, arithmetic: str, name: str, samples: int, verbose: bool) -> bool:
    """Prove and try both forms, print the bounds, and return whether they are as claimed."""
    usual = prove(graph, name)
    good = report_form(graph, arithmetic, name, "", usual, samples, verbose)
    if FUNCTIONS[name].domain == "normal":
        rare = rare_normal.prove_rare(graph, name.removeprefix(normal.NAME))
    else:
        rare = prove_rare(graph, name, usual)
    return report_form(graph, arithmetic, name, ".rare", rare, samples, verbose) and good


def report_form(
    graph: Graph,
    arithmetic: str,
    name: str,
    form: str,
    bound: Bound,
    samples: int,
    verbose: bool,
) -> bool:
    worst, share = check.largest_share(
        graph, name, bound, np.random.default_rng(2), samples, rare=bool(form)
    )
    claim = CLAIMS[name][arithmetic]
    wrong = []
    if bound.worst > claim:
        wrong.append(f"more than {claim}, which is claimed")
    if share > 1:
        wrong.append("a random argument errs by more than the bound of its piece")
    print(
        f"{arithmetic} {name}{form}: proved {bound.worst:.4f} ulp on {len(bound.ulp)} pieces; "
        f"{worst:.3f} found, at most {share:.3f} of the bound"
        + "".join(f"\n  FAILED: {sentence}" for sentence in wrong),
        flush=True,
    )
    if verbose:
        i = int(np.argmax(bound.ulp))
        terms = sorted(((x[i], term) for term, x in bound.parts.items()), reverse=True)
        print(f"  worst between {bound.lo[i].hex()} and {bound.hi[i].hex()}, by:")
        for ulp, term in terms[:6]:
            print(f"  {ulp:8.4f} {term}")
    return not wrong


if __name__ == "__main__":
    raise SystemExit(main())
