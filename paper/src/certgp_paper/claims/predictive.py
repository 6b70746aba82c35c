"""Claims about predictions: what the KL of all rows, and that of predictive densities, say of them.

Draws of one group are independent: those of a point set given it, and point sets among each other. So the exceptions of
a group to a bound with probability 1 - eta are at most binomial, and exceptions to one that always holds refute it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from certgp_paper.claims.bounds import more_than_chance
from certgp_paper.claims.finding import FAILS, HOLDS, RATES, UNDECIDED, Claim, Finding, not_run
from certgp_paper.claims.sample_means import FEWEST
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, number, rows_of

_COUNTS = ("draws", "kl_above", "moments_above", "means_far", "covariances_outside")
_NUMBERS = ("kl_total", "kl_train", "kl_expected", "kl_median", "chain_gap", "eta", "rounding", *_COUNTS)
_GROUP = ("kernel", "method", "D", "rank")


def _value(row: Row, key: str) -> float:
    """A figure of a row that is known to have it."""
    return number(row, key) or 0.0


def _known(results: Results) -> list[Row]:
    return [row for row in rows_of(results, "predictive") if all(number(row, key) is not None for key in _NUMBERS)]


def _verdict(rows: Sequence[Row], broken: bool, above: str) -> str:
    """Fails by an exception to what always holds, or by too many draws above what the KL of all rows / eta allows."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in _GROUP), []).append(row)
    counts = [(int(_total(some, above)), int(_total(some, "draws"))) for some in groups.values()]
    if broken or (rows and more_than_chance(counts, _value(rows[0], "eta"))):
        return FAILS
    return HOLDS if _point_sets(rows) >= FEWEST else UNDECIDED


def _total(rows: Sequence[Row], key: str) -> float:
    return sum(_value(row, key) for row in rows)


def _point_sets(rows: Sequence[Row]) -> int:
    return len({row.get("seed") for row in rows})


def _ratio(rows: Sequence[Row], key: str) -> str:
    """4.2 (1.1 to 30): median, least and largest."""
    found = [value for row in rows if (value := number(row, key)) is not None]
    return f"{median(found):.3g} ({min(found):.3g} to {max(found):.3g})" if found else "unknown"


def _middle(rows: Sequence[Row], key: str) -> str:
    return _ratio(rows, key).split(" ")[0]


def _densities(rows: Sequence[Row], left_out: Sequence[str]) -> Finding:
    below = [row for row in rows if _value(row, "kl_expected") <= _value(row, "kl_total") + _value(row, "rounding")]
    gap = max((abs(_value(row, "chain_gap")) for row in rows), default=0.0)
    counted = f"{len(below)} of {len(rows)} expectations below the KL of all rows"
    above = f"{_exceptions(rows, 'kl_above')} above KL / {_eta(rows)}"
    texts = [
        f"{counted}, {_point_sets(rows)} point sets",
        f"the KL of all rows is {_ratio(rows, 'kl_ratio')} times the expected predictive KL",
        f"KL of all rows less that of training rows differs from the expectation by {gap:.1g} nats at most",
        f"{above}, which is {_ratio(rows, 'markov_ratio')} times the KL that {_share(rows)} of the draws stay below",
        *left_out,
    ]
    short = (
        f"{counted}, which is {_middle(rows, 'kl_ratio')} times as large in the median; {above}; "
        f"{_point_sets(rows)} point sets"
    )
    return Finding(_verdict(rows, len(below) < len(rows), "kl_above"), "; ".join(texts), short)


def _moments(rows: Sequence[Row], left_out: Sequence[str]) -> Finding:
    draws = int(_total(rows, "draws"))
    far, outside = (int(_total(rows, key)) for key in ("means_far", "covariances_outside"))
    texts = [
        f"means within their bound in {draws - far:,} of {draws:,} draws, {_point_sets(rows)} point sets",
        f"the bound is {_ratio(rows, 'mean_ratio')} times the distance",
        f"covariances within theirs in {draws - outside:,} of {draws:,} draws",
        f"the interval from b to t is {_ratio(rows, 'covariance_ratio')} times as long as it must be, in logarithms",
        f"{_exceptions(rows, 'moments_above')} beyond what KL of all rows / {_eta(rows)} bounds",
        *left_out,
    ]
    short = (
        f"means within in {draws - far:,} of {draws:,} draws, bound {_middle(rows, 'mean_ratio')} times the distance "
        f"in the median; covariances in {draws - outside:,}, {_middle(rows, 'covariance_ratio')} times; "
        f"{_point_sets(rows)} point sets"
    )
    return Finding(_verdict(rows, far + outside > 0, "moments_above"), "; ".join(texts), short)


def _exceptions(rows: Sequence[Row], key: str) -> str:
    return f"{int(_total(rows, key)):,} of {int(_total(rows, 'draws')):,} draws"


def _eta(rows: Sequence[Row]) -> str:
    return f"{_value(rows[0], 'eta'):g}" if rows else "eta"


def _share(rows: Sequence[Row]) -> str:
    return f"{100.0 * (1.0 - _value(rows[0], 'eta')):.0f} %" if rows else "1 - eta"


def _judge(find: Callable[[Sequence[Row], Sequence[str]], Finding], decisive: str) -> Callable[[Results], Finding]:
    """Divergences within rounding decide nothing."""

    def judge(results: Results) -> Finding:
        known = _known(results)
        if not known:
            return not_run("predictive")
        rows = [row for row in known if _value(row, decisive) > _value(row, "rounding")]
        within = len(known) - len(rows)
        return find(rows, [f"not counted: {within} divergences within rounding"] if within else [])

    return judge


_CHANCE = (
    "refuted where exceptions are more than a binomial law allows at the 5 % level (each kernel, approximation, "
    "dimension and rank by itself, draws of all point sets together, Bonferroni)"
)
_ROUNDING = "KL within rounding, 1e-10 nats a row, is not counted, and bounds may be exceeded by as much"
_ENOUGH = f"undecided with fewer than {FEWEST} point sets"
CLAIMS = (
    Claim(
        RATES,
        "The bounds on the KL hold for predictive densities too",
        "Approximation guarantees for GP regression",
        "predictive",
        "The expected predictive KL is at most the KL of training and test rows together; one exception refutes it. "
        "With probability 1 - eta over the training responses, eta = .1, the predictive KL is at most that KL / eta; "
        f"{_CHANCE}. {_ROUNDING}; {_ENOUGH}",
        _judge(_densities, "kl_total"),
    ),
    Claim(
        RATES,
        "A small KL bounds the error of predictive means and covariances",
        "Proposition on parameter bounds from KL",
        "predictive",
        "In every draw of training responses, with g the predictive KL: the Mahalanobis distance of the predictive "
        "means is at most sqrt(2 g), the eigenvalues of C2^-1/2 C1 C2^-1/2 lie between the roots b and t of x - 1 - "
        "ln x = 2 g; one exception refutes it. With the KL of all rows / eta for g, eta = .1, both with probability "
        f"1 - eta; {_CHANCE}. {_ROUNDING}; {_ENOUGH}",
        _judge(_moments, "kl_median"),
    ),
)
