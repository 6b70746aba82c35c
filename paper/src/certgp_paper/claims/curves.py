"""Claims about the one-dimensional example of the appendix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import mean, pstdev

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED, Claim, Finding, finding, not_run
from certgp_paper.claims.paired import paired_difference
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, chosen_rows, number, rows_of

_SIMILAR = 0.1  # relative difference of errors, and of curves in standard deviations of the exact mean
_ACCURATE_FROM = 24
_LOW_RANK = 4
_FEW_MISSES = 0.9  # share of the grid that a 95 % band must hold for its confidence to be deserved

Curve = dict[str, list[float]]  # mean, lower and upper along the grid


def _curve(rows: Sequence[Row], **conditions: object) -> Curve | None:
    """The answer of one model along the grid; None where it is not there."""
    points = chosen_rows(rows, kind="curve", **conditions)
    columns = {key: [number(row, key) for row in points] for key in ("truth", "mean", "lower", "upper")}
    known = {key: [value for value in values if value is not None] for key, values in columns.items()}
    return known if points and all(len(values) == len(points) for values in known.values()) else None


def _model_curve(results: Results, kind: str) -> Curve | None:
    """The exact, the Mercer or the Fourier GP of the figure, by the first word of the model's name."""
    rows = rows_of(results, "curves")
    names = [row["model"] for row in chosen_rows(rows, kind="scores") if _is(row, kind)]
    return _curve(rows, model=names[0]) if names else None


def _is(row: Row, kind: str) -> bool:
    return str(row.get("model", "")).lower().startswith(kind)


def _exact_score(results: Results, metric: str) -> float | None:
    rows = [row for row in chosen_rows(rows_of(results, "curves"), kind="scores") if _is(row, "exact")]
    return number(rows[0], metric) if rows else None


def _distance(first: Curve, second: Curve, key: str) -> float:
    """Root mean squared difference of two curves on the grid, in standard deviations of the second one's mean."""
    squares = [(a - b) ** 2 for a, b in zip(first[key], second[key], strict=True)]
    return math.sqrt(mean(squares)) / pstdev(second["mean"])


def _width(curve: Curve) -> float:
    """Mean width of the band."""
    return mean(upper - lower for lower, upper in zip(curve["lower"], curve["upper"], strict=True))


def _mercer_like_exact(results: Results) -> Finding:
    exact, mercer = _model_curve(results, "exact"), _model_curve(results, "mercer")
    if exact is None or mercer is None:
        return not_run("curves")
    distances = {key: _distance(mercer, exact, key) for key in ("mean", "lower", "upper")}
    shown = (f"{key} {value:.3f}" for key, value in distances.items())
    text = f"RMS difference of MGP from the exact GP, in standard deviations of the exact mean: {', '.join(shown)}"
    return finding(max(distances.values()) <= _SIMILAR, text)


def _fourier_is_lower(metric: str, exact_value: Callable[[Results], float | None], name: str) -> Callable[..., Finding]:
    """Over draws of frequencies: lower than the exact GP on average and in more than half of them."""

    def judge(results: Results) -> Finding:
        drawn = [number(row, metric) for row in chosen_rows(rows_of(results, "curves"), kind="draw")]
        fourier, exact = [value for value in drawn if value is not None], exact_value(results)
        if exact is None or len(fourier) < 2:
            return not_run("curves")
        difference = paired_difference(fourier, [exact] * len(fourier))
        wins = sum(value < exact for value in fourier)
        most = 2 * wins > len(fourier)
        verdict = HOLDS if most and difference.is_lower else FAILS if not most and difference.is_higher else UNDECIDED
        text = f"{name}: exact {exact:.3f}, FGP {mean(fourier):.3f}, difference {difference.text(3)}"
        return Finding(verdict, f"{text}; lower in {wins} of {len(fourier)} draws")

    return judge


def _exact_width(results: Results) -> float | None:
    exact = _model_curve(results, "exact")
    return None if exact is None else _width(exact)


def _mercer_ranks(results: Results) -> dict[int, Curve]:
    """Curves of the Mercer GP by rank."""
    rows = chosen_rows(rows_of(results, "ranks"), features="Mercer")
    ranks = sorted({int(rank) for row in rows if (rank := number(row, "rank")) is not None})
    found = {rank: _curve(rows, rank=rank) for rank in ranks}
    return {rank: curve for rank, curve in found.items() if curve is not None}


