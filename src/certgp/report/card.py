"""The card after a fit: scores on held-out rows beside simple models, and what they mean in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certgp.report.predicted import Predicted, coverage_error

LEVELS = (0.5, 0.8, 0.95)
_FEW = 20  # rows, below which scores say little
_ERRORS = 2.5  # standard errors of a coverage


@dataclass(frozen=True, eq=False)
class Card:
    """A model and the baselines on the same held-out rows."""

    model: Predicted
    baselines: tuple[Predicted, ...]  # none where the training rows are not known
    n_outside: int = 0  # held-out rows outside the range of the training inputs
    baseline_rows: int | None = None  # that the baselines learned from, where those are fewer than the model's

    @property
    def methods(self) -> tuple[Predicted, ...]:
        """The model first."""
        return (self.model, *self.baselines)

    @property
    def n_rows(self) -> int:
        """Number of held-out rows."""
        return len(self.model.y)

    @property
    def best_baseline(self) -> Predicted | None:
        """The simple model that predicts best, where there is any."""
        return min(self.baselines, key=lambda each: each.nlpd, default=None)

    @property
    def is_useless(self) -> bool:
        """Does it predict no better than a constant?"""
        return any(each.name == "constant" and compare(self.model, each) >= 0 for each in self.baselines)

    def verdict(self) -> str:
        """Is the model of use, and can its intervals be trusted? Differences within two standard errors are none."""
        parts = [self._accuracy(), self._calibration()]
        if self.n_rows < _FEW:
            parts.append(f"With {self.n_rows} held-out row(s) all of this is rough.")
        return " ".join(part for part in parts if part)

    def coverage_by_fifth(self) -> list[float]:
        """Share of the rows in their 95 % interval, from the lowest fifth of the predictions to the highest."""
        inside = self.model.inside(0.95)
        return [float(inside[group].mean()) for group in self.model.groups(5)]

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "n_rows": self.n_rows,
            "n_outside": self.n_outside,
            "baseline_rows": self.baseline_rows,
            "scores": {each.name: scores(each) for each in self.methods},
            "coverage_95_by_fifth": self.coverage_by_fifth(),
            "verdict": self.verdict(),
        }

    def _accuracy(self) -> str:
        best = self.best_baseline
        if best is None:
            return ""
        if self.is_useless:
            return "Do not use it: it predicts held-out rows no better than a constant."
        verdict, points = compare(self.model, best), compare_points(self.model, best)
        apart = ", although its point predictions are worse" if points > 0 >= verdict else ""
        apart = ", although its point predictions are better" if points < 0 < verdict else apart
        figures = (
            f"(NLPD {self.model.nlpd:.3f} against {best.nlpd:.3f}, RMSE {self.model.rmse:.3g} against {best.rmse:.3g})"
        )
        if verdict < 0:
            return f"Good: it predicts held-out rows better than {_called(best)}{apart} {figures}."
        if verdict > 0:
            return f"Look further: {_called(best)} predicts held-out rows better{apart} {figures}."
        return f"Fair: it predicts held-out rows about as well as {_called(best)}{apart} {figures}."

    def _calibration(self) -> str:
        worst = [found for level in LEVELS if (found := calibration(self.model, level))]
        share = self.model.coverage(0.95)
        if not worst:
            return f"Its intervals can be trusted: the 95 % ones hold {100 * share:.1f} % of the rows."
        return f"Its intervals need care: {'; '.join(worst)}."


def compare(first: Predicted, second: Predicted) -> int:
    """-1 where the first predicts the same rows better by more than two standard errors of the mean difference of log
    densities, 1 where the second does, 0 where neither.
    """
    return _sign(first.log_density - second.log_density)


def compare_points(first: Predicted, second: Predicted) -> int:
    """The same by squared errors, which see the predictions but not their uncertainty."""
    return _sign(np.square(second.mean - second.y) - np.square(first.mean - first.y))


def _sign(gains: NDArray[np.float64]) -> int:
    error, gain = float(np.std(gains)) / np.sqrt(len(gains)), float(np.mean(gains))
    return 0 if abs(gain) <= 2.0 * error else -1 if gain > 0 else 1


def calibration(predicted: Predicted, level: float) -> str:
    """What is wrong with the intervals of this level; nothing where the share in them is within two and a half standard
    errors, because several levels are looked at, or within two in a hundred.
    """
    share = predicted.coverage(level)
    if abs(share - level) <= max(coverage_error(level, len(predicted.y), _ERRORS), 0.02):
        return ""
    kind = "narrow" if share < level else "wide"
    return f"the {100 * level:g} % ones hold {100 * share:.1f} % of the rows and are too {kind}"


def scores(predicted: Predicted) -> dict[str, float]:
    """RMSE, NLPD and coverages by name."""
    found = {"rmse": predicted.rmse, "nlpd": predicted.nlpd}
    return found | {f"coverage_{level:.0%}".rstrip("%"): predicted.coverage(level) for level in LEVELS}


def _called(predicted: Predicted) -> str:
    return f"a {predicted.name} model" if predicted.name in ("constant", "linear") else predicted.name
