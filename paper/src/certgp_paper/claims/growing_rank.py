"""Claims about the second figure of the appendix: the curve at growing rank.

Two sentences of the paper can be read in two ways, and both are judged: its text and its released code differ in the
variance of MGP, and r of FGP, "eigenfunctions or spectral frequencies", is a rank or half of one. The readings of a
claim are comparisons of it, so each is judged as one of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from certgp_paper.claims.curve_sets import (
    OVER_DRAWS,
    SIMILAR,
    START,
    VARIANCES,
    WHERE,
    Judge,
    against,
    beside,
    judged,
    mean_text,
    sets_of,
    values_of,
)
from certgp_paper.claims.finding import CURVE, Claim, Finding, combine, not_run
from certgp_paper.claims.sample_means import RULE, all_negative
from certgp_paper.experiments.curve_problem import DTC, FOURIER, GRID, MERCER, OWN, PAPER, true_curve
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.fresh_sets import FRESH_SETS, deciding_sets
from certgp_paper.experiments.ranks import RANKS_SHOWN
from certgp_paper.experiments.results import Results, chosen_rows, number
from certgp_paper.experiments.sample_means import sample_mean

_ACCURATE_FROM = 24
_LOW_RANK = 4
_FEW_MISSES = 0.9  # share of the grid that a 95 % band must hold for its confidence to be deserved
_SPREAD = float(true_curve(GRID).std())  # of the function over the grid
_RANK, _FREQUENCIES = "rank r", "r frequencies"
_READINGS = 2  # of the variance, and of r

Ranks = Sequence[int]
AtRanks = Callable[[Results, str, Ranks], Finding | None]


def _mercer_by_rank(results: Results, variant: str, variance: str) -> dict[int, list[Row]]:
    """The point sets of MGP by rank; all ranks have the same."""
    rows = sets_of(results, "ranks", variant=variant, features=MERCER, variance=variance)
    ranks = sorted({int(rank) for row in rows if (rank := number(row, "rank")) is not None})
    found = {rank: chosen_rows(rows, rank=rank) for rank in ranks}
    shared = set.intersection(*({row["seed"] for row in some} for some in found.values())) if found else set()
    return {rank: [row for row in some if row["seed"] in shared] for rank, some in found.items()}


def _shown(by_rank: Mapping[int, Sequence[float]], digits: int) -> str:
    return ", ".join(f"r = {rank}: {mean(values):.{digits}f}" for rank, values in by_rank.items())


def _mercer_approaches_exact(results: Results, variant: str) -> Finding | None:
    by_rank = _mercer_by_rank(results, variant, DTC)  # the mean is the same with both variances
    distances = {rank: values_of(rows, "distance_mean") for rank, rows in by_rank.items()}
    if len(distances) < 2 or not distances[min(distances)]:
        return None
    least, largest = distances[min(distances)], distances[max(distances)]
    samples = [[b - a for a, b in zip(least, largest, strict=True)], [value - SIMILAR for value in largest]]
    text = (
        f"RMS difference of the means, in standard deviations of the exact mean: {_shown(distances, 3)}, "
        f"{len(largest)} point sets; change {sample_mean(samples[0]).text()}; at the largest rank "
        f"{mean_text(largest)}, limit {SIMILAR:g}"
    )
    brief = (
        f"{mean(least):.3f} standard deviations away at rank {min(distances)}, {mean_text(largest)} at "
        f"{max(distances)}, {len(largest)} point sets"
    )
    return Finding(all_negative(samples), text, brief)


def _narrows(results: Results, variant: str, variance: str) -> Finding:
    widths = {rank: values_of(rows, "width") for rank, rows in _mercer_by_rank(results, variant, variance).items()}
    if len(widths) < 2 or not widths[min(widths)]:
        return not_run("ranks")
    least, largest = widths[min(widths)], widths[max(widths)]
    change = [b - a for a, b in zip(least, largest, strict=True)]
    narrower = f"narrower in {sum(c < 0.0 for c in change)} of {len(change)} point sets"
    text = f"mean width of the band: {_shown(widths, 2)}; change {sample_mean(change).text(2)}, {narrower}"
    return Finding(all_negative([change], _READINGS), text, f"change {sample_mean(change).text(2)}")


def _uncertainty_decreases(results: Results) -> Finding:
    """One sentence, judged with both variances; certgp's models have the first one."""
    found = combine(
        {words: _narrows(results, PAPER, variance) for variance, words in VARIANCES.items()}, "ranks", "variance"
    )
    own = _narrows(results, OWN, DTC)
    return beside(found, own if sets_of(results, "ranks", variant=OWN, features=MERCER) else None)


def _in_both_readings(ranks: Ranks, one: AtRanks) -> Judge:
    """With r as the rank of FGP, and as its number of frequencies, of which the rank is twice that.

    As frequencies a claim about several r is judged at the least of them, where it is made first.
    """

    def of_variant(results: Results, variant: str) -> Finding | None:
        found = {_RANK: one(results, variant, ranks), _FREQUENCIES: one(results, variant, [2 * ranks[0]])}
        known = {name: finding for name, finding in found.items() if finding is not None}
        return combine(known, "ranks", "meaning of r") if known else None

    return judged("ranks", of_variant)


