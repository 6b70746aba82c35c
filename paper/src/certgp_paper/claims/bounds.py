"""Claims about the paper's theorems, and beside them what this library's own certificates promise.

A bound that always holds is refuted by one violation. One that holds with probability .95 is refuted where it is
violated more often than that allows. Ranks of N and more say nothing and are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.stats import binom

from certgp_paper.claims.finding import (
    FAILS,
    HOLDS,
    NOT_TESTABLE,
    OUR_CERTIFICATES,
    RATES,
    UNDECIDED,
    Claim,
    Finding,
    not_run,
)
from certgp_paper.claims.paired import LEVEL
from certgp_paper.claims.sample_means import FEWEST
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, number, rows_of

_SLACK = 1e-9  # rounding of figures that come through JSON
_RISK = 0.05  # of a bound that holds with probability .95
_PAPER_BOUND, _PAPER_THEOREM = "trace_paper", "a_priori_paper"
_BEFORE_DATA = (_PAPER_THEOREM, "a_priori_sharp")  # with probability .95 over the points; the others always
_OUR_RANKS = ("a_priori_sharp", "trace_sharp", "reference")


@dataclass(frozen=True)
class Check:
    """One promise, and whether it was kept."""

    group: tuple[object, ...]  # what differs between checks of a group is the point set alone
    seed: object
    kept: bool


def judge_checks(checks: Sequence[Check], certain: bool) -> str:
    """Certain promises: one that is broken refutes. Others: where a group breaks more than chance allows.

    Point sets of a group are independent, groups are not: so each group is tested, all together at 5 % (Bonferroni).
    """
    groups: dict[tuple[object, ...], list[Check]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    broken = {group: sum(not check.kept for check in some) for group, some in groups.items()}
    if certain:
        refuted = any(broken.values())
    else:
        refuted = more_than_chance([(count, len(groups[group])) for group, count in broken.items()], _RISK)
    if refuted:
        return FAILS
    return HOLDS if len({check.seed for check in checks}) >= FEWEST else UNDECIDED


def more_than_chance(broken: Sequence[tuple[int, int]], risk: float) -> bool:
    """Are exceptions in some group (how many, of how many) more than chance allows where each has this risk at most?"""
    chances = [binom.sf(count - 1, of, risk) for count, of in broken if count]
    return any(chance <= LEVEL / len(broken) for chance in chances)


def _counted(checks: Sequence[Check], what: str) -> str:
    sets = len({check.seed for check in checks})
    return f"{sum(check.kept for check in checks)} of {len(checks)} {what}, {sets} point sets"


def _bound_checks(rows: Sequence[Row], inequalities: Callable[[Row], Sequence[tuple[float, float]]]) -> list[Check]:
    return [
        Check((row.get("kernel"), row.get("method"), row.get("N"), row.get("rank")), row.get("seed"), _is_less(*pair))
        for row in rows
        for pair in inequalities(row)
    ]


def _is_less(less: float, more: float) -> bool:
    return less <= more + _SLACK * max(1.0, abs(more))


def _known(*pairs: tuple[float | None, float | None]) -> list[tuple[float, float]]:
    return [(less, more) for less, more in pairs if less is not None and more is not None]


def _papers_inequalities(row: Row) -> list[tuple[float, float]]:
    return _known((number(row, "kl"), number(row, _PAPER_BOUND)))


def _our_inequalities(row: Row) -> list[tuple[float, float]]:
    """The interval is that of the first draw of random features."""
    first = number(row, "kl_first", "kl")
    return _known(
        (number(row, "kl"), number(row, "trace_sharp")),
        (number(row, "lower"), first),
        (first, number(row, "upper")),
    )


def _bounds_hold(inequalities: Callable[[Row], Sequence[tuple[float, float]]]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        checks = _bound_checks(rows_of(results, "figure2"), inequalities)
        if not checks:
            return not_run("figure2")
        return Finding(judge_checks(checks, certain=True), _counted(checks, "bounds hold"))

    return judge


def _needed(row: Row) -> float | None:
    """The rank, or the largest one that was tried in vain."""
    return number(row, "rank", "more_than")


def _rank_checks(rows: Sequence[Row], key: str) -> tuple[list[Check], int]:
    """Promised ranks below N, and how many promises say nothing; a rank tried in vain is itself too low."""
    checks, empty = list[Check](), 0
    for row in rows:
        needed, promised, n = _needed(row), number(row, key), number(row, "N")
        if needed is None or promised is None or n is None:
            continue
        if promised >= n:
            empty += 1
        else:
            kept = promised > needed if number(row, "rank") is None else promised >= needed
            group = (key, *(row.get(name) for name in ("kernel", "method", "D", "N")))
            checks.append(Check(group, row.get("seed"), kept))
    return checks, empty


def _is_about_other_frequencies(row: Row) -> bool:
    """The paper's theorem on random features speaks of Avron's modified law; measured are independent ones."""
    return row.get("method") == "fourier"


_NAMES = {
    _PAPER_THEOREM: "before the data, by the theorem on Mercer truncation",
    _PAPER_BOUND: "from the data, by the trace bound",
    "a_priori_sharp": "before the data",
    "trace_sharp": "from the data, by the trace bound",
    "reference": "from the data, through a reference",
}


def _ranks_suffice(keys: Sequence[str], counts: Callable[[Row], bool]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        rows = [row for row in rows_of(results, "figure1") if counts(row)]
        found = {key: _rank_checks(rows, key) for key in keys}
        checks = [check for some, _ in found.values() for check in some]
        if not checks:
            return not_run("figure1")
        verdicts = [judge_checks(some, key not in _BEFORE_DATA) for key, (some, _) in found.items() if some]
        texts = [_counted(some, f"ranks suffice, promised {_NAMES[key]}") for key, (some, _) in found.items() if some]
        empty = sum(count for _, count in found.values())
        texts += [f"not counted: {empty} promises of N features or more, which say nothing"] if empty else []
        verdict = next((each for each in (FAILS, UNDECIDED) if each in verdicts), HOLDS)
        return Finding(verdict, "; ".join(texts), _counted(checks, "promised ranks below N suffice"))

    return judge


def _random_feature_theorem(results: Results) -> Finding:
    """What its ranks are is known, and that they are about other features."""
    rows = [row for row in rows_of(results, "figure1") if _is_about_other_frequencies(row)]
    promised = [rank for row in rows if (rank := number(row, _PAPER_THEOREM)) is not None]
    if not promised:
        return not_run("figure1")
    empty = sum((number(row, _PAPER_THEOREM) or 0.0) >= (number(row, "N") or math.inf) for row in rows)
    text = (
        f"{len(promised)} promised ranks, all about Avron's modified law of frequencies, none about the independent "
        f"ones measured here; {empty} of them ask for N features or more, which always suffice; the least is "
        f"{min(promised):.3g}"
    )
    return Finding(
        NOT_TESTABLE, text, "its bounds are on another law of frequencies, and all ask for N features or more"
    )


_COUNTED = "ranks of N and more say nothing and are not counted"
_BINOMIAL = (
    "a promise that always holds is refuted by one exception, one that holds with probability .95 where exceptions are "
    "more than a binomial law allows at the 5 % level (each kernel, approximation, dimension and N by itself, "
    "Bonferroni)"
)
_ENOUGH = f"undecided with fewer than {FEWEST} point sets"
CLAIMS = (
    Claim(
        RATES,
        "The KL stays below the paper's trace bound",
        "Proposition on KL between Gaussians",
        "figure2",
        f"KL <= Tr(K - Sigma) / (2 s2) in every row with Sigma <= K; one exception refutes it; {_ENOUGH}",
        _bounds_hold(_papers_inequalities),
    ),
    Claim(
        RATES,
        "The ranks that the theorem on Mercer truncation promises suffice",
        "Theorem on Mercer truncation",
        "figure1",
        f"Every rank that the paper's theorem (with its constants) or its trace bound promises; {_BINOMIAL}; "
        f"{_COUNTED}; {_ENOUGH}",
        _ranks_suffice((_PAPER_THEOREM, _PAPER_BOUND), lambda row: not _is_about_other_frequencies(row)),
    ),
    Claim(
        RATES,
        "The ranks that the theorem on random features promises suffice",
        "Theorem on random features",
        "figure1",
        "Not testable with what is computed here: the theorem draws frequencies from Avron's modified law, figure 1 "
        "from the kernel's spectral density, and a rank of N or more always suffices",
        _random_feature_theorem,
    ),
)
OUR_CLAIMS = (
    Claim(
        OUR_CERTIFICATES,
        "The KL stays within this library's certificates",
        "not in the paper; beside Figure 2",
        "figure2",
        f"Sharpened trace bound and intervals through a reference, in every row; one exception refutes it; {_ENOUGH}",
        _bounds_hold(_our_inequalities),
    ),
    Claim(
        OUR_CERTIFICATES,
        "The ranks that this library's certificates promise suffice",
        "not in the paper; beside Figure 1",
        "figure1",
        f"Every promised rank of every row; {_BINOMIAL}; {_COUNTED}; {_ENOUGH}",
        _ranks_suffice(_OUR_RANKS, lambda row: True),
    ),
)
