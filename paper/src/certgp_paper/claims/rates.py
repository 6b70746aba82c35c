"""Claims about ranks and divergences as figures 1 and 2 show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from certgp_paper.claims.finding import FAILS, HOLDS, RATES, UNDECIDED, Claim, Finding, not_run
from certgp_paper.claims.sample_means import FEWEST, RULE, all_negative
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.fresh_sets import FRESH_SETS, deciding_sets
from certgp_paper.experiments.results import Results, number, pair_up, rows_of
from certgp_paper.experiments.sample_means import SampleMean, sample_mean


def _rank(row: Row) -> float | None:
    """The rank, or the largest one that was tried in vain."""
    return number(row, "rank", "more_than")


def _lower(first: Row, second: Row) -> bool:
    """A rank tried in vain is itself too low."""
    needed, other = number(first, "rank"), _rank(second)
    if needed is None or other is None:
        return False
    return needed < other or (needed == other and number(second, "rank") is None)


def _is(kernel: str, method: str) -> Callable[[Row], bool]:
    def matches(row: Row) -> bool:
        return str(row.get("kernel", "")).startswith(kernel) and row.get("method") == method

    return matches


def _lower_rank(first: tuple[str, str], second: tuple[str, str]) -> Callable[[Results], Finding]:
    """Judged at the N with the most point sets in every dimension; what other N say stands beside it."""

    def judge(results: Results) -> Finding:
        pairs = pair_up(rows_of(results, "figure1"), ("D", "N", "seed"), _is(*first), _is(*second))
        tried = _by_n([(a, b) for a, b in pairs if _rank(a) is not None and _rank(b) is not None])
        # where both were tried in vain nothing is known; where only the first was, it has lost
        known = {n: [pair for pair in some if _found_one(pair)] for n, some in tried.items()}
        deciding = {n: _deciding(some) for n, some in known.items() if some}
        sets = {n: _point_sets(some) for n, some in deciding.items()}
        if not sets:
            return not_run("figure1")
        judged = max(sets, key=lambda n: (sets[n], n))
        shown = ", ".join(f"D = {a['D']}: {_shown(a)} against {_shown(b)}" for a, b in _first_seed(known[judged]))
        counts = {n: _counts(some, len(tried[n])) for n, some in known.items()}
        texts = [f"N = {n}: {counts[n]}{f' ({shown})' if n == judged else ''}" for n in known]
        if sets[judged] < FEWEST:
            return Finding(UNDECIDED, f"fewer than {FEWEST} point sets; {'; '.join(texts)}")
        ratios = _log_ratios(deciding[judged])
        lower = _lower_dimensions(ratios)
        runs = _counts(deciding[judged], len(deciding[judged]))
        readings = [
            f"{lower}; {runs}, {sets[judged]} point sets",
            _each_dimension(ratios),
            _together(ratios),
            _strictly(known[judged]),
        ]
        readings += _first_sets(known[judged], deciding[judged])
        brief = f"{lower}, {sets[judged]} point sets"
        return Finding(all_negative(list(ratios.values())), "; ".join([*readings, *texts]), brief)

    return judge


def _deciding(pairs: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """Fresh point sets where every dimension has all of them, otherwise the first ones."""
    chosen = [deciding_sets(same, lambda pair: pair[0].get("seed")) for same in _by_dimension(pairs)]
    if len({_is_fresh(same[0]) for same in chosen if same}) > 1:
        chosen = [[pair for pair in same if not _is_fresh(pair)] for same in _by_dimension(pairs)]
    return [pair for same in chosen for pair in same]


def _by_dimension(pairs: Sequence[tuple[Row, Row]]) -> list[list[tuple[Row, Row]]]:
    dimensions = dict.fromkeys(a.get("D") for a, _ in pairs)
    return [[pair for pair in pairs if pair[0].get("D") == D] for D in dimensions]


def _is_fresh(pair: tuple[Row, Row]) -> bool:
    return pair[0].get("seed") in FRESH_SETS


def _first_sets(known: Sequence[tuple[Row, Row]], deciding: Sequence[tuple[Row, Row]]) -> list[str]:
    """What the first point sets said, where fresh ones decide."""
    if not deciding or not _is_fresh(deciding[0]):
        return []
    first = [pair for pair in known if not _is_fresh(pair)]
    if not first:
        return []
    said = f"{_lower_dimensions(_log_ratios(first))}, {_counts(first, len(first))}"
    return [f"the first {_point_sets(first)} point sets, which these {len(FRESH_SETS)} fresh ones repeat: {said}"]


def _log_ratios(pairs: Sequence[tuple[Row, Row]]) -> dict[object, list[float]]:
    """log(first rank / second rank) of each point set, for each dimension: the paper compares curves over D.

    Ranks tried in vain stand for those that would be needed, which are larger.
    """
    ratios: dict[object, list[float]] = {}
    for a, b in pairs:
        ratios.setdefault(a.get("D"), []).append(math.log((_rank(a) or 1.0) / (_rank(b) or 1.0)))
    return ratios


def _lower_dimensions(ratios: Mapping[object, Sequence[float]]) -> str:
    """lower in 5 of 6 dimensions, ratio of ranks 0.20 to 0.57."""
    means = [sample_mean(values, len(ratios)) for values in ratios.values()]
    least, most = (math.exp(pick(each.mean for each in means)) for pick in (min, max))
    lower = sum(each.is_negative for each in means)
    return f"lower in {lower} of {len(means)} dimensions, ratio of ranks {least:.2f} to {most:.2f}"


def _each_dimension(ratios: Mapping[object, Sequence[float]]) -> str:
    texts = [f"D = {D}: {_ratio(sample_mean(values, len(ratios)))}" for D, values in ratios.items()]
    return f"ratio of ranks in each dimension, with intervals that hold together: {', '.join(texts)}"


def _together(ratios: Mapping[object, Sequence[float]]) -> str:
    """The mean over dimensions of each point set, which says less than the claim."""
    sets = list(map(mean, zip(*ratios.values(), strict=False)))
    return f"over all dimensions together {_ratio(sample_mean(sets))}"


def _ratio(found: SampleMean) -> str:
    low, high = (math.exp(found.mean + sign * found.half_width) for sign in (-1.0, 1.0))
    return f"{math.exp(found.mean):.2f} ({low:.2f} to {high:.2f})"


def _strictly(pairs: Sequence[tuple[Row, Row]]) -> str:
    """What the claim would be if it spoke of every single run, ties counting against it."""
    every = all(_lower(a, b) for a, b in pairs)
    return f"read strictly, as lower in every single run, it {'holds' if every else 'does not hold'}"


def _point_sets(pairs: Sequence[tuple[Row, Row]]) -> int:
    """How many point sets every dimension has at least."""
    dimensions = {a.get("D") for a, _ in pairs}
    return min(len([a for a, _ in pairs if a.get("D") == D]) for D in dimensions)


def _by_n(pairs: Sequence[tuple[Row, Row]]) -> dict[int, list[tuple[Row, Row]]]:
    """Pairs by N, the largest first."""
    sizes = sorted({int(number(a, "N") or 0.0) for a, _ in pairs}, reverse=True)
    return {n: [(a, b) for a, b in pairs if int(number(a, "N") or 0.0) == n] for n in sizes}


def _found_one(pair: tuple[Row, Row]) -> bool:
    return any(number(row, "rank") is not None for row in pair)


def _counts(known: Sequence[tuple[Row, Row]], tried: int) -> str:
    """lower in 17 of 18 runs, equal in 1."""
    lower = sum(_lower(a, b) for a, b in known)
    equal = sum(number(a, "rank") is not None and number(a, "rank") == number(b, "rank") for a, b in known)
    ties = f", equal in {equal}" if equal else ""
    undecided = f", {tried - len(known)} undecided" if tried > len(known) else ""
    return f"lower in {lower} of {len(known)} runs{ties}{undecided}"


def _shown(row: Row) -> str:
    return f"{'more than ' if number(row, 'rank') is None else ''}{_rank(row):.0f}"


def _first_seed(pairs: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    return [(a, b) for a, b in pairs if a.get("seed") == pairs[0][0].get("seed")]


def _lower_kl(first: tuple[str, str], second: tuple[str, str]) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        pairs = pair_up(rows_of(results, "figure2"), ("N", "seed", "rank"), _is(*first), _is(*second))
        known = _by_n([(a, b) for a, b in pairs if number(a, "kl") is not None and number(b, "kl") is not None])
        if not known:
            return not_run("figure2")
        lower = {n: [_kl(a) < _kl(b) for a, b in some] for n, some in known.items()}
        sets = {n: len({a.get("seed") for a, _ in some}) for n, some in known.items()}
        texts = [
            f"N = {n}: lower at {sum(lower[n])} of {len(some)} ranks and point sets, {sets[n]} of these "
            f"({', '.join(map(_kl_pair, some[:_KL_SHOWN]))})"
            for n, some in known.items()
        ]
        text, every = "; ".join(texts), [each for some in lower.values() for each in some]
        brief = f"lower in {sum(every)} of {len(every)} pairs of equal rank, {max(sets.values())} point sets"
        if not all(all(some) for some in lower.values()):
            return Finding(FAILS, text, brief)
        return Finding(HOLDS if max(sets.values()) >= FEWEST else UNDECIDED, text, brief)

    return judge


_KL_SHOWN = 4  # ranks of each N


def _kl(row: Row) -> float:
    return number(row, "kl") or 0.0


def _kl_pair(pair: tuple[Row, Row]) -> str:
    return f"r = {pair[0]['rank']}: {_kl(pair[0]):.3g} against {_kl(pair[1]):.3g}"


_RANK_RULE = (
    "The paper compares curves over the dimension, so in every dimension the mean log ratio of ranks must be below "
    f"zero ({RULE}), at the N that has the most point sets. Where the first ten left it open, twenty fresh ones "
    "decide alone. The strict reading, lower in every single run, and the mean over all dimensions stand beside it"
)
_KL_RULE = (
    "No test: lower at every rank that both have, for every N and point set, so that one exception refutes it; "
    f"undecided where no N has {FEWEST} point sets"
)
CLAIMS = (
    Claim(
        RATES,
        "Mercer needs a lower rank than random features (Gaussian kernel)",
        "Figure 1",
        "figure1",
        _RANK_RULE,
        _lower_rank(("gaussian", "mercer"), ("gaussian", "fourier")),
    ),
    Claim(
        RATES,
        "Gaussian kernels need a lower rank than Matern kernels: truncation",
        "Figure 1",
        "figure1",
        _RANK_RULE,
        _lower_rank(("gaussian", "mercer"), ("matern", "eigendecomposition")),
    ),
    Claim(
        RATES,
        "Gaussian kernels need a lower rank than Matern kernels: random features",
        "Figure 1",
        "figure1",
        _RANK_RULE,
        _lower_rank(("gaussian", "fourier"), ("matern", "fourier")),
    ),
    Claim(
        RATES,
        "At equal rank Mercer has a lower KL than random features (Gaussian kernel)",
        "Figure 2",
        "figure2",
        _KL_RULE,
        _lower_kl(("gaussian", "mercer"), ("gaussian", "fourier")),
    ),
    Claim(
        RATES,
        "At equal rank truncation has a lower KL for Gaussian than for Matern kernels",
        "Figure 2",
        "figure2",
        _KL_RULE,
        _lower_kl(("gaussian", "mercer"), ("matern", "eigendecomposition")),
    ),
)
