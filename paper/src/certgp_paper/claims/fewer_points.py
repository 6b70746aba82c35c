"""Claims about the number of training points: the figure of the Electric data, over splits that methods share.

Baselines are those of the deep table's claims, which are GPs; the network DNN+S stands beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import linear_regression, mean

from certgp_paper.claims.deep import DEEP as METHODS
from certgp_paper.claims.deep import OTHERS
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
_MARGINS = {"nlpd": 0.01, "cpu_seconds": 0.0}  # by which a part of the rows may be worse and still be equally good


def _rows(results: Results) -> list[Row]:
    """Rows with both scores on some split, of the data set that has the most splits in all of them."""
    rows = [row for row in rows_of(results, "electric") if all(by_split(row, metric) for metric in _METRICS)]
    splits: dict[object, int] = {}
    for row in rows:
        count = len(by_split(row, "nlpd"))
        splits[row.get("data")] = min(splits.get(row.get("data"), count), count)
    most = max(splits, key=lambda data: splits[data], default=None)
    return [row for row in rows if row.get("data") == most]


def _differences(first: Row, second: Row) -> list[Difference]:
    """In both scores, of which NLPD is a little better than it is: by the margin."""
    found = []
    for metric, margin in _MARGINS.items():
        ours, other = by_split(first, metric), by_split(second, metric)
        if shared := sorted(set(ours) & set(other)):
            found.append(
                paired_difference([ours[s] - margin for s in shared], [other[s] for s in shared], SPLIT_OVERLAP)
            )
    return found


def _mean(row: Row, metric: str) -> float:
    return mean(by_split(row, metric).values())


def _fewer_points_suffice(results: Results) -> Finding:
    """For both methods: is there a part of the rows with which NLPD is no worse and time is lower?"""
    rows = _rows(results)
    baselines = [row for row in rows if row.get("method") in OTHERS]
    parts = [row for row in rows if row.get("method") in METHODS and (number(row, "fraction") or 1.0) < 1.0]
    if not baselines or not parts:
        return not_run("electric")
    best = min(baselines, key=lambda row: _mean(row, "nlpd"))
    texts = [f"{best.get('data')}: best baseline on all rows {best.get('method')} with {_mean(best, 'nlpd'):.3f}"]
    networks = [row for row in rows if row.get("baseline") is True and row not in baselines]
    texts += [f"not among the baselines: {row.get('method')} with {_mean(row, 'nlpd'):.3f}" for row in networks]
    verdicts, briefs = [], []
    for method in dict.fromkeys(str(row["method"]) for row in parts):
        some = chosen_rows(parts, method=method)
        known = [_differences(row, best) for row in some]
        verdicts.append(_some_part(known, LEVEL / len(parts)))
        texts += [f"{method}, {_text(row, pair)}" for row, pair in zip(some, known, strict=True)]
        briefs.append(f"{method} {_least(some, known)}")
    verdict = HOLDS if set(verdicts) == {HOLDS} else FAILS if FAILS in verdicts else UNDECIDED
    runs = min(len(by_split(row, "nlpd")) for row in [best, *parts])
    brief = f"against {best.get('method')}, on average {', '.join(briefs)}, {runs} split{'s' if runs > 1 else ''}"
    return Finding(verdict, "; ".join(texts), brief)


def _some_part(pairs: Sequence[Sequence[Difference]], level: float) -> str:
    """Both scores clearly lower, NLPD but for its margin, at some part; refuted where one of them is clearly higher at
    every part.
    """
    found = [[all_lower([score], level) for score in pair] for pair in pairs]
    if any(len(pair) == len(_METRICS) and set(pair) == {HOLDS} for pair in found):
        return HOLDS
    return FAILS if all(FAILS in pair for pair in found) else UNDECIDED


def _text(row: Row, pair: Sequence[Difference]) -> str:
    raw = [replace(each, mean=each.mean + margin) for each, margin in zip(pair, _MARGINS.values(), strict=False)]
    gaps = " and ".join(each.text(digits) for each, digits in zip(raw, (3, 0), strict=False))
    return f"{number(row, 'fraction'):.0%} of the rows: NLPD and CPU seconds against it {gaps} ({_splits(pair)})"


def _splits(pair: Sequence[Difference]) -> str:
    count = min((each.count for each in pair), default=0)
    return f"{count} split{'s' if count != 1 else ''}"


def _least(rows: Sequence[Row], pairs: Sequence[Sequence[Difference]]) -> str:
    """The least part of the rows with means that are good enough, which decides nothing by itself."""
    lower = [
        number(row, "fraction") or 1.0
        for row, pair in zip(rows, pairs, strict=True)
        if len(pair) == len(_METRICS) and all(each.mean <= 0.0 for each in pair)
    ]
    return f"needs {min(lower):.0%} of the rows" if lower else "needs more rows than were tried"


def _growth(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """By method and split, the exponent of CPU seconds in the number of rows: a line through their logarithms at the
    parts of the rows, all rows among them, that all methods have on that split.
    """
    seconds: dict[int, dict[str, dict[float, float]]] = {}
    for row in rows:
        for split, value in by_split(row, "cpu_seconds").items():
            by_part = seconds.setdefault(split, {}).setdefault(str(row["method"]), {})
            by_part[number(row, "fraction") or 1.0] = value
    found: dict[str, dict[int, float]] = {method: {} for method in METHODS}
    for split, by_method in seconds.items():
        parts = sorted(set.intersection(*(set(by_method.get(method, {})) for method in METHODS)))
        if len(parts) > 1:
            for method in METHODS:
                logs = [math.log(by_method[method][part]) for part in parts]
                found[method][split] = linear_regression(list(map(math.log, parts)), logs).slope
    return found


def _fourier_scales_better(results: Results) -> Finding:
    rows = [row for row in _rows(results) if row.get("method") in METHODS]
    growth = _growth(rows)
    fourier, mercer = (list(growth[method].values()) for method in ("DFGP", "DMGP"))
    if not fourier:
        return not_run("electric")
    difference = paired_difference(fourier, mercer, SPLIT_OVERLAP)
    text = (
        f"CPU seconds grow like rows^{mean(fourier):.2f} (DFGP) and rows^{mean(mercer):.2f} (DMGP), difference of "
        f"exponents {difference.text(2)} ({_splits([difference])})"
    )
    whole = {str(row["method"]): _mean(row, "cpu_seconds") for row in rows if number(row, "fraction") == 1.0}
    beside = ", ".join(f"{method} {seconds:.0f}" for method, seconds in whole.items())
    return replace(judge_all_lower([difference], f"{text}; CPU seconds on all rows: {beside}"), short=text)


CLAIMS = (
    Claim(
        DEEP,
        "DMGP and DFGP reach equal precision with fewer training points and less time",
        "figure of the Electric data",
        "electric",
        "For both there is a part of the rows that was tried with which NLPD is less than the margin above that of the "
        "best sparse or deep GP on all rows, in fewer CPU seconds, by more than the noise of the paired differences, "
        "at the 5 % level over methods and parts together (Bonferroni); refuted where at every part NLPD is clearly "
        f"above it by more than the margin, or the time is clearly longer; undecided otherwise, and with fewer than "
        f"{FEWEST} splits. Judged on the data set with the most splits. The network DNN+S is no baseline here, as in "
        "the other claims; it stands beside",
        _fewer_points_suffice,
        f'A margin of {_MARGINS["nlpd"]:g} nats for "equally good", chosen after the figures had been seen: the one '
        "by which code is confirmed (record 0034)",
    ),
    Claim(
        DEEP,
        "DFGP scales better than DMGP",
        "figure of the Electric data",
        "electric",
        "Its CPU seconds grow with a smaller exponent of the number of rows, by a line through their logarithms at the "
        f"parts of the rows that both were run on, {RULE}; judged on the data set with the most splits",
        _fourier_scales_better,
    ),
)