def _well_at(results: Results, variant: str, ranks: Ranks) -> Finding | None:
    rows = _deciding(_fourier_at(results, variant, ranks[0]))
    if not rows:
        return None
    errors, coverage = values_of(rows, "rmse_inputs"), values_of(rows, "coverage")
    samples = [[error - 0.5 * _SPREAD for error in errors], [_FEW_MISSES - share for share in coverage]]
    text = (
        f"RMSE where the data are {mean_text(errors)}, half the function's standard deviation {0.5 * _SPREAD:.3f}; the "
        f"95 % band holds the function on {mean(coverage):.0%} ± {sample_mean(coverage).half_width:.0%} of the grid; "
        f"{_counts(rows)}"
    )
    brief = f"RMSE {mean(errors):.3f}, band holds f on {mean(coverage):.0%} of the grid"
    return Finding(all_negative(samples, _READINGS), text, brief)


def _accurate_at(results: Results, variant: str, ranks: Ranks) -> Finding | None:
    every = {rank: rows for rank in ranks if (rows := _fourier_at(results, variant, rank))}
    if not every:
        return None
    found = {rank: _deciding(rows) for rank, rows in every.items()}
    samples = [_above_limit(rows) for rows in found.values()]
    texts = [_accuracy(rank, rows) for rank, rows in found.items()]
    first = {rank: _first_sets(every[rank]) for rank, rows in found.items() if rows != every[rank]}
    if first:
        shown = ", ".join(f"r = {rank}: {sample_mean(_above_limit(rows)).text()}" for rank, rows in first.items())
        sets = max(map(len, first.values()))
        texts.append(
            f"the first {sets} point sets, which these {len(FRESH_SETS)} fresh ones repeat: above the limit {shown}"
        )
    rank, rows = next(iter(found.items()))
    brief = f"{sample_mean(samples[0]).text()} above the limit at rank {rank}, {len(rows)} point sets"
    text = "; ".join([*texts, _counts(rows)])
    return Finding(all_negative(samples, _READINGS), text, brief)


def _above_limit(rows: Sequence[Row]) -> list[float]:
    return against(rows, "rmse_inputs", "exact_rmse_inputs", 1.0 + SIMILAR)


def _accuracy(rank: int, rows: Sequence[Row]) -> str:
    own, exact = mean(values_of(rows, "rmse_inputs")), mean(values_of(rows, "exact_rmse_inputs"))
    return (
        f"rank {rank}: RMSE where the data are {own:.3f}, exact {exact:.3f}, above {1 + SIMILAR:.0%} of it by "
        f"{sample_mean(_above_limit(rows)).text()}"
    )


def _fourier_at(results: Results, variant: str, rank: int) -> list[Row]:
    return sets_of(results, "ranks", variant=variant, features=FOURIER, rank=rank)


def _deciding(rows: Sequence[Row]) -> list[Row]:
    """Fresh point sets where all of them are there, otherwise the first ones."""
    return deciding_sets(rows, lambda row: row["seed"])


def _first_sets(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["seed"] not in FRESH_SETS]


def _counts(rows: Sequence[Row]) -> str:
    return f"{len(rows)} point sets with {rows[0]['draws']} draws of frequencies each"


_TWO_MEANINGS = (
    '; r is read as the rank, and as the number of frequencies ("eigenfunctions or spectral frequencies"), of rank 2 r'
)
CLAIMS = (
    Claim(
        CURVE,
        "As r increases, the mean of MGP comes very near to the exact GP's",
        WHERE,
        "ranks",
        f"At the largest rank it is nearer than at the smallest, and within {SIMILAR:.0%} of the exact mean's standard "
        f"deviation ({RULE}){START}",
        judged("ranks", _mercer_approaches_exact),
        f'{SIMILAR:.0%} of a standard deviation, for "very well"',
    ),
    Claim(
        CURVE,
        "As r increases, the uncertainty of MGP decreases",
        WHERE,
        "ranks",
        "The band is narrower at the largest rank than at the smallest, with the variance of the released code (DTC) "
        f"and with that of the text (low-rank) ({RULE}){START}",
        _uncertainty_decreases,
    ),
    Claim(
        CURVE,
        f"FGP performs well with high confidence even with r = {_LOW_RANK}",
        WHERE,
        "ranks",
        "The error where the data are is at most half the function's standard deviation, and the confidence is "
        f"deserved: the 95 % band holds the function on {_FEW_MISSES:.0%} of the grid, both {OVER_DRAWS}{_TWO_MEANINGS}"
        f"{START}",
        _in_both_readings([_LOW_RANK], _well_at),
        f'Half a standard deviation, for "performs well", and {_FEW_MISSES:.0%} of the grid, for a confidence that is '
        "deserved",
    ),
    Claim(
        CURVE,
        f"FGP learns the function accurately after r = {_ACCURATE_FROM}",
        WHERE,
        "ranks",
        f"At every such rank the error where the data are is at most {SIMILAR:.0%} above that of the exact GP, "
        f"{OVER_DRAWS}{_TWO_MEANINGS}, of which {2 * _ACCURATE_FROM} alone is at hand. The first ten point sets left "
        f"it open, so twenty fresh ones decide alone{START}",
        _in_both_readings([rank for rank in RANKS_SHOWN if rank >= _ACCURATE_FROM], _accurate_at),
        f'{SIMILAR:.0%} above the error of the exact GP, for "accurately"',
    ),
)
