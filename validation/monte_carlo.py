"""Measure the coverage of Monte Carlo's standard errors, and two gradient estimators.

    python -m validation.monte_carlo [--seeds N] [--samples N]

Writes ``validation/results/monte_carlo/monte_carlo.json`` for the default numbers of seeds and
samples. Fails if the 95 % intervals of 1,000 seeds cover less than 93 % or more than 97 %, if 1e9
samples take more than 512 MiB, if averages of the reparameterised gradient converge, or if those of
the score function do not.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import integrate, stats

import logunif_kl as lk
from logunif_kl.methods import monte_carlo, monte_carlo_grad
from validation import record
from validation.output import Record, track, write_record
from validation.paths import RESULTS

RESULT = RESULTS / "monte_carlo" / "monte_carlo.json"
COMMAND = "python -m validation.monte_carlo"

SEEDS, SAMPLES = 1000, 10**9
LOG_ALPHA = np.array([-8.0, -6.0, -4.0, -3.5, -3.0, -2.5, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0])
COVERAGE = 0.93, 0.97
MOST_MIB = 512.0

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "value": (monte_carlo, lk.neg_kl),
    "gradient by the score function": (monte_carlo_grad, lk.neg_kl_grad),
}
# Without variance reduction the samples are skewed: an average of 1,024 is not normal enough.
SETTINGS: tuple[Record, ...] = (
    {"scheme": "plain", "variance_reduction": True, "n_samples": 1024},
    {"scheme": "antithetic", "variance_reduction": True, "n_samples": 1024},
    {"scheme": "qmc", "variance_reduction": True, "n_samples": 1024},
    {"scheme": "plain", "variance_reduction": False, "n_samples": 4096},
    {"scheme": "antithetic", "variance_reduction": False, "n_samples": 4096},
)


def coverage(what: str, settings: Record, seeds: int) -> Record:
    """Count how often 1.96 standard errors cover the exact value, over seeds 0, 1, ..."""
    function, exact = FUNCTIONS[what]
    truth, covered = exact(LOG_ALPHA), np.zeros(LOG_ALPHA.size)
    for seed in track(range(seeds), f"{what}, {settings['scheme']}", seeds):
        estimate, error = function(LOG_ALPHA, rng=seed, **settings)
        covered += np.abs(estimate - truth) <= 1.96 * error
    return {"of": what, **settings, "seeds": seeds, "coverage": (covered / seeds).tolist()}


def variances(seed: int = 0) -> Iterator[Record]:
    """Compare squared standard errors with those of a plain average of as many samples."""
    for what, (function, _) in FUNCTIONS.items():
        _, bare = function(LOG_ALPHA, rng=seed, variance_reduction=False)
        for settings in SETTINGS:
            options = {**settings, "n_samples": 65536}
            _, error = function(LOG_ALPHA, rng=seed, **options)
            yield {
                "of": what,
                **options,
                "standard_error": error.tolist(),
                "variance_divided_by": ((bare / error) ** 2).tolist(),
            }


# The first is the derivative in a sample; its mean, if it existed, would be the gradient.
WAYS: dict[str, Callable[[np.ndarray, float], Any]] = {
    "reparameterised": lambda z, s: 0.5 - 0.5 * s * z / (1.0 + s * z),
    "score function": lambda z, s: 0.5 - 0.5 * (z * z - 1.0) * np.log(np.abs(1.0 + s * z)),
}


def gradients(x: float = 0.0, seed: int = 0) -> Record:
    """Average the two gradient estimators over more and more samples, at one log alpha."""
    s, r, truth = math.exp(x / 2), math.exp(-x / 2), float(lk.neg_kl_grad(x))
    sizes = [10**k for k in range(2, 8)]
    running: list[Record] = []
    tails: list[Record] = []
    for number in range(4):
        z = np.random.default_rng([seed, number]).standard_normal(sizes[-1])
        for name, way in WAYS.items():
            terms = way(z, s)
            means = np.cumsum(terms)[np.array(sizes) - 1] / sizes
            deviations = [float(terms[:n].std(ddof=1)) for n in sizes]
            running.append(
                {
                    "way": name,
                    "seed": [seed, number],
                    "samples": sizes,
                    "mean": means.tolist(),
                    "standard_deviation_of_a_sample": deviations,
                }
            )
            if name == "reparameterised" and number == 0:
                # P(|g| > y) ~ phi(r) r / y, the tail of a Cauchy variable
                tails = [
                    {
                        "above": y,
                        "counted": int(np.sum(np.abs(terms) > y)),
                        "if_as_cauchy": sizes[-1] * r * float(stats.norm.pdf(r)) / y,
                    }
                    for y in (1e2, 1e3, 1e4)
                ]
    spreads = []
    rng = np.random.default_rng([seed, 99])
    for n in (100, 1000, 10_000):
        z = rng.standard_normal((400, n))
        for name, way in WAYS.items():
            low, high = np.quantile(way(z, s).mean(axis=1), [0.25, 0.75])
            spreads.append({"way": name, "samples": n, "quartiles_apart": float(high - low)})
    principal = integrate.quad(
        lambda w: 0.5 / w * (stats.norm.pdf(w - r) - stats.norm.pdf(w + r)), 0.0, r + 12.0
    )[0]
    return {
        "log_alpha": x,
        "exact_by_dawson": truth,
        "principal_value_by_quadrature": r * float(principal),
        "running_means": running,
        "tail_of_the_reparameterised": tails,
        "quartiles_of_400_means": spreads,
        "differences_of_values": list(differences(x, seed)),
    }


def differences(x: float, seed: int) -> Iterator[Record]:
    """Take central differences on common random numbers: variance like 1/h, bias like h^2."""
    z = np.random.default_rng([seed, 100]).standard_normal(4_000_000)
    for h in (0.3, 0.1, 0.03, 0.01, 0.003):
        # -KL = constant - E log|z + exp(-x/2)|
        up, down = (np.log(np.abs(z + math.exp(-(x + d) / 2.0))) for d in (h, -h))
        terms = (down - up) / (2.0 * h)
        bias = float(lk.neg_kl(x + h) - lk.neg_kl(x - h)) / (2.0 * h) - float(lk.neg_kl_grad(x))
        yield {
            "h": h,
            "samples": z.size,
            "estimate": float(terms.mean()),
            "standard_error": float(terms.std() / math.sqrt(z.size)),
            "variance_times_h": float(terms.var() * h),
            "bias": bias,
        }


def memory(samples: int) -> Record:
    """Take many samples in a separate process, and read its peak resident set, on Linux."""
    code = f"""
