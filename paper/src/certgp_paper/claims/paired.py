"""Differences of two methods on what they share, judged against their own noise: holds, fails or undecided.

A difference of means over n runs is compared with a quantile of Student's t with n - 1 degrees of freedom. Splits of
one data set share most of their training rows, so differences over them scatter less than over fresh data. [Nadeau,
Bengio 2003] widen the standard error for that: s sqrt(1 / n + test rows / training rows). A claim with several
comparisons is judged at 5 % over all of them together, by Holm's method [Holm 1979]; one that is judged in two variants
has half of that for each (Bonferroni). Fewer than five runs decide nothing: such a comparison can reject nothing, so
Holm's method does not count it, and it leaves "all of them" open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t as student_t

from certgp_paper.claims.finding import FAILS, HOLDS, UNDECIDED, Finding

LEVEL = 0.05  # chance of one wrong verdict or more among the comparisons of a claim
FEWEST = 5  # runs
SPLIT_OVERLAP = 1.0 / 9.0  # test rows over training rows of the paper's splits
CONFIDENCE = 0.95  # of the intervals that are shown, each for itself
_NOISE = "by more than the noise of the paired difference, at the 5 % level over all comparisons of the claim together"
_OTHERWISE = f"undecided otherwise, and with fewer than {FEWEST} splits"
RULE = f"{_NOISE} (t quantiles, Holm's correction); {_OTHERWISE}"
RULE_OF_VARIANTS = (
    f"{_NOISE} (t quantiles, Holm's correction inside a variant, half of the 5 % for each of the two: Bonferroni); "
    f"{_OTHERWISE}"
)


@dataclass(frozen=True)
class Difference:
    """Mean of first minus second, its standard error, which a single pair does not have, and the number of pairs."""

    mean: float
    standard_error: float | None
    count: int

    @property
    def p_value(self) -> float:
        """Of "both are equal", two-sided; 1 where there are too few pairs to say anything."""
        if self.standard_error is None or self.count < FEWEST:
            return 1.0
        if self.standard_error == 0.0:
            return 0.0 if self.mean else 1.0
        return float(2.0 * student_t.sf(abs(self.mean) / self.standard_error, self.count - 1))

    @property
    def is_lower(self) -> bool:
        """Is the first lower by more than the noise, where this is the only comparison?"""
        return all_lower([self]) == HOLDS

    @property
    def is_higher(self) -> bool:
        """Is the first higher by more than the noise, where this is the only comparison?"""
        return all_lower([self]) == FAILS

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % t interval; None of a single pair."""
        if self.standard_error is None:
            return None
        return float(student_t.ppf(0.5 * (1.0 + CONFIDENCE), self.count - 1)) * self.standard_error

    def text(self, digits: int) -> str:
        """-0.024 ± 0.010, the 95 % interval."""
        noise = "?" if self.half_width is None else f"{self.half_width:.{digits}f}"
        return f"{self.mean:+.{digits}f} ± {noise}"


def paired_difference(first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> Difference:
    """Of figures that belong together one by one: what is common to a pair, such as a hard split, cancels.

    ``overlap`` is ``SPLIT_OVERLAP`` for splits of one data set and 0 for independent draws.
    """
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    error = stdev(gaps) * math.sqrt(1.0 / len(gaps) + overlap) if len(gaps) > 1 else None
    return Difference(mean(gaps), error, len(gaps))


def is_significant(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Holm: the k-th smallest of m p-values is compared with level / (m - k + 1), until one is larger."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for place, i in enumerate(order):
        if p_values[i] > level / (len(p_values) - place):
            break
        rejected[i] = True
    return rejected


def _clear(differences: Sequence[Difference], level: float) -> list[bool]:
    """Which of them are more than noise; those with too few runs are not, and are no comparisons to correct for."""
    judged = [difference.p_value for difference in differences if difference.count >= FEWEST]
    found = iter(is_significant(judged, level))
    return [difference.count >= FEWEST and next(found) for difference in differences]


def all_lower(differences: Sequence[Difference], level: float = LEVEL) -> str:
    """Verdict on "the first is lower in every pair": one that is higher refutes it, one undecided leaves it open."""
    clear = _clear(differences, level)
    if all(clear) and all(difference.mean < 0 for difference in differences):
        return HOLDS
    refuted = any(known and difference.mean > 0 for known, difference in zip(clear, differences, strict=True))
    return FAILS if refuted else UNDECIDED


def judge_all_lower(differences: Sequence[Difference], evidence: str, level: float = LEVEL) -> Finding:
    """The verdict of ``all_lower`` beside the numbers, with the counts that explain it."""
    text = count_by_outcome(differences, level)
    return Finding(all_lower(differences, level), f"{evidence}; {text}", text)


def count_by_outcome(differences: Sequence[Difference], level: float = LEVEL) -> str:
    """4 of 28 clear, 8 lean so, 2 lean against, 14 with too few runs: every comparison is counted once."""
    clear = _clear(differences, level)
    counts = dict.fromkeys(("clear", "lean so", "lean against", "clearly not", "with too few runs"), 0)
    for known, difference in zip(clear, differences, strict=True):
        lower = difference.mean < 0
        if difference.count < FEWEST:
            counts["with too few runs"] += 1
        elif known:
            counts["clear" if lower else "clearly not"] += 1
        else:
            counts["lean so" if lower else "lean against"] += 1
    first = f"{counts.pop('clear')} of {len(differences)} clear"
    return ", ".join([first, *(f"{count} {word}" for word, count in counts.items() if count)])
