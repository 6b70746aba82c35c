"""Claims about the size of deep models and of their training data."""

from __future__ import annotations

from collections.abc import Sequence

from certgp.experiments.experiment import Row
from certgp.experiments.paper_claims.finding import Claim, Finding, finding, not_run
from certgp.experiments.results import Results, chosen_rows, number, paired, rows_of

DEEP = ("DMGP", "DFGP")
MARGINAL = 0.05  # nats per row
_USED_RANK = {"DMGP": 15, "DFGP": 40}  # the paper's choice for all data sets


def _used(rows: Sequence[Row], method: str) -> Row:
    """The row nearest to the paper's choice: smallest d, then the rank nearest to its rank."""
    smallest = min(number(row, "d") or 0.0 for row in rows)
    at_smallest = [row for row in rows if (number(row, "d") or 0.0) == smallest]
    return min(at_smallest, key=lambda row: abs((number(row, "rank") or 0.0) - _USED_RANK[method]))


def _sensitivity_groups(results: Results, metric: str) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(results, "sensitivity"):
        if row.get("method") in _USED_RANK and None not in (number(row, metric), number(row, "rank")):
            groups.setdefault((str(row.get("data")), str(row["method"])), []).append(row)
    return {key: rows for key, rows in groups.items() if len(rows) > 1}


def _marginal_gains(results: Results) -> Finding:
    shown, gains = [], []
    for (data, method), rows in _sensitivity_groups(results, "nlpd").items():
        used, best = _used(rows, method), min(rows, key=lambda row: number(row, "nlpd") or 0.0)
        gains.append((number(used, "nlpd") or 0.0) - (number(best, "nlpd") or 0.0))
        shown.append(
            f"{data} {method}: {gains[-1]:.3f} from rank {used['rank']} to {best['rank']} (d = {best.get('d')})"
        )
    return finding(max(gains) <= MARGINAL, "; ".join(shown)) if gains else not_run("sensitivity")


def _costly_ranks(results: Results) -> Finding:
    shown, slower = [], []
    for (data, method), rows in _sensitivity_groups(results, "seconds").items():
        if method == "DMGP":
            used, largest = _used(rows, method), max(rows, key=lambda row: number(row, "rank") or 0.0)
            times = number(used, "seconds") or 0.0, number(largest, "seconds") or 0.0
            slower.append(times[1] > 2.0 * times[0])
            shown.append(f"{data}: {times[0]:.0f} s at rank {used['rank']}, {times[1]:.0f} s at {largest['rank']}")
    return finding(all(slower), "; ".join(shown)) if slower else not_run("sensitivity")


def _fewer_points_suffice(results: Results) -> Finding:
    rows = [row for row in rows_of(results, "electric") if None not in (number(row, "nlpd"), number(row, "seconds"))]
    baselines = [row for row in rows if row.get("baseline") is True]
    parts = [row for row in rows if row.get("method") in DEEP and (number(row, "fraction") or 1.0) < 1.0]
    if not baselines or not parts:
        return not_run("electric")
    best = min(baselines, key=lambda row: number(row, "nlpd") or 0.0)
    shown, won = [], []
    for method in dict.fromkeys(str(row["method"]) for row in parts):
        better = [
            row
            for row in chosen_rows(parts, method=method)
            if (number(row, "nlpd") or 0.0) <= (number(best, "nlpd") or 0.0)
            and (number(row, "seconds") or 0.0) < (number(best, "seconds") or 0.0)
        ]
        won.append(bool(better))
        least = min((number(row, "fraction") or 1.0 for row in better), default=None)
        shown.append(f"{method}: " + (f"{least:.0%} of the rows suffice" if least else "no part of the rows suffices"))
    beaten = f"{best.get('data')}, best baseline on all rows {best.get('method')} with {number(best, 'nlpd'):.3f}"
    return finding(all(won), f"{beaten}; {'; '.join(shown)}")


def _fourier_scales_better(results: Results) -> Finding:
    rows = [row for row in rows_of(results, "electric") if number(row, "seconds") is not None]
    pairs = paired(rows, ("data", "fraction"), lambda r: r.get("method") == "DFGP", lambda r: r.get("method") == "DMGP")
    if not pairs or max(number(pair[0], "fraction") or 0.0 for pair in pairs) < 1.0:
        return not_run("electric")
    fourier, mercer = max(pairs, key=lambda pair: number(pair[0], "fraction") or 0.0)
    seconds = number(fourier, "seconds") or 0.0, number(mercer, "seconds") or 0.0
    share = number(fourier, "fraction") or 1.0
    return finding(
        seconds[0] < seconds[1], f"at {share:.0%} of the rows DFGP {seconds[0]:.0f} s, DMGP {seconds[1]:.0f} s"
    )


CLAIMS = (
    Claim(
        "Large d and r offer only marginally better NLPD",
        "sensitivity tables, text",
        f"the best setting gains at most {MARGINAL} over the one nearest to the paper's choice at the smallest d",
        _marginal_gains,
    ),
    Claim(
        "Large d and r severely affect the training time of DMGP",
        "sensitivity tables, text",
        "the largest rank takes more than twice the time, on every data set",
        _costly_ranks,
    ),
    Claim(
        "DMGP and DFGP reach equal precision with fewer training points and less time",
        "figure of the Electric data",
        "some part of the rows gives at most the NLPD of the best baseline on all rows, in less time",
        _fewer_points_suffice,
    ),
    Claim(
        "DFGP scales better than DMGP",
        "figure of the Electric data",
        "it is faster at the largest number of rows",
        _fourier_scales_better,
    ),
)
