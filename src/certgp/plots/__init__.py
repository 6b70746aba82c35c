"""Pictures of results; the only room that knows matplotlib."""

from certgp.plots.demo import plot_map, plot_surface
from certgp.plots.displays import CalibrationDisplay, PredictedActualDisplay, RankCurveDisplay, ResidualsDisplay
from certgp.plots.history import plot_history
from certgp.plots.rank_curve import plot_rank_curve
from certgp.plots.style import save_figure

__all__ = [
    "CalibrationDisplay",
    "PredictedActualDisplay",
    "RankCurveDisplay",
    "ResidualsDisplay",
    "plot_history",
    "plot_map",
    "plot_rank_curve",
    "plot_surface",
    "save_figure",
]