def _mercer_approaches_exact(results: Results) -> Finding:
    exact, curves = _model_curve(results, "exact"), _mercer_ranks(results)
    if exact is None or len(curves) < 2:
        return not_run("ranks")
    distances = {rank: _distance(curve, exact, "mean") for rank, curve in curves.items()}
    least, largest = min(distances), max(distances)
    shown = "; ".join(f"r = {rank}: {value:.3f}" for rank, value in distances.items())
    holds = distances[largest] < distances[least] and distances[largest] <= _SIMILAR
    return finding(holds, f"RMS difference of the means, in standard deviations of the exact mean: {shown}")


def _mercer_uncertainty_decreases(results: Results) -> Finding:
    curves = _mercer_ranks(results)
    if len(curves) < 2:
        return not_run("ranks")
    widths = {rank: _width(curve) for rank, curve in curves.items()}
    shown = "; ".join(f"r = {rank}: {value:.2f}" for rank, value in widths.items())
    return finding(widths[max(widths)] < widths[min(widths)], f"mean width of the band: {shown}")


def _fourier_errors(results: Results) -> dict[int, Row]:
    """Scores of the Fourier GP by rank."""
    scores = chosen_rows(rows_of(results, "ranks"), kind="scores", features="Fourier")
    return {int(rank): row for row in scores if (rank := number(row, "rank")) is not None}


def _accurate_from_24(results: Results) -> Finding:
    limit = _exact_score(results, "rmse_inputs")
    found = {rank: number(row, "rmse_inputs") for rank, row in _fourier_errors(results).items()}
    errors = {rank: error for rank, error in found.items() if error is not None and rank >= _ACCURATE_FROM}
    if limit is None or not errors:
        return not_run("ranks")
    shown = "; ".join(f"r = {rank}: {error:.3f}" for rank, error in errors.items())
    holds = max(errors.values()) <= (1.0 + _SIMILAR) * limit
    return finding(holds, f"RMSE where the data are: {shown}; exact {limit:.3f}")


def _well_at_rank_4(results: Results) -> Finding:
    row, exact = _fourier_errors(results).get(_LOW_RANK, {}), _model_curve(results, "exact")
    error, coverage = number(row, "rmse_inputs"), number(row, "coverage")
    if exact is None or error is None or coverage is None:
        return not_run("ranks")
    spread = pstdev(exact["truth"])
    text = f"RMSE where the data are {error:.3f}, the function's standard deviation {spread:.3f}; its 95 % band holds "
    return finding(
        error <= 0.5 * spread and coverage >= _FEW_MISSES, f"{text}the function on {coverage:.0%} of the grid"
    )


_WHERE = "appendix, curve learning"
_OVER_DRAWS = (
    "on average over draws of frequencies by more than one standard error, and in more than half of them; it fails "
    "where both say the opposite, otherwise it is undecided; one draw of points"
)
CLAIMS = (
    Claim(
        "MGP leads to a posterior mean and predictive intervals similar to those of the exact GP (r = 34)",
        _WHERE,
        "curves",
        f"mean and both ends of the band differ by at most {_SIMILAR:.0%} of the exact mean's standard deviation on "
        "the grid",
        _mercer_like_exact,
    ),
    Claim(
        "The mean of FGP (r = 68) is nearer to the function than that of the exact GP",
        _WHERE,
        "curves",
        f"lower error on the whole grid {_OVER_DRAWS}",
        _fourier_is_lower("rmse", lambda results: _exact_score(results, "rmse"), "RMSE against the function"),
    ),
    Claim(
        "FGP (r = 68) is more confident about unseen function values than the exact GP",
        _WHERE,
        "curves",
        f"narrower band {_OVER_DRAWS}",
        _fourier_is_lower("width", _exact_width, "mean width of the band"),
    ),
    Claim(
        "As r increases, the mean of MGP approximates that of the exact GP very well",
        _WHERE,
        "ranks",
        f"at the largest rank it is nearer than at the smallest, and within {_SIMILAR:.0%} of the exact mean's "
        "standard deviation",
        _mercer_approaches_exact,
    ),
    Claim(
        "As r increases, the uncertainty of MGP decreases",
        _WHERE,
        "ranks",
        "the band is narrower at the largest rank than at the smallest",
        _mercer_uncertainty_decreases,
    ),
    Claim(
        f"FGP performs well with high confidence even with r = {_LOW_RANK}",
        _WHERE,
        "ranks",
        "the error where the data are is at most half the function's standard deviation, and the confidence is "
        f"deserved: the 95 % band holds the function on {_FEW_MISSES:.0%} of the grid; one draw of frequencies",
        _well_at_rank_4,
    ),
    Claim(
        "FGP learns the function accurately after r = 24",
        _WHERE,
        "ranks",
        f"at every such rank the error where the data are is at most {_SIMILAR:.0%} above that of the exact GP; one "
        "draw of frequencies",
        _accurate_from_24,
    ),
)
