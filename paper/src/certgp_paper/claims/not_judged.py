"""Claims of the paper that no finished cell can judge, each with the reason."""

from __future__ import annotations

from certgp_paper.claims.finding import LINEAR, NOT_JUDGED, RATES, Claim, Finding


def _not_judged(topic: str, statement: str, where: str, experiment: str, brief: str, reason: str) -> Claim:
    return Claim(topic, statement, where, experiment, reason, lambda results: Finding(NOT_JUDGED, brief, brief))


_PROVEN = (
    "It is proven, and the tests of this library compare it with dense algebra on small random problems "
    "(`tests/theorems`), but a reproduction would need exact predictions beside approximate ones, which no experiment "
    "here computes"
)
CLAIMS = (
    _not_judged(
        RATES,
        "The bounds on the KL hold for predictive densities too",
        "Approximation guarantees for GP regression",
        "figure2",
        "no experiment computes a predictive KL",
        f"None. {_PROVEN}. `certify` bounds the expected predictive KL (`expected_predictive_kl`)",
    ),
    _not_judged(
        RATES,
        "A small KL bounds the error of predictive means and covariances",
        "Proposition on parameter bounds from KL",
        "figure2",
        "no experiment computes exact predictions beside approximate ones at a known KL",
        f"None. {_PROVEN}. Its roots b and t are `covariance_sandwich`, its statement about points `moments_within`",
    ),
    _not_judged(
        LINEAR,
        "At a fixed rank the time is linear in N",
        "Low-rank GP regression",
        "scaling",
        "each time was measured once, on a machine with other load",
        "None. Each time was measured once, on a machine with other load, so that there is no interval to judge by; "
        "how far the time per row changes with N stands at the figures of time and memory",
    ),
)
