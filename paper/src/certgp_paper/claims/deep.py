"""Claims about deep models and what they are compared with, judged for our own training and for the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from certgp_paper.claims.finding import DEEP as TOPIC
from certgp_paper.claims.finding import Claim, Finding, combine, not_run
from certgp_paper.claims.paired import (
    FEWEST,
    LEVEL,
    RULE,
    RULE_OF_VARIANTS,
    SPLIT_OVERLAP,
    Difference,
    judge_all_lower,
    paired_difference,
)
from certgp_paper.experiments.results import Results, by_split, chosen_rows, number, rows_of

DEEP = ("DMGP", "DFGP")
OTHERS = ("SVIGP", "SVIGP+", "SGPR", "SGPR+", "DKL", "DKL+", "RFEDGP")  # a data set counts where all of them were run
VARIANTS = ("certgp", "paper")  # of DMGP and DFGP; the other methods have one
_TABLE = "table-deep"
_UNITS = {"nlpd": "NLPD", "rmse": "RMSE", "cpu_seconds": "CPU seconds"}
_SECONDS = 5.0  # figures above it are seconds, not NLPD or RMSE

Figures = dict[str, dict[int, float]]  # by method and split
Judge = Callable[[Results, str], Finding]  # of one variant


@dataclass(frozen=True)
class Compared:
    """Two methods on the splits of a data set that both have."""

    data: str
    first: str
    second: str
    means: tuple[float, float]
    difference: Difference

    @property
    def gap(self) -> str:
        """-0.024 ± 0.010, or whole seconds."""
        return self.difference.text(0 if self.means[0] > _SECONDS else 3)

    def text(self) -> str:
        """elevators: DMGP 0.339, DNN+S 0.341, difference -0.002 ± 0.010 (5 splits)."""
        first, second = map(_shown, self.means)
        splits = f"{self.difference.count} split{'s' if self.difference.count > 1 else ''}"
        return f"{self.data}: {self.first} {first}, {self.second} {second}, difference {self.gap} ({splits})"


def figures_of(results: Results, variant: str, data: str, metric: str) -> Figures:
    """DMGP and DFGP of a variant, all other methods, and on elevators the exact GP."""
    rows = [
        row
        for row in chosen_rows(rows_of(results, _TABLE), data=data)
        if row.get("method") not in DEEP or (row.get("variant") or VARIANTS[0]) == variant
    ]
    found = {str(row.get("method")): by_split(row, metric) for row in rows}
    exact = [
        (number(row, "split"), number(row, metric)) for row in chosen_rows(rows_of(results, "exact-gp"), data=data)
    ]
    found["exact GP"] = {int(split): value for split, value in exact if split is not None and value is not None}
    return found


def _compare(figures: Figures, data: str, first: str, second: str) -> Compared | None:
    """On the splits that both have; None where they share none.

    Means over different splits prove nothing: on elevators two splits of five are harder than the others.
    """
    shared = sorted(set(figures.get(first, {})) & set(figures.get(second, {})))
    if not shared:
        return None
    a, b = ([figures[method][split] for split in shared] for method in (first, second))
    return Compared(data, first, second, (mean(a), mean(b)), paired_difference(a, b, SPLIT_OVERLAP))


def _shown(value: float) -> str:
    """Three digits, or none of seconds."""
    return f"{value:.0f}" if value > _SECONDS else f"{value:.3f}"


def _nearest(pairs: Sequence[Compared]) -> Compared:
    """The rival that comes nearest or is ahead, among those with enough runs where there are such."""
    enough = [pair for pair in pairs if pair.difference.count >= FEWEST]
    return max(enough or pairs, key=lambda pair: pair.difference.mean)


def _judged(pairs: Sequence[Compared], texts: Sequence[str], metric: str, level: float) -> Finding:
    """The verdict, and in short the nearest rival and how many comparisons are clear."""
    found = judge_all_lower([pair.difference for pair in pairs], "; ".join(texts), level)
    nearest = _nearest(pairs)
    rival = f"{nearest.first} against {nearest.second} ({nearest.data}) {_UNITS[metric]} {nearest.gap}"
    return replace(found, short=f"{rival}, {', '.join(part for part in found.short.split(', ') if 'clear' in part)}")


def _data_sets(results: Results) -> list[str]:
    return list(dict.fromkeys(str(row.get("data")) for row in rows_of(results, _TABLE)))


def _below_all_others(metric: str) -> Judge:
    """DMGP and DFGP against every other method on each data set; the nearest to each is shown."""

    def judge(results: Results, variant: str) -> Finding:
        texts: list[str] = []
        every: list[Compared] = []
        for data in _data_sets(results):
            figures = figures_of(results, variant, data, metric)
            if not all(figures.get(method) for method in (*DEEP, *OTHERS)):
                continue
            for method in DEEP:
                pairs = [pair for other in OTHERS if (pair := _compare(figures, data, method, other)) is not None]
                if pairs:
                    texts.append(max(pairs, key=lambda pair: pair.difference.mean).text())
                    every += pairs
        return _judged(every, texts, metric, LEVEL / len(VARIANTS)) if every else not_run(_TABLE)

    return judge


def _lower_nlpd(
    pairs: Sequence[tuple[str, str]], only: str | None = None, level: float = LEVEL / len(VARIANTS)
) -> Judge:
    """The variants of a claim are comparisons of it too; one that has a single variant is judged at the whole level."""

    def judge(results: Results, variant: str) -> Finding:
        every: list[Compared] = []
        for data in [data for data in _data_sets(results) if only in (None, data)]:
            figures = figures_of(results, variant, data, "nlpd")
            every += [found for pair in pairs if (found := _compare(figures, data, *pair)) is not None]
        complete = only is None or len(every) == len(pairs)
        return _judged(every, [pair.text() for pair in every], "nlpd", level) if every and complete else not_run(_TABLE)

    return judge


def _in_both_variants(judge: Judge) -> Callable[[Results], Finding]:
    return lambda results: combine({variant: judge(results, variant) for variant in VARIANTS}, _TABLE)


_EACH_OTHER = "SVIGP, SGPR, DKL and RFEDGP of both sizes on every data set on which all were run"
_EVERY_SPLIT = f"over the splits that both have, {RULE_OF_VARIANTS}; for DMGP and DFGP trained our way and the paper's"
_NETWORKS = (
    ". The networks of DNN+S, DNN+M and DNN+F have our training (averaged weights, the best epoch of held-out rows) in "
    "both, so the paper's recipe is set against networks that the paper did not have"
)
CLAIMS = (
    Claim(
        TOPIC,
        "DMGP and DFGP beat all sparse and deep GP baselines in NLPD",
        "deep table, text and summary",
        _TABLE,
        f"Both are below {_EACH_OTHER}, {_EVERY_SPLIT}",
        _in_both_variants(_below_all_others("nlpd")),
    ),
    Claim(
        TOPIC,
        "DMGP and DFGP beat all sparse and deep GP baselines in RMSE",
        "RMSE table, text and summary",
        _TABLE,
        f"Both are below {_EACH_OTHER}, {_EVERY_SPLIT}",
        _in_both_variants(_below_all_others("rmse")),
    ),
    Claim(
        TOPIC,
        "DMGP and DFGP beat all sparse and deep GP baselines in speed",
        "deep table, text and summary",
        _TABLE,
        f"Both take fewer CPU seconds than {_EACH_OTHER}, {_EVERY_SPLIT}; not wall seconds, since other programs ran "
        "beside these; with the budgets of the table (in the paper's own table DMGP is not the faster)",
        _in_both_variants(_below_all_others("cpu_seconds")),
    ),
    Claim(
        TOPIC,
        "DMGP and DFGP beat simple DNN regression (DNN+S)",
        "deep table, summary",
        _TABLE,
        f"Both have the lower NLPD on every data set, {_EVERY_SPLIT}{_NETWORKS}",
        _in_both_variants(_lower_nlpd(tuple((method, "DNN+S") for method in DEEP))),
    ),
    Claim(
        TOPIC,
        "Joint training beats two steps",
        "deep table, text and summary",
        _TABLE,
        f"DMGP below DNN+M and DFGP below DNN+F in NLPD on every data set, {_EVERY_SPLIT}{_NETWORKS}",
        _in_both_variants(_lower_nlpd((("DMGP", "DNN+M"), ("DFGP", "DNN+F")))),
    ),
    Claim(
        TOPIC,
        "DNN+M and DNN+F improve on the naive DNN+S",
        "deep table, text",
        _TABLE,
        f"Lower NLPD on every data set, over the splits that both have, {RULE}; these networks have one variant (in "
        "the paper's own table DNN+M does not improve on Buzz)",
        lambda results: _lower_nlpd((("DNN+M", "DNN+S"), ("DNN+F", "DNN+S")), level=LEVEL)(results, VARIANTS[0]),
    ),
    Claim(
        TOPIC,
        "DMGP and DFGP beat the exact GP on elevators in NLPD",
        "deep table, text and summary",
        "exact-gp",
        f"Both are below the exact GP that was trained here, {_EVERY_SPLIT}",
        _in_both_variants(_lower_nlpd(tuple((method, "exact GP") for method in DEEP), only="elevators")),
    ),
)
