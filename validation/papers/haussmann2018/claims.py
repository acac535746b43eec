"""Statements of Haussmann et al. about the steps of the rectifiers: Propositions 1 and 2."""

import math
from typing import Any

from scipy import integrate, optimize, special, stats

from validation.papers.definition import log_sigmoid
from validation.papers.statement import ACCURATE, Found, statement

STEEP = 10.0  # C of section 2.3.1


def expected(f: Any, mean: float, deviation: float) -> float:
    """Integrate f(h) over h ~ N(mean, deviation^2), apart on both sides of 0."""
    total = 0.0
    for low, high in ((mean - 12.0 * deviation, 0.0), (0.0, mean + 12.0 * deviation)):
        if low < high:
            total += integrate.quad(
                lambda h: f(h) * stats.norm.pdf(h, mean, deviation), low, high, epsabs=1e-13
            )[0]
    return total


def divergence(on: float, mean: float, deviation: float, steep: float = STEEP) -> float:
    """Return E KL(q(z) || p(z | h)) for q(z = 1) = `on` and p(z = 1 | h) = sigmoid(steep h)."""
    likelihood = expected(
        lambda h: on * log_sigmoid(steep * h) + (1.0 - on) * log_sigmoid(-steep * h),
        mean,
        deviation,
    )
    return float(special.xlogy(on, on) + special.xlogy(1.0 - on, 1.0 - on) - likelihood)


@statement(
    "vbp-proposition-1",
    "section 2.3.1, Proposition 1",
    "q(z = 1) = sigmoid(C E[h]) minimises the divergence of a step; it tends to the step of E[h]",
    stated=False,
)
def proposition_1() -> Found:
    rows = []
    for mean, deviation, steep in ((0.3, 1.0, 1.0), (-0.2, 0.5, 3.0), (0.05, 2.0, 10.0)):
        best = optimize.minimize_scalar(
            lambda on, of=(mean, deviation, steep): divergence(on, *of),
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 1e-10},
        ).x
        rows.append({"mean": mean, "found": float(best), "sigmoid": special.expit(steep * mean)})
    away = max(abs(row["found"] - row["sigmoid"]) for row in rows)
    return Found(
        holds=away < 1e-6,
        measured={"rows": rows},
        note="our copy has lost the formulas of the proposition, so this is a reconstruction. log "
        "sigmoid(Ch) - log sigmoid(-Ch) is Ch, so the log odds that minimise the expected "
        f"KL are C E[h]; a numerical search agrees to {away:.0e}. The data fit depends on z as "
        "well, so at finite C this is not the optimum of the whole bound",
    )


@statement(
    "vbp-proposition-2",
    "section 2.3.1, Proposition 2 (ii)",
    "the divergence of a step is proportional to the mass of q(h) on the other side of zero",
)
def proposition_2() -> Found:
    ratios, tails = [], []
    for mean in (0.25, 0.5, 1.0, 2.0, 3.0):
        term = divergence(special.expit(STEEP * mean), mean, 1.0)
        ratios.append(term / (STEEP * stats.norm.cdf(-mean)))
        tails.append(term / (STEEP * expected(lambda h: max(-h, 0.0), mean, 1.0)))
    low, high = min(ratios), max(ratios)
    return Found(
        holds=high / low < 1.1,
        measured={"over_c_times_mass": ratios, "over_c_times_mean_excess": tails},
        note="our copy has lost the formulas of the proposition, so this is a reconstruction: "
        f"for h ~ N(m, 1) with m from 0.25 to 3 and C = 10 it is {low:.2f} to {high:.2f} "
        f"times C times that mass, and {min(tails):.2f} to {max(tails):.2f} times C E[max(-h, 0)], "
        "which grows with the scale of h",
    )


@statement(
    "vbp-bound",
    "section 2.3.1, after Proposition 2",
    "without the divergence of the steps the objective is still a lower bound of log p(y)",
    stated=False,
)
def bound() -> Found:
    """One weight w ~ N(0, 1), h = w, z ~ Bernoulli(sigmoid(C h)), y ~ N(z h, 1)."""
    rows = []
    for y in (-1.0, 0.5, 2.0):

        def joint(w: float, y: float = y) -> float:
            on = special.expit(STEEP * w)
            return float(on * stats.norm.pdf(y, w) + (1.0 - on) * stats.norm.pdf(y))

        evidence = math.log(expected(joint, 0.0, 1.0))

        def terms(q: Any, y: float = y) -> tuple[float, float]:
            """Return the bound without the divergence of the step, and that divergence."""
            mean, deviation = float(q[0]), math.exp(q[1])
            on = float(special.expit(STEEP * mean))
            square = on * ((y - mean) ** 2 + deviation**2) + (1.0 - on) * y * y
            kl = 0.5 * (mean**2 + deviation**2 - 1.0) - math.log(deviation)
            fit = -0.5 * square - 0.5 * math.log(2.0 * math.pi)
            return fit - kl, divergence(on, mean, deviation)

        best = min(
            (
                optimize.minimize(lambda q: -terms(q)[0], [start, -0.3], method="Nelder-Mead")
                for start in (-0.5, 0.5)
            ),
            key=lambda found: found.fun,
        ).x
        without, of_step = terms(best)
        rows.append(
            {"y": y, "log_evidence": evidence, "without": without, "with": without - of_step}
        )
    worst = max(row["without"] - row["log_evidence"] for row in rows)
    return Found(
        holds=worst <= 0.0,
        measured={"rows": rows},
        note=f"with one weight and one example, by quadrature, the maximum exceeds log p(y) by up "
        f"to {worst:.2f} nats; with the divergence it is below it for each y",
    )


@statement(
    "vbp-relaxed-rectifier",
    "section 2.3.1, after Proposition 2",
    "with C = 10 the relaxed rectifier h sigmoid(C h) is extremely tight: no tangible change of "
    "the activation function",
)
def relaxed_rectifier() -> Found:
    def gap(h: float) -> float:
        """Return max(h, 0) less the relaxed rectifier, which is the same for -h."""
        return abs(h) * float(special.expit(-STEEP * abs(h)))

    worst = optimize.minimize_scalar(lambda h: -gap(h), bounds=(0.0, 1.0), method="bounded")
    mean = expected(gap, 0.0, 1.0)
    largest, at = -float(worst.fun), float(worst.x)
    return Found(
        holds=mean < ACCURATE,
        measured={"largest_gap": largest, "at": at, "times_c": STEEP * largest, "mean_gap": mean},
        note=f"the largest gap is {STEEP * largest:.4f}/C = {largest:.4f}, at |h| = {at:.3f}; for "
        f"h ~ N(0, 1) the mean gap is {mean:.4f}. Less than {ACCURATE:g} in the mean counts as "
        "tight; for pre-activations much smaller than 1 the relaxed rectifier is nearly h/2",
    )
