"""Claims about the one-dimensional example of the appendix.

They are judged on the paper's own models over several point sets; what certgp's models do on the same points stands
beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from certgp_paper.claims.finding import Claim, Finding, not_run
from certgp_paper.claims.sample_means import RULE, all_negative
from certgp_paper.experiments.curve_problem import (
    DTC,
    FOURIER,
    FOURIER_RANK,
    GRID,
    LOW_RANK,
    MERCER,
    MERCER_RANK,
    OWN,
    PAPER,
    true_curve,
)
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.fresh_sets import deciding_sets
from certgp_paper.experiments.ranks import RANKS_SHOWN
from certgp_paper.experiments.results import Results, chosen_rows, number, rows_of
from certgp_paper.experiments.sample_means import sample_mean

_SIMILAR = 0.1  # relative difference of errors, and of curves in standard deviations of the exact mean
_ACCURATE_FROM = 24
_LOW_RANK = 4
_FEW_MISSES = 0.9  # share of the grid that a 95 % band must hold for its confidence to be deserved
_SPREAD = float(true_curve(GRID).std())  # of the function over the grid
_VARIANCES = {DTC: "DTC", LOW_RANK: "low-rank"}
_FIGURE_SET = 0

Judge = Callable[[Results], Finding]
Verdict = tuple[str, str, str]  # the verdict, the numbers, and how sure it is in a few words


def _sets(results: Results, name: str, **conditions: object) -> list[Row]:
    """Rows of single point sets, in the order of the sets."""
    return sorted(chosen_rows(rows_of(results, name), kind="set", **conditions), key=lambda row: row["seed"])


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [value for row in rows if (value := number(row, key)) is not None]


def _against(rows: Sequence[Row], key: str, other: str, factor: float = 1.0) -> list[float]:
    """key - factor * other, for each point set."""
    return [a - factor * b for a, b in zip(_values(rows, key), _values(rows, other), strict=True)]


def _judged(name: str, one: Callable[[Results, str], Verdict | None]) -> Judge:
    """A claim judged on the paper's models, with certgp's beside it."""

    def judge(results: Results) -> Finding:
        found, own = one(results, PAPER), one(results, OWN)
        if found is None:
            return not_run(name)
        beside = "" if own is None else f". With certgp's models: {own[0]}; {own[1]}"
        return Finding(found[0], found[1] + beside, found[2])

    return judge


def _mercer_like_exact(results: Results, variant: str) -> Verdict | None:
    samples = {}
    for variance, word in _VARIANCES.items():
        rows = _sets(results, "curves", variant=variant, features=MERCER, variance=variance)
        parts = [_values(rows, f"distance_{part}") for part in ("mean", "lower", "upper")]
        if rows:
            samples[word] = [max(each) - _SIMILAR for each in zip(*parts, strict=True)]
    if not samples:
        return None
    texts = []
    for word, sample in samples.items():
        found = sample_mean(sample, len(samples))
        shown = f"{found.mean + _SIMILAR:.3f} ± {found.half_width:.3f}"
        texts.append(f"{word} variance {shown} over {len(sample)} point sets")
    text = "largest RMS difference of mean and band from the exact GP's, in standard deviations of the exact mean: "
    brief = f"differs by {max(mean(sample) for sample in samples.values()) + _SIMILAR:.3f} standard deviations"
    return all_negative(list(samples.values())), text + "; ".join(texts), f"{brief}, {len(sample)} point sets"


def _fourier_is_lower(metric: str, count: str, word: str) -> Callable[[Results, str], Verdict | None]:
    """FGP below the exact GP in a metric, on average over its draws of frequencies."""

    def judge(results: Results, variant: str) -> Verdict | None:
        rows = _sets(results, "curves", variant=variant, features=FOURIER, rank=FOURIER_RANK)
        if not rows:
            return None
        exact = f"exact_{metric}"
        sample = _against(rows, metric, exact)
        draws, wins = int(sum(_values(rows, "draws"))), int(sum(_values(rows, count)))
        text = (
            f"{word}: exact {mean(_values(rows, exact)):.3f}, FGP {mean(_values(rows, metric)):.3f}, difference "
            f"{sample_mean(sample).text()} over {len(rows)} point sets; lower in {wins} of {draws} fits"
        )
        own = [row for row in rows if row["seed"] == _FIGURE_SET]
        if own:
            pair = f"{number(own[0], metric):.3f} against {number(own[0], exact):.3f}"
            text += f", on the figure's points in {own[0][count]} of {own[0]['draws']} ({pair})"
        brief = f"{word} {sample_mean(sample).text()}, {len(rows)} point sets"
        return all_negative([sample]), text, brief

    return judge


def _mercer_by_rank(results: Results, variant: str, variance: str) -> dict[int, list[Row]]:
    """The point sets of MGP by rank; all ranks have the same."""
    rows = _sets(results, "ranks", variant=variant, features=MERCER, variance=variance)
    ranks = sorted({int(rank) for row in rows if (rank := number(row, "rank")) is not None})
    found = {rank: chosen_rows(rows, rank=rank) for rank in ranks}
    shared = set.intersection(*({row["seed"] for row in some} for some in found.values())) if found else set()
    return {rank: [row for row in some if row["seed"] in shared] for rank, some in found.items()}


def _mercer_approaches_exact(results: Results, variant: str) -> Verdict | None:
    by_rank = _mercer_by_rank(results, variant, DTC)  # the mean is the same with both variances
    distances = {rank: _values(rows, "distance_mean") for rank, rows in by_rank.items()}
    if len(distances) < 2 or not distances[min(distances)]:
        return None
    least, largest = distances[min(distances)], distances[max(distances)]
    samples = [[b - a for a, b in zip(least, largest, strict=True)], [value - _SIMILAR for value in largest]]
    shown = "; ".join(f"r = {rank}: {mean(values):.3f}" for rank, values in distances.items())
    change = (
        f"change {sample_mean(samples[0], 2).text()}, at the largest rank within {sample_mean(samples[1], 2).text()}"
    )
    text = "RMS difference of the means, in standard deviations of the exact mean, on average over "
    return (
        all_negative(samples),
        f"{text}{len(largest)} point sets: {shown} ({change} of {_SIMILAR:g})",
        f"{mean(least):.3f} standard deviations away at rank {min(distances)}, {mean(largest):.3f} at "
        f"{max(distances)}, {len(largest)} point sets",
    )


def _mercer_narrows(results: Results, variant: str, variance: str) -> Verdict | None:
    widths = {rank: _values(rows, "width") for rank, rows in _mercer_by_rank(results, variant, variance).items()}
    if len(widths) < 2 or not widths[min(widths)]:
        return None
    least, largest = widths[min(widths)], widths[max(widths)]
    change = [b - a for a, b in zip(least, largest, strict=True)]
    shown = "; ".join(f"r = {rank}: {mean(values):.2f}" for rank, values in widths.items())
    brief = (
        f"change {sample_mean(change).text(2)}, narrower in {sum(c < 0.0 for c in change)} of {len(change)} point sets"
    )
    return all_negative([change]), f"mean width of the band: {shown}; {brief}", brief


def _uncertainty_decreases(variance: str) -> Judge:
    """Judged with one variance; what the other one says stands beside it, since the verdict depends on it."""
    (other,) = set(_VARIANCES) - {variance}

    def judge(results: Results) -> Finding:
        found, beside = _mercer_narrows(results, PAPER, variance), _mercer_narrows(results, PAPER, other)
        if found is None:
            return not_run("ranks")
        verdict, text, brief = found
        if beside is not None and beside[0] != verdict:
            text += (
                f". The verdict depends on the variance: with the {_VARIANCES[other]} variance the claim {beside[0]}"
            )
            brief += "; depends on the variance"
        own = _mercer_narrows(results, OWN, variance)
        return Finding(verdict, text + ("" if own is None else f". With certgp's model: {own[0]}; {own[1]}"), brief)

    return judge


def _fourier_at(results: Results, variant: str, rank: int) -> list[Row]:
    """The point sets that decide."""
    rows = _sets(results, "ranks", variant=variant, features=FOURIER, rank=rank)
    return deciding_sets(rows, lambda row: row["seed"])


def _well_at(results: Results, variant: str, rank: int) -> Verdict | None:
    rows = _fourier_at(results, variant, rank)
    if not rows:
        return None
    errors, coverage = _values(rows, "rmse_inputs"), _values(rows, "coverage")
    samples = [[error - 0.5 * _SPREAD for error in errors], [_FEW_MISSES - share for share in coverage]]
    text = (
        f"RMSE where the data are {mean(errors):.3f} ± {sample_mean(errors, 2).half_width:.3f}, half the function's "
        f"standard deviation {0.5 * _SPREAD:.3f}; the 95 % band holds the function on {mean(coverage):.0%} ± "
        f"{sample_mean(coverage, 2).half_width:.0%} of the grid ({_counts(rows)})"
    )
    brief = (
        f"RMSE {mean(errors):.3f}, the 95 % band holds f on {mean(coverage):.0%} of the grid, {len(rows)} point sets"
    )
    return all_negative(samples), text, brief


def _well_at_rank_4(results: Results, variant: str) -> Verdict | None:
    return _with_frequencies(_well_at(results, variant, _LOW_RANK), _well_at(results, variant, 2 * _LOW_RANK))


def _accurate_at(results: Results, variant: str, ranks: Sequence[int]) -> Verdict | None:
    found = {rank: rows for rank in ranks if (rows := _fourier_at(results, variant, rank))}
    if not found:
        return None
    samples, texts = [], []
    for rank, rows in found.items():
        samples.append(_against(rows, "rmse_inputs", "exact_rmse_inputs", 1.0 + _SIMILAR))
        own, exact = mean(_values(rows, "rmse_inputs")), mean(_values(rows, "exact_rmse_inputs"))
        gap = sample_mean(samples[-1], len(found)).text()
        texts.append(f"r = {rank}: {own:.3f}, exact {exact:.3f}, above {1 + _SIMILAR:.0%} of it by {gap}")
    gap = sample_mean(samples[0], len(found)).text()
    brief = f"at rank {min(found)} {gap} above the limit, {len(samples[0])} point sets"
    return all_negative(samples), f"RMSE where the data are: {'; '.join(texts)} ({_counts(rows)})", brief


def _accurate_from_24(results: Results, variant: str) -> Verdict | None:
    ranks = [rank for rank in RANKS_SHOWN if rank >= _ACCURATE_FROM]
    return _with_frequencies(
        _accurate_at(results, variant, ranks), _accurate_at(results, variant, [2 * _ACCURATE_FROM])
    )


def _with_frequencies(found: Verdict | None, other: Verdict | None) -> Verdict | None:
    """The verdict by rank; that of r frequencies, of rank 2 r, stands beside it."""
    if found is None or other is None:
        return found
    return found[0], f"{found[1]}. With r read as frequencies, of rank 2 r: {other[0]}; {other[1]}", found[2]


def _counts(rows: Sequence[Row]) -> str:
    return f"{len(rows)} point sets with {rows[0]['draws']} draws of frequencies each"


_WHERE = "appendix, curve learning"
_OVER_DRAWS = f"on average over draws of frequencies ({RULE})"


def _band_claim(variance: str, source: str) -> Claim:
    return Claim(
        f"As r increases, the uncertainty of MGP decreases ({_VARIANCES[variance]} variance, {source})",
        _WHERE,
        "ranks",
        f"the band is narrower at the largest rank than at the smallest ({RULE})",
        _uncertainty_decreases(variance),
    )


CLAIMS = (
    Claim(
        f"MGP leads to a posterior mean and predictive intervals similar to those of the exact GP (r = {MERCER_RANK})",
        _WHERE,
        "curves",
        f"mean and both ends of the band differ by at most {_SIMILAR:.0%} of the exact mean's standard deviation on "
        f"the grid, with the variance of the released code and with that of the text ({RULE})",
        _judged("curves", _mercer_like_exact),
    ),
    Claim(
        f"The mean of FGP (r = {FOURIER_RANK}) is nearer to the function than that of the exact GP",
        _WHERE,
        "curves",
        f"lower error on the whole grid {_OVER_DRAWS}",
        _judged("curves", _fourier_is_lower("rmse", "nearer", "RMSE against the function")),
    ),
    Claim(
        f"FGP (r = {FOURIER_RANK}) is more confident about unseen function values than the exact GP",
        _WHERE,
        "curves",
        f"narrower band {_OVER_DRAWS}",
        _judged("curves", _fourier_is_lower("width", "narrower", "mean width of the band")),
    ),
    Claim(
        "As r increases, the mean of MGP approximates that of the exact GP very well",
        _WHERE,
        "ranks",
        f"at the largest rank it is nearer than at the smallest, and within {_SIMILAR:.0%} of the exact mean's "
        f"standard deviation ({RULE})",
        _judged("ranks", _mercer_approaches_exact),
    ),
    _band_claim(DTC, "that of the released code"),
    _band_claim(LOW_RANK, "that of the text"),
    Claim(
        f"FGP performs well with high confidence even with r = {_LOW_RANK}",
        _WHERE,
        "ranks",
        "the error where the data are is at most half the function's standard deviation, and the confidence is "
        f"deserved: the 95 % band holds the function on {_FEW_MISSES:.0%} of the grid, both {_OVER_DRAWS}",
        _judged("ranks", _well_at_rank_4),
    ),
    Claim(
        f"FGP learns the function accurately after r = {_ACCURATE_FROM}",
        _WHERE,
        "ranks",
        f"at every such rank the error where the data are is at most {_SIMILAR:.0%} above that of the exact GP, "
        f"{_OVER_DRAWS}; the first ten point sets left it open, so twenty fresh ones decide alone",
        _judged("ranks", _accurate_from_24),
    ),
)
