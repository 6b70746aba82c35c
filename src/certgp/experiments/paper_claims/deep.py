"""Claims about deep models and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from certgp.experiments.experiment import Row
from certgp.experiments.paper_claims.finding import Claim, Finding, finding, not_run
from certgp.experiments.results import Results, by_split, chosen_rows, rows_of

DEEP = ("DMGP", "DFGP")
OTHERS = ("SVIGP", "SVIGP+", "SGPR", "SGPR+", "DKL", "DKL+", "RFEDGP")  # a data set counts where all of them were run


def _on_shared_splits(
    rows: Sequence[Row], data: str, methods: Sequence[str], metric: str
) -> tuple[dict[str, float], int] | None:
    """Means by method over the splits that all these methods have, and how many those are; None where they share none.

    Means over different splits prove nothing: on elevators two splits of five are harder than the others.
    """
    found = {str(row.get("method")): by_split(row, metric) for row in chosen_rows(rows, data=data)}
    if not all(method in found for method in methods):
        return None
    shared = set.intersection(*(set(found[method]) for method in methods))
    if not shared:
        return None
    return {method: mean(found[method][split] for split in shared) for method in methods}, len(shared)


def _counted(splits: int) -> str:
    return f"({splits} split{'s' if splits > 1 else ''})"


def _data_sets(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row.get("data")) for row in rows))


def _deep_beats_all(metric: str, digits: int) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        shown, won, rows = [], [], rows_of(results, "table-deep")
        for data in _data_sets(rows):
            found = _on_shared_splits(rows, data, (*DEEP, *OTHERS), metric)
            if found is not None:
                figures, splits = found
                best = min(OTHERS, key=lambda method: figures[method])
                won.append(max(figures[method] for method in DEEP) < figures[best])
                deep = ", ".join(f"{method} {figures[method]:.{digits}f}" for method in DEEP)
                shown.append(f"{data}: {deep}, best other {best} {figures[best]:.{digits}f} {_counted(splits)}")
        return finding(all(won), "; ".join(shown)) if won else not_run("table-deep")

    return judge


def _lower_nlpd(pairs: Sequence[tuple[str, str]]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        shown, won, rows = [], [], rows_of(results, "table-deep")
        for data in _data_sets(rows):
            for first, second in pairs:
                found = _on_shared_splits(rows, data, (first, second), "nlpd")
                if found is not None:
                    figures, splits = found
                    won.append(figures[first] < figures[second])
                    pair = f"{first} {figures[first]:.3f}, {second} {figures[second]:.3f}"
                    shown.append(f"{data}: {pair} {_counted(splits)}")
        return finding(all(won), "; ".join(shown)) if won else not_run("table-deep")

    return judge


CLAIMS = (
    Claim(
        "DMGP and DFGP outperform all other methods in NLPD",
        "deep table, text",
        "both are below the best other method on every data set on which all were run, over the splits that all have",
        _deep_beats_all("nlpd", 3),
    ),
    Claim(
        "DMGP and DFGP outperform all other methods in speed",
        "deep table, text",
        "both are faster than the fastest other method on every data set on which all were run, over the splits that "
        "all have (in the paper's own table DMGP is not)",
        _deep_beats_all("seconds", 0),
    ),
    Claim(
        "Joint training beats two steps",
        "deep table, text",
        "DMGP below DNN+M and DFGP below DNN+F on every data set, over the splits that both have",
        _lower_nlpd((("DMGP", "DNN+M"), ("DFGP", "DNN+F"))),
    ),
    Claim(
        "The non-parametric DNN+M and DNN+F improve on the naive DNN+S",
        "deep table, text",
        "on every data set, over the splits that both have (in the paper's own table DNN+M does not on Buzz)",
        _lower_nlpd((("DNN+M", "DNN+S"), ("DNN+F", "DNN+S"))),
    ),
)
