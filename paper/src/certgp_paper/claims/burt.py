"""The claim of "Related work": Theorem 3's ranks against those of Burt et al. (2019).

Nothing in it is random. Ranks are whole numbers: the real number that a theorem asks for lies within one below its
rank, and a comparison that this could turn is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from certgp_paper.claims.finding import FAILS, HOLDS, RATES, UNDECIDED, Claim, Finding, not_run
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, rows_of

_SIMILAR = 2.0  # ratio of ranks
_FEWEST_SIZES = 5
_KERNELS = {"gaussian": "Gaussian", "matern32": "Matern 3/2", "matern52": "Matern 5/2"}


@dataclass(frozen=True)
class Between:
    """A number that is known up to rounding of ranks."""

    low: float
    value: float
    high: float

    def is_below(self, other: Between) -> bool:
        """For certain."""
        return self.high < other.low


def _like_burt(results: Results) -> Finding:
    """Gaussian kernels: within a factor of two; Matern kernels: a smaller exponent of N."""
    rows = [row for row in rows_of(results, "figure1") if row.get("method") == "rates"]
    verdicts, texts = list[str](), list[str]()
    briefs: dict[bool, list[str]] = {True: [], False: []}  # of Gaussian kernels, and of the others
    for kernel, D in dict.fromkeys((row["kernel"], row["D"]) for row in rows):
        own = [row for row in rows if (row["kernel"], row["D"]) == (kernel, D)]
        known = [row for row in own if row["theorem3"] is not None and row["burt"] is not None]
        if len(known) < 2:
            continue
        is_gaussian = kernel == "gaussian"
        name = _KERNELS.get(kernel, str(kernel))
        verdict, text, brief = _ratio(known) if is_gaussian else _exponents(known)
        verdicts.append(verdict if len(known) >= _FEWEST_SIZES else UNDECIDED)
        texts.append(f"{name}, D = {D}: {text}, {len(known)} sizes")
        briefs[is_gaussian].append(f"{brief} ({f'D = {D}' if is_gaussian else name.removeprefix('Matern ')})")
    if not all(briefs.values()):
        return not_run("figure1")
    verdict = next((each for each in (FAILS, UNDECIDED) if each in verdicts), HOLDS)
    shown = {is_gaussian: " to ".join(dict.fromkeys((some[0], some[-1]))) for is_gaussian, some in briefs.items()}
    return Finding(verdict, "; ".join(texts), f"Gaussian rank {shown[True]}, Matern {shown[False]}")


def _ratio(known: Sequence[Row]) -> tuple[str, str, str]:
    """At the largest N."""
    ours, burt = known[-1]["theorem3"], known[-1]["burt"]
    least, most = min(ours, burt), max(ours, burt)
    low, high = (most - 1) / least, most / max(least - 1, 1)
    verdict = HOLDS if high <= _SIMILAR else FAILS if low > _SIMILAR else UNDECIDED
    return verdict, f"rank {ours} against {burt} at N = {known[-1]['rows']:,}", f"{ours} against {burt}"


def _exponents(known: Sequence[Row]) -> tuple[str, str, str]:
    """From the smallest N to the largest at which both are known."""
    ours, burt = (_exponent(known[0], known[-1], name) for name in ("theorem3", "burt"))
    verdict = HOLDS if ours.is_below(burt) else FAILS if burt.is_below(ours) else UNDECIDED
    brief = f"N^{ours.value:.2f} against N^{burt.value:.2f}"
    shown = ", ".join(f"{each.low:.2f} to {each.high:.2f}" for each in (ours, burt))
    return verdict, f"the rank grows like {brief} (exponents, ranks being whole numbers: {shown})", brief


def _exponent(first: Row, last: Row, theorem: str) -> Between:
    a, b, growth = first[theorem], last[theorem], math.log(last["rows"] / first["rows"])
    low, high = max(b - 1, 1) / a, b / max(a - 1, 1)
    return Between(*(math.log(ratio) / growth for ratio in (low, b / a, high)))


CLAIMS = (
    Claim(
        RATES,
        "Theorem 3's ranks are like Burt et al.'s (Gaussian) and grow more slowly with N (Matern)",
        "Related work",
        "figure1",
        f"At the largest N within a factor of {_SIMILAR:g} (Gaussian); a smaller exponent of N (Matern), for KL "
        "at most 1 with probability .95. Undecided where rounding of ranks could turn it, and with fewer than "
        f"{_FEWEST_SIZES} sizes N. Matern kernels are 3/2 and 5/2 in one "
        "dimension: for Matern 1/2, the kernel of figures 1 and 2, the bound of Burt et al. is empty (its eigenvalue "
        "tail falls like 1 / r, and it asks for r times that tail to vanish), so there is nothing to compare with",
        _like_burt,
        f'The factor of {_SIMILAR:g}, our reading of "quantitatively similar"',
    ),
)
