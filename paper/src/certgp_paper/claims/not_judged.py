"""Claims of the paper that no finished cell can judge, each with the reason."""

from __future__ import annotations

from certgp_paper.claims.finding import LINEAR, NOT_JUDGED, Claim, Finding


def _not_judged(topic: str, statement: str, where: str, experiment: str, brief: str, reason: str) -> Claim:
    return Claim(topic, statement, where, experiment, reason, lambda results: Finding(NOT_JUDGED, brief, brief))


CLAIMS = (
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
