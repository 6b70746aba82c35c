"""Claims about MGP, FGP and SGPR on real data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from certgp_paper.claims.finding import Claim, Finding, finding, not_run
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, chosen_rows, number, pair_up, rows_of

_JUDGED = ("certgp", "paper")  # variants that have to be there before anything is said


def _pairs(rows: Sequence[Row], first: str, second: str) -> list[tuple[Row, Row]]:
    """Cells of two methods that differ in nothing else, the number of splits included."""
    pairs = pair_up(
        rows, ("data", "rank", "splits"), lambda r: r.get("method") == first, lambda r: r.get("method") == second
    )
    return [(a, b) for a, b in pairs if number(a, "mean") is not None and number(b, "mean") is not None]


def _gap(pairs: Sequence[tuple[Row, Row]], key: str) -> list[float]:
    values = [(number(a, key), number(b, key)) for a, b in pairs]
    return [a - b for a, b in values if a is not None and b is not None]


def _in_every_variant(results: Results, judge: Callable[[Sequence[Row]], tuple[bool, str] | None]) -> Finding:
    """The claim is judged for each variant of the protocol and has to hold in all."""
    rows = rows_of(results, "table-nlpd")
    missing = [variant for variant in _JUDGED if not judge(chosen_rows(rows, variant=variant))]
    if missing:
        return not_run("table-nlpd")
    verdicts, texts = [], []
    for variant in dict.fromkeys(row.get("variant") for row in rows):
        judged = judge(chosen_rows(rows, variant=variant))
        if judged is not None:
            verdicts.append(judged[0])
            texts.append(f"{variant}: {judged[1]}" if variant else judged[1])
    return finding(all(verdicts), "; ".join(texts)) if verdicts else not_run("table-nlpd")


def _mercer_like_sgpr(rows: Sequence[Row]) -> tuple[bool, str] | None:
    mercer, fourier = _pairs(rows, "MGP", "SGPR"), _pairs(rows, "FGP", "SGPR")
    if not mercer or not fourier:
        return None
    ours = [mean(map(abs, _gap(pairs, "mean"))) for pairs in (mercer, fourier)]
    text = f"mean distance to SGPR: MGP {ours[0]:.3f}, FGP {ours[1]:.3f} ({len(mercer)} and {len(fourier)} cells)"
    papers = [_gap(pairs, "paper_mean") for pairs in (mercer, fourier)]
    if all(papers):
        text += ", in the paper " + " and ".join(f"{mean(map(abs, gap)):.3f}" for gap in papers)
    return ours[0] < ours[1], text


def _mercer_beats_fourier(rows: Sequence[Row]) -> tuple[bool, str] | None:
    pairs = _pairs(rows, "MGP", "FGP")
    if not pairs:
        return None
    ours, papers = _gap(pairs, "mean"), _gap(pairs, "paper_mean")
    lower = sum(gap < 0 for gap in ours)
    text = f"MGP lower in {lower} of {len(ours)} cells, by {-mean(ours):.3f} on average"
    if papers:
        text += f", in the paper in {sum(gap < 0 for gap in papers)} of {len(papers)}, by {-mean(papers):.3f}"
    return mean(ours) < 0 and 2 * lower > len(ours), text


CLAIMS = (
    Claim(
        "MGP behaves like SGPR",
        "NLPD table, text",
        "table-nlpd",
        "MGP is nearer to SGPR in NLPD than FGP is, on average over the cells of every variant",
        lambda results: _in_every_variant(results, _mercer_like_sgpr),
    ),
    Claim(
        "FGP is slightly inferior to MGP on real data",
        "NLPD table, text",
        "table-nlpd",
        "MGP is lower on average and in more than half of the cells of every variant",
        lambda results: _in_every_variant(results, _mercer_beats_fourier),
    ),
)
