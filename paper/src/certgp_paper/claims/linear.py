"""Claims about MGP, FGP and SGPR on real data, judged split by split on the paper's own files in both variants.

"Similar" and "slightly" have no number in the paper. They have one here: on average over the paper's own files
(elevators and protein) at most what the paper's whole table has on average. These margins are ours, and they were
chosen after the figures had been seen; see docs/decisions/0056.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from statistics import mean

from scipy.stats import spearmanr

from certgp_paper.claims.finding import LINEAR, Claim, Finding, combine, not_run
from certgp_paper.claims.paired import (
    FEWEST,
    LEVEL,
    RULE,
    SPLIT_OVERLAP,
    Difference,
    judge_all_lower,
    paired_difference,
)
from certgp_paper.experiments.linear_rows import DATA, METHODS, RANKS
from certgp_paper.experiments.results import Results, by_split, chosen_rows, number, rows_of
from certgp_paper.published import published

_NLPD, _RMSE = "table-nlpd", "table-rmse"
_JUDGED = ("certgp", "paper")  # variants that have all three methods

Cell = dict[str, dict[int, float]]  # a score of each method by split, for one data set and rank
Cells = dict[tuple[str, int], Cell]
Gap = Callable[[Mapping[str, float]], float]  # of the scores of the three methods


def _mercer_to_sgpr(scores: Mapping[str, float]) -> float:
    return abs(scores["MGP"] - scores["SGPR"])


def _fourier_to_sgpr(scores: Mapping[str, float]) -> float:
    return abs(scores["FGP"] - scores["SGPR"])


def _fourier_above_mercer(scores: Mapping[str, float]) -> float:
    return scores["FGP"] - scores["MGP"]


def _cells(results: Results, table: str, metric: str, variant: str) -> tuple[Cells, Cells]:
    """Cells in which all methods have the first five splits: of the paper's own files, and of data that may differ."""
    groups: tuple[Cells, Cells] = ({}, {})
    for row in chosen_rows(rows_of(results, table), variant=variant):
        rank = number(row, "rank")
        if row.get("method") in METHODS and rank is not None:
            cell = groups[bool(row.get("note"))].setdefault((str(row.get("data")), int(rank)), {})
            cell[str(row["method"])] = by_split(row, metric)
    own, other = ({key: cell for key, cell in some.items() if _is_full(cell)} for some in groups)
    return own, other


def _is_full(cell: Cell) -> bool:
    return all(set(range(FEWEST)) <= set(cell.get(method, {})) for method in METHODS)


def _averages(cells: Cells, gap: Gap) -> list[float]:
    """The mean over cells, for each split."""
    return [
        mean(gap({method: cell[method][s] for method in METHODS}) for cell in cells.values()) for s in range(FEWEST)
    ]


@cache
def printed_average(gap: Gap) -> float:
    """The mean over all data sets and ranks of the paper's table of NLPD."""
    found = []
    for data in DATA:
        for rank in RANKS:
            figures = {method: published("linear", "nlpd", method, rank, data) for method in METHODS}
            scores = {method: figure.mean for method, figure in figures.items() if figure is not None}
            if len(scores) == len(METHODS):
                found.append(gap(scores))
    return mean(found)


def _judged(differences: list[Difference], evidence: str, brief: str) -> Finding:
    """The variants of a claim are comparisons of it too."""
    found = judge_all_lower(differences, evidence, LEVEL / len(_JUDGED))
    return Finding(found.verdict, found.evidence, brief)


def _text(values: list[float]) -> str:
    """0.039 ± 0.005, with its 95 % interval."""
    return paired_difference(values, [0.0] * len(values), SPLIT_OVERLAP).text(3).removeprefix("+")


def _beside(other: Cells, gap: Gap, what: str) -> str:
    return f"; on other data, not judged: {what} {_text(_averages(other, gap))} in {len(other)} cells" if other else ""


def _like_sgpr(results: Results, variant: str) -> Finding:
    own, other = _cells(results, _NLPD, "nlpd", variant)
    if not own:
        return not_run(_NLPD)
    found, margin = _averages(own, _mercer_to_sgpr), printed_average(_mercer_to_sgpr)
    text = (
        f"mean distance of MGP to SGPR {_text(found)}, limit {margin:.3f}, {len(own)} cells; for comparison FGP to "
        f"SGPR {_text(_averages(own, _fourier_to_sgpr))}{_beside(other, _mercer_to_sgpr, 'MGP to SGPR')}"
    )
    difference = paired_difference(found, [margin] * FEWEST, SPLIT_OVERLAP)
    return _judged([difference], text, f"distance {_text(found)}, limit {margin:.3f}")


def _outperforms_fourier(results: Results, variant: str) -> Finding:
    own, other = _cells(results, _NLPD, "nlpd", variant)
    if not own:
        return not_run(_NLPD)
    found = _averages(own, _fourier_above_mercer)
    wins = sum(mean(_averages({key: cell}, _fourier_above_mercer)) > 0.0 for key, cell in own.items())
    text = (
        f"NLPD of FGP above that of MGP by {_text(found)}, above in {wins} of {len(own)} cells"
        f"{_beside(other, _fourier_above_mercer, 'above by')}"
    )
    return _judged([paired_difference([0.0] * FEWEST, found, SPLIT_OVERLAP)], text, f"FGP higher by {_text(found)}")


