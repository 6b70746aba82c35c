"""Displays in the manner of scikit-learn: ``from_estimator``, ``from_predictions``, ``plot``, ``ax_``, ``figure_``.

They draw what the report draws, from the same computations (``certgp.report``). A figure of their own belongs to no
global state of matplotlib; give ``ax`` to draw into one of yours. A notebook shows a display as its picture.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from certgp.errors import InvalidInputError
from certgp.estimators import GPRegressor
from certgp.estimators.held_out import predict_held_out
from certgp.estimators.table_gp import TableGP
from certgp.estimators.validation import load_rows
from certgp.guarantees import RankCurve
from certgp.plots.rank_curve import plot_rank_curve
from certgp.plots.style import BLACK, BLUE, RESOLUTION, SKY, new_figure, tidy
from certgp.report import Predicted
from certgp.report.predicted import AverageInterval, CalibrationCurve, ResidualGroups

_MOST_POINTS = 5_000  # more are thinned out evenly: they would only blacken the picture


class _Display(ABC):
    """A picture of predictions beside their targets."""

    ax_: Axes
    figure_: Figure

    def __init__(self, predicted: Predicted, target: str = "y") -> None:
        self.predicted, self.target = predicted, target

    @classmethod
    def from_estimator(
        cls, estimator: GPRegressor | TableGP, X: Any, y: ArrayLike | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Of a fitted estimator on rows X (n, D), y (n,), which it should not have learned from; of a TableGP on a
        frame.
        """
        model = estimator.fitted if isinstance(estimator, TableGP) else estimator
        if model.outputs_ is not None:
            raise InvalidInputError("a display shows one output; give one of outputs_ and its target")
        rows = estimator.encode_held_out(X, y) if isinstance(estimator, TableGP) else X
        predicted = predict_held_out(model, load_rows(model, rows, None if rows is not X else y, reset=False))
        return cls(predicted, model.target_name_ or "y").plot(ax)

    @classmethod
    def from_predictions(cls, y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Of Gaussian predictions of y (n,) with these means and standard deviations, of any model."""
        arrays = [np.asarray(each, dtype=np.float64).reshape(-1) for each in (y, mean, std)]
        if len({len(each) for each in arrays}) != 1:
            raise InvalidInputError(f"y, mean and std must have one length, found {[len(each) for each in arrays]}")
        return cls(Predicted.gaussian("predictions", *arrays)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, into ``ax`` where it is given; sets ``ax_`` and ``figure_``."""
        self.ax_ = new_figure(height=3.6).subplots() if ax is None else ax
        figure = self.ax_.get_figure(root=True)
        assert figure is not None
        self.figure_ = figure
        self._draw(self.ax_)
        return self

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """The picture itself."""

    def _repr_png_(self) -> bytes:
        return picture(self.figure_)


class PredictedActualDisplay(_Display):
    """Targets against predictions, with the average 95 % interval."""

    def _draw(self, ax: Axes) -> None:
        predicted = self.predicted
        some = slice(None, None, max(1, len(predicted.y) // _MOST_POINTS))
        usual = AverageInterval.of(predicted)
        ax.fill_between(
            usual.centre, usual.centre - usual.half, usual.centre + usual.half, color=SKY, alpha=0.3, lw=0, label="95 %"
        )
        ax.plot(predicted.mean[some], predicted.y[some], ".", color=BLUE, ms=3, alpha=0.5)
        ends = [float(predicted.mean.min()), float(predicted.mean.max())]
        ax.plot(ends, ends, color=BLACK, lw=1, ls="--")
        tidy(ax, "predicted and actual", f"predicted {self.target}", f"actual {self.target}")
        ax.legend(frameon=False)


class CalibrationDisplay(_Display):
    """Observed against nominal coverage of central intervals, with the band in which chance alone may move it."""

    def _draw(self, ax: Axes) -> None:
        found = CalibrationCurve.of(self.predicted)
        ax.fill_between(
            found.levels,
            found.levels - found.room,
            found.levels + found.room,
            color=SKY,
            alpha=0.3,
            lw=0,
            label="chance",
        )
        ax.plot([0, 1], [0, 1], color=BLACK, lw=1, ls="--")
        ax.plot(found.levels, found.shares, color=BLUE, lw=1.6, label=self.predicted.name)
        tidy(ax, "are the intervals honest?", "rows that should lie inside", "rows that do")
        ax.legend(frameon=False, loc="lower right")


class ResidualsDisplay(_Display):
    """Residuals along the prediction: means of groups with two standard errors, and the middle 80 % of them all."""

    def _draw(self, ax: Axes) -> None:
        found = ResidualGroups.of(self.predicted)
        ax.fill_between(found.at, found.low, found.high, color=SKY, alpha=0.3, lw=0, label="middle 80 %")
        ax.axhline(0.0, color=BLACK, lw=1, ls="--")
        ax.errorbar(found.at, found.bias, found.room, fmt="o", color=BLUE, ms=4, label="mean")
        tidy(ax, "errors along the prediction", f"predicted {self.target}", "actual minus predicted")
        ax.legend(frameon=False)


class RankCurveDisplay:
    """Evidence, proven distance and held-out score for every rank, in a panel each: ``axes_``; ``ax_`` is the first."""

    axes_: list[Axes]
    ax_: Axes
    figure_: Figure

    def __init__(self, curve: RankCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: GPRegressor | TableGP, X: Any = None, y: ArrayLike | None = None) -> Self:
        """Of a fitted low-rank estimator; with validation rows also their score, as the model learned it: of log(y)
        where that was asked for.
        """
        if isinstance(estimator, TableGP):
            held_out = None if X is None else estimator.encode_held_out(X, y)
            return cls.from_curve(estimator.fitted.rank_curve(held_out))
        return cls.from_curve(estimator.rank_curve(X, y))

    @classmethod
    def from_curve(cls, curve: RankCurve) -> Self:
        """Of what ``rank_curve`` returned."""
        return cls(curve).plot()

    def plot(self) -> Self:
        """Draw; sets ``axes_``, ``ax_`` and ``figure_``."""
        self.figure_ = plot_rank_curve(self.curve)
        self.axes_ = list(self.figure_.axes)
        self.ax_ = self.axes_[0]
        return self

    def _repr_png_(self) -> bytes:
        return picture(self.figure_)


def picture(figure: Figure) -> bytes:
    """A figure as PNG."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=RESOLUTION)
    return written.getvalue()
