"""Claims about MGP, FGP and SGPR on real data: averages over data sets and ranks, compared split by split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from certgp_paper.claims.finding import Claim, Finding, combine, not_run
from certgp_paper.claims.paired import (
    FEWEST,
    LEVEL,
    RULE,
    SPLIT_OVERLAP,
    Difference,
    judge_all_lower,
    paired_difference,
)
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, by_split, chosen_rows, number, rows_of

_TABLE = "table-nlpd"
_JUDGED = ("certgp", "paper")  # variants that have all three methods
_METHODS = ("SGPR", "FGP", "MGP")

Cell = dict[str, dict[int, float]]  # NLPD of each method by split, for one data set and rank
Gaps = Callable[[Cell, int], tuple[float, float]]  # two figures of a cell on a split
Said = Callable[[float, float], str]  # their averages in words


def _cells(results: Results, variant: str) -> tuple[dict[tuple[str, int], Cell], int]:
    """Cells in which all methods have all of the first five splits, by data set and rank; how many have fewer."""
    groups: dict[tuple[str, int], Cell] = {}
    for row in chosen_rows(rows_of(results, _TABLE), variant=variant):
        rank = number(row, "rank")
        if row.get("method") in _METHODS and rank is not None:
            groups.setdefault((str(row.get("data")), int(rank)), {})[str(row["method"])] = by_split(row, "nlpd")
    begun = {key: cell for key, cell in groups.items() if all(cell.get(method) for method in _METHODS)}
    full = {key: cell for key, cell in begun.items() if all(len(cell[method]) >= FEWEST for method in _METHODS)}
    return full, len(begun) - len(full)


def _judge(results: Results, variant: str, gaps: Gaps, said: Said, words: tuple[str, str]) -> Finding:
    """Is the first of two figures, averaged over cells, lower than the second, split by split?

    ``words`` says in one word what it is then, and what otherwise.
    """
    cells, few = _cells(results, variant)
    if not cells:
        return not_run(_TABLE)
    pairs = [[gaps(cell, split) for cell in cells.values()] for split in range(FEWEST)]
    first, second = ([mean(pair[i] for pair in split) for split in pairs] for i in (0, 1))
    difference = paired_difference(first, second, SPLIT_OVERLAP)
    wins = sum(
        mean(gaps(cell, s)[0] for s in range(FEWEST)) < mean(gaps(cell, s)[1] for s in range(FEWEST))
        for cell in cells.values()
    )
    left_out = f"; {few} cells with fewer splits are left out" if few else ""
    averages = f"{said(mean(first), mean(second))}, difference {difference.text(3)}"
    text = f"{averages}; lower in {wins} of {len(cells)} cells"
    paper = _in_paper(chosen_rows(rows_of(results, _TABLE), variant=variant), list(cells), gaps, said)
    found = judge_all_lower([difference], f"{text}{left_out}{paper}", LEVEL / len(_JUDGED))
    return Finding(found.verdict, found.evidence, f"{words[difference.mean >= 0]} by {_size(difference)}")


def _size(difference: Difference) -> str:
    """0.086 ± 0.005, without the sign."""
    return difference.text(3)[1:]


def _in_paper(
    rows: Sequence[Row],
    cells: Sequence[tuple[str, int]],
    gaps: Callable[..., tuple[float, float]],
    said: Callable[..., str],
) -> str:
    """The same averages of the paper's figures."""
    printed: dict[tuple[str, int], Cell] = {}
    for row in rows:
        value, rank = number(row, "paper_mean"), number(row, "rank")
        if value is not None and rank is not None:
            printed.setdefault((str(row.get("data")), int(rank)), {})[str(row.get("method"))] = {0: value}
    known = [gaps(printed[key], 0) for key in cells if all(method in printed.get(key, {}) for method in _METHODS)]
    return f"; in the paper {said(mean(a for a, _ in known), mean(b for _, b in known))}" if known else ""


def _distances_to_sgpr(cell: Cell, split: int) -> tuple[float, float]:
    base = cell["SGPR"][split]
    return abs(cell["MGP"][split] - base), abs(cell["FGP"][split] - base)


def _mercer_and_fourier(cell: Cell, split: int) -> tuple[float, float]:
    return cell["MGP"][split], cell["FGP"][split]


def _in_every_variant(gaps: Gaps, said: Said, words: tuple[str, str]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        found = {variant: _judge(results, variant, gaps, said, words) for variant in _JUDGED}
        return combine(found, _TABLE)

    return judge


_AVERAGED = "on average over the data sets and ranks at which all methods have five splits"
CLAIMS = (
    Claim(
        "MGP behaves like SGPR",
        "NLPD table, text",
        _TABLE,
        f"MGP is nearer to SGPR in NLPD than FGP is, {_AVERAGED}, {RULE}; in each variant",
        _in_every_variant(
            _distances_to_sgpr,
            lambda first, second: f"mean distance to SGPR: MGP {first:.3f}, FGP {second:.3f}",
            ("nearer", "farther"),
        ),
    ),
    Claim(
        "FGP is slightly inferior to MGP on real data",
        "NLPD table, text",
        _TABLE,
        f"MGP has the lower NLPD, {_AVERAGED}, {RULE}; in each variant",
        _in_every_variant(
            _mercer_and_fourier,
            lambda first, second: f"mean NLPD: MGP {first:.3f}, FGP {second:.3f}",
            ("lower", "higher"),
        ),
    ),
)
