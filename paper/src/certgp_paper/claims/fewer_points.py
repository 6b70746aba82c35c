"""Claims about the number of training points: the figure of the Electric data, over splits that methods share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from certgp_paper.claims.deep import DEEP as METHODS
from certgp_paper.claims.finding import DEEP, FAILS, HOLDS, UNDECIDED, Claim, Finding, not_run
from certgp_paper.claims.paired import (
    FEWEST,
    LEVEL,
    RULE,
    SPLIT_OVERLAP,
    Difference,
    all_lower,
    judge_all_lower,
    paired_difference,
)
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, by_split, chosen_rows, number, rows_of

_METRICS = ("nlpd", "cpu_seconds")


def _rows(results: Results) -> list[Row]:
    """Rows with both scores on some split."""
    return [row for row in rows_of(results, "electric") if all(by_split(row, metric) for metric in _METRICS)]


def _difference(first: Row, second: Row, metric: str) -> Difference | None:
    ours, other = by_split(first, metric), by_split(second, metric)
    shared = sorted(set(ours) & set(other))
    if not shared:
        return None
    return paired_difference([ours[s] for s in shared], [other[s] for s in shared], SPLIT_OVERLAP)


def _mean(row: Row, metric: str) -> float:
    return mean(by_split(row, metric).values())


def _fewer_points_suffice(results: Results) -> Finding:
    """For both methods: is there a part of the rows with which NLPD and time are both lower?"""
    rows = _rows(results)
    baselines = [row for row in rows if row.get("baseline") is True]
    parts = [row for row in rows if row.get("method") in METHODS and (number(row, "fraction") or 1.0) < 1.0]
    if not baselines or not parts:
        return not_run("electric")
    best = min(baselines, key=lambda row: _mean(row, "nlpd"))
    texts = [f"{best.get('data')}: best baseline on all rows {best.get('method')} with {_mean(best, 'nlpd'):.3f}"]
    verdicts, briefs = [], []
    for method in dict.fromkeys(str(row["method"]) for row in parts):
        some = chosen_rows(parts, method=method)
        pairs = [[_difference(row, best, metric) for metric in _METRICS] for row in some]
        known = [[each for each in pair if each is not None] for pair in pairs]
        verdicts.append(_some_part(known, LEVEL / len(parts)))
        texts += [f"{method}, {_text(row, pair)}" for row, pair in zip(some, known, strict=True)]
        briefs.append(f"{method} {_least(some, known)}")
    verdict = HOLDS if set(verdicts) == {HOLDS} else FAILS if FAILS in verdicts else UNDECIDED
    runs = min(len(by_split(row, "nlpd")) for row in [best, *parts])
    brief = f"on average {', '.join(briefs)}, {runs} split{'s' if runs > 1 else ''}"
    return Finding(verdict, "; ".join(texts), brief)


def _some_part(pairs: Sequence[Sequence[Difference]], level: float) -> str:
    """Both scores clearly lower at some part; refuted where one of them is clearly higher at every part."""
    found = [[all_lower([score], level) for score in pair] for pair in pairs]
    if any(len(pair) == len(_METRICS) and set(pair) == {HOLDS} for pair in found):
        return HOLDS
    return FAILS if all(FAILS in pair for pair in found) else UNDECIDED


def _text(row: Row, pair: Sequence[Difference]) -> str:
    gaps = " and ".join(each.text(digits) for each, digits in zip(pair, (3, 0), strict=False))
    return f"{number(row, 'fraction'):.0%} of the rows: NLPD and CPU seconds against it {gaps} ({_splits(pair)})"


def _splits(pair: Sequence[Difference]) -> str:
    count = min((each.count for each in pair), default=0)
    return f"{count} split{'s' if count != 1 else ''}"


def _least(rows: Sequence[Row], pairs: Sequence[Sequence[Difference]]) -> str:
    """The least part of the rows with lower means, which decides nothing by itself."""
    lower = [
        number(row, "fraction") or 1.0
        for row, pair in zip(rows, pairs, strict=True)
        if len(pair) == len(_METRICS) and all(each.mean <= 0.0 for each in pair)
    ]
    return f"needs {min(lower):.0%} of the rows" if lower else "needs more rows than were tried"


def _fourier_scales_better(results: Results) -> Finding:
    whole = [row for row in _rows(results) if number(row, "fraction") == 1.0]
    fourier, mercer = (chosen_rows(whole, method=method) for method in ("DFGP", "DMGP"))
    difference = _difference(fourier[0], mercer[0], "cpu_seconds") if fourier and mercer else None
    if difference is None:
        return not_run("electric")
    text = (
        f"CPU seconds on all rows: DFGP {_mean(fourier[0], 'cpu_seconds'):.0f}, DMGP "
        f"{_mean(mercer[0], 'cpu_seconds'):.0f}, difference {difference.text(0)} ({_splits([difference])})"
    )
    return replace(judge_all_lower([difference], text), short=text)


CLAIMS = (
    Claim(
        DEEP,
        "DMGP and DFGP reach equal precision with fewer training points and less time",
        "figure of the Electric data",
        "electric",
        "For both there is a part of the rows that was tried with which NLPD is lower than that of the best baseline "
        "on all rows, in fewer CPU seconds, by more than the noise of the paired differences, at the 5 % level over "
        "methods and parts together (Bonferroni); refuted where at every part one of the two is clearly higher; "
        f"undecided otherwise, and with fewer than {FEWEST} splits",
        _fewer_points_suffice,
    ),
    Claim(
        DEEP,
        "DFGP scales better than DMGP",
        "figure of the Electric data",
        "electric",
        f"It takes fewer CPU seconds on all rows, {RULE}",
        _fourier_scales_better,
    ),
)