import json, time
from logunif_kl.methods import monte_carlo
began = time.perf_counter()
estimate, error = monte_carlo(0.0, n_samples={samples}, rng=0)
seconds = time.perf_counter() - began
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
found = dict(estimate=float(estimate), standard_error=float(error), seconds=seconds, peak_mib=peak)
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: Record = json.loads(done.stdout)
    exact = float(lk.neg_kl(0.0))
    return {"log_alpha": 0.0, "samples": samples, "seed": 0, "exact": exact, **found}


def faults(document: Record) -> list[str]:
    """Say which results contradict the documentation."""
    found = []
    low, high = COVERAGE
    for row in document["coverage"]:
        bad = [c for c in row["coverage"] if not low <= c <= high]
        if bad:
            found.append(f"{row['of']}, {row['scheme']}: intervals of 95 % cover {bad[0]:.1%}")
    largest = document["memory"]
    if largest["peak_mib"] > MOST_MIB:
        found.append(f"{largest['samples']:g} samples took {largest['peak_mib']:.0f} MiB")
    if abs(largest["estimate"] - largest["exact"]) > 4 * largest["standard_error"]:
        found.append(f"{largest['samples']:g} samples gave {largest['estimate']}")
    for row in document["variance_reduction"]:
        gains = row["variance_divided_by"]
        if row["of"] == "value" and row["variance_reduction"] and min(gains) < 30:
            found.append(f"{row['scheme']}: the variance is divided by {min(gains):.3g} only")
    spread = {
        (row["way"], row["samples"]): row["quartiles_apart"]
        for row in document["gradient"]["quartiles_of_400_means"]
    }
    if spread["reparameterised", 10_000] < 0.7 * spread["reparameterised", 100]:
        found.append("averages of the reparameterised gradient settle")
    if spread["score function", 10_000] > 0.15 * spread["score function", 100]:
        found.append("averages of the score function do not settle")
    return found


def coverages(seeds: int) -> list[Record]:
    return [coverage(what, settings, seeds) for what in FUNCTIONS for settings in SETTINGS]


def complaints(made: Record, *, replay: bool = True) -> Iterator[str]:
    """Compute everything but the memory again, and say where the record differs."""
    if replay:
        now = {"coverage": coverages(SEEDS), "gradient": gradients()}
        yield from record.computed_again(made, {**now, "variance_reduction": list(variances())})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N")
    options = parser.parse_args(arguments)
    covered = coverages(options.seeds)
    for row in covered:
        share = row["coverage"]
        reduced = "" if row["variance_reduction"] else ", bare"
        print(f"{row['of']}, {row['scheme']}{reduced}: {min(share):.1%} to {max(share):.1%}")
    document = {
        **record.about(COMMAND),
        "seed": f"seeds 0 to {options.seeds - 1} for the coverage, 0 for the rest",
        "log_alpha": LOG_ALPHA.tolist(),
        "coverage_of": "estimate +- 1.96 standard_error",
        "coverage": covered,
        "variance_reduction": list(variances()),
        "gradient": gradients(),
        "memory": memory(options.samples),
    }
    taken = document["memory"]
    print(
        f"{taken['samples']:g} samples: {taken['peak_mib']:.0f} MiB, {taken['seconds']:.0f} s, "
        f"{taken['estimate']:.7f} +- {taken['standard_error']:.1e}"
    )
    wrong = faults(document)
    for sentence in wrong:
        print(f"fault: {sentence}", file=sys.stderr)
    if (options.seeds, options.samples) == (SEEDS, SAMPLES):
        write_record(str(RESULT), document)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
