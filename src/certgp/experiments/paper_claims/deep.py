"""Claims about deep models and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from certgp.experiments.experiment import Row
from certgp.experiments.paper_claims.finding import Claim, Finding, finding, not_run
from certgp.experiments.results import Results, number, rows_of

DEEP = ("DMGP", "DFGP")
TWO_STEP = ("DNN+S", "DNN+M", "DNN+F")
OTHERS = ("SVIGP", "SVIGP+", "SGPR", "SGPR+", "DKL", "DKL+", "RFEDGP")  # a data set counts where all of them were run


def _by_data(rows: Sequence[Row], metric: str) -> dict[str, dict[str, float]]:
    """Figures by data set and method."""
    table: dict[str, dict[str, float]] = {}
    for row in rows:
        value = number(row, metric)
        if value is not None:
            table.setdefault(str(row.get("data")), {})[str(row.get("method"))] = value
    return table


def _same_splits(rows: Sequence[Row], data: str, methods: Sequence[str]) -> bool:
    """Were these methods run on equally many splits of the data? Means over different splits prove nothing."""
    some = [row for row in rows if row.get("data") == data and row.get("method") in methods]
    return len({row.get("splits") for row in some}) == 1


def _deep_beats_all(metric: str, digits: int) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        shown, won, rows = [], [], rows_of(results, "table-deep")
        for data, figures in _by_data(rows, metric).items():
            others = {m: v for m, v in figures.items() if m not in (*DEEP, *TWO_STEP)}
            needed = (*DEEP, *OTHERS)
            if all(method in figures for method in needed) and _same_splits(rows, data, needed):
                best = min(others, key=lambda method: others[method])
                won.append(max(figures[method] for method in DEEP) < others[best])
                deep = ", ".join(f"{method} {figures[method]:.{digits}f}" for method in DEEP)
                shown.append(f"{data}: {deep}, best other {best} {others[best]:.{digits}f}")
        return finding(all(won), "; ".join(shown)) if won else not_run("table-deep")

    return judge


def _lower_nlpd(pairs: Sequence[tuple[str, str]]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        shown, won, rows = [], [], rows_of(results, "table-deep")
        for data, figures in _by_data(rows, "nlpd").items():
            for first, second in pairs:
                if first in figures and second in figures and _same_splits(rows, data, (first, second)):
                    won.append(figures[first] < figures[second])
                    shown.append(f"{data}: {first} {figures[first]:.3f}, {second} {figures[second]:.3f}")
        return finding(all(won), "; ".join(shown)) if won else not_run("table-deep")

    return judge


CLAIMS = (
    Claim(
        "DMGP and DFGP outperform all other methods in NLPD",
        "deep table, text",
        "both are below the best other method on every data set on which all were run, on the same splits",
        _deep_beats_all("nlpd", 3),
    ),
    Claim(
        "DMGP and DFGP outperform all other methods in speed",
        "deep table, text",
        "both are faster than the fastest other method on every data set on which all were run (in the paper's own "
        "table DMGP is not)",
        _deep_beats_all("seconds", 0),
    ),
    Claim(
        "Joint training beats two steps",
        "deep table, text",
        "DMGP below DNN+M and DFGP below DNN+F on every data set, on the same splits",
        _lower_nlpd((("DMGP", "DNN+M"), ("DFGP", "DNN+F"))),
    ),
    Claim(
        "The non-parametric DNN+M and DNN+F improve on the naive DNN+S",
        "deep table, text",
        "on every data set (in the paper's own table DNN+M does not on Buzz)",
        _lower_nlpd((("DNN+M", "DNN+S"), ("DNN+F", "DNN+S"))),
    ),
)
