"""Statements of Kingma et al. in appendix C about posteriors of any form."""

import logunif_kl as lk
from validation.papers.statement import Found, statement


@statement(
    "kingma-sign-and-magnitude",
    "Eqs. 37 and 38",
    "the divergences of the sign bit and of the magnitude given the sign add up to "
    "-KL = log c + log(1/2) + H(q) - E log|w|",
)
def sign_and_magnitude() -> Found:
    from scipy import stats

    posteriors = {
        "norm(0.3, 1)": stats.norm(0.3, 1.0),
        "laplace(1, 0.5)": stats.laplace(1.0, 0.5),
        "uniform(-0.2, 1.2)": stats.uniform(-0.2, 1.2),
        "cauchy(0.5, 1)": stats.cauchy(0.5, 1.0),
        "gumbel_r(0.2, 0.1)": stats.gumbel_r(0.2, 0.1),
        "skewnorm(4, -0.1)": stats.skewnorm(4.0, -0.1),
    }
    away, errors = {}, []
    for name, dist in posteriors.items():
        split = lk.posteriors.neg_kl_split(dist)
        away[name] = abs(split.sign_bit + split.magnitude - split.total)
        errors.append(split.error)
    holds = all(a <= e for a, e in zip(away.values(), errors, strict=True)) and max(errors) < 1e-9
    return Found(
        holds=holds,
        measured={"posteriors": list(away), "largest_difference": max(away.values())},
        note=f"of {len(away)} posteriors the parts add up to the whole within "
        f"{max(away.values()):.0e}, and each within the error stated for it",
    )