def _slightly_inferior(results: Results, variant: str) -> Finding:
    own, other = _cells(results, _NLPD, "nlpd", variant)
    if not own:
        return not_run(_NLPD)
    found, margin = _averages(own, _fourier_above_mercer), printed_average(_fourier_above_mercer)
    differences = [
        paired_difference([0.0] * FEWEST, found, SPLIT_OVERLAP),
        paired_difference(found, [margin] * FEWEST, SPLIT_OVERLAP),
    ]
    text = (
        f"NLPD of FGP above that of MGP by {_text(found)}, limit {margin:.3f}, {len(own)} cells"
        f"{_beside(other, _fourier_above_mercer, 'above by')}"
    )
    return _judged(differences, text, f"higher by {_text(found)}, limit {margin:.3f}")


def _correlation(nlpd: list[float], rmse: list[float]) -> float:
    """Spearman's."""
    return float(spearmanr(nlpd, rmse).statistic)


@cache
def least_printed_correlation() -> float:
    """Of NLPD and RMSE over methods and ranks, the least that a data set of the paper's own two tables has."""
    found = []
    for data in DATA:
        keys = [(method, rank) for method in METHODS for rank in RANKS]
        both = [[published("linear", metric, *key, data) for key in keys] for metric in ("nlpd", "rmse")]
        pairs = [(a.mean, b.mean) for a, b in zip(*both, strict=True) if a is not None and b is not None]
        found.append(_correlation([a for a, _ in pairs], [b for _, b in pairs]))
    return min(found)


def _correlations(nlpd: Cells, rmse: Cells) -> dict[str, list[float]]:
    """By data set, for each split, over the methods at the ranks that both tables have."""
    found: dict[str, list[float]] = {}
    for data in dict.fromkeys(data for data, _ in nlpd):
        keys = [key for key in nlpd if key[0] == data and key in rmse]
        if keys:
            found[data] = [
                _correlation(
                    *([cells[key][method][split] for key in keys for method in METHODS] for cells in (nlpd, rmse))
                )
                for split in range(FEWEST)
            ]
    return found


def _similar_trends(results: Results, variant: str) -> Finding:
    own, other = (
        _correlations(nlpd, rmse)
        for nlpd, rmse in zip(
            _cells(results, _NLPD, "nlpd", variant), _cells(results, _RMSE, "rmse", variant), strict=True
        )
    )
    if not own:
        return not_run(_RMSE)
    margin = least_printed_correlation()
    differences = [paired_difference([margin] * FEWEST, found, SPLIT_OVERLAP) for found in own.values()]
    text = "; ".join(f"{data}: rank correlation {_text(found)}" for data, found in own.items())
    if other:
        text += f"; on other data, not judged: {min(map(mean, other.values())):.3f} at least"
    return _judged(differences, text, f"rank correlation {min(map(mean, own.values())):.3f}, limit {margin:.3f}")


def _in_every_variant(judge: Callable[[Results, str], Finding], table: str) -> Callable[[Results], Finding]:
    return lambda results: combine({variant: judge(results, variant) for variant in _JUDGED}, table)


_AVERAGED = (
    "on average over those ranks on the paper's own files (elevators and protein) at which all methods have five splits"
)
_OURS = "The margin is ours and was chosen after the figures had been seen"
_BOTH = f"{RULE}; in each variant, other data beside it"
CLAIMS = (
    Claim(
        LINEAR,
        "MGP behaves like SGPR",
        "NLPD table, text",
        _NLPD,
        f"The distance of MGP's NLPD to SGPR's is below {printed_average(_mercer_to_sgpr):.3f}, {_AVERAGED}, {_BOTH}. "
        f"The limit is the mean distance in the paper's whole table, which it calls similar. {_OURS}",
        _in_every_variant(_like_sgpr, _NLPD),
    ),
    Claim(
        LINEAR,
        "MGP outperforms FGP",
        "introduction, NLPD table",
        _NLPD,
        f"MGP has the lower NLPD, {_AVERAGED}, {_BOTH}",
        _in_every_variant(_outperforms_fourier, _NLPD),
    ),
    Claim(
        LINEAR,
        "FGP is only slightly inferior to MGP",
        "NLPD table, text",
        _NLPD,
        f"FGP's NLPD is higher than MGP's, by less than {printed_average(_fourier_above_mercer):.3f}, {_AVERAGED}, "
        f"{_BOTH}. The limit is the mean gap in the paper's whole table, which it calls slight. {_OURS}",
        _in_every_variant(_slightly_inferior, _NLPD),
    ),
    Claim(
        LINEAR,
        "RMSE follows similar trends as NLPD",
        "RMSE table of the linear models, text",
        _RMSE,
        "The rank correlation of RMSE and NLPD over methods and ranks is above "
        f"{least_printed_correlation():.3f} on each of the paper's own files (elevators and protein), {_BOTH}. The "
        f"limit is the least that a data set of the paper's own tables has. {_OURS}",
        _in_every_variant(_similar_trends, _RMSE),
    ),
)
