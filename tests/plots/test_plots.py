"""Figures have the parts a reader needs, touch no global state, and are written whole."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from certgp.plots import plot_curves, plot_history, plot_surface, save_figure
from certgp.training import History, Iteration

GRID = np.linspace(-2.0, 2.0, 21)


@dataclass(frozen=True, eq=False)
class AnyCurve:
    name: str
    mean: np.ndarray = field(default_factory=lambda: np.sin(GRID))
    lower: np.ndarray = field(default_factory=lambda: np.sin(GRID) - 0.5)
    upper: np.ndarray = field(default_factory=lambda: np.sin(GRID) + 0.5)
    rmse_inputs: float = 0.125


@dataclass(frozen=True, eq=False)
class AnyCurves:
    curves: tuple[AnyCurve, ...]
    x: np.ndarray = field(default_factory=lambda: GRID[::5])
    y: np.ndarray = field(default_factory=lambda: np.sin(GRID[::5]))
    grid: np.ndarray = field(default_factory=lambda: GRID)
    truth: np.ndarray = field(default_factory=lambda: np.sin(GRID) + 0.1)


@dataclass(frozen=True, eq=False)
class AnySurface:
    axis: np.ndarray = field(default_factory=lambda: GRID)
    truth: np.ndarray = field(default_factory=lambda: np.outer(GRID, GRID))
    mean: np.ndarray = field(default_factory=lambda: np.outer(GRID, GRID) + 0.01)
    std: np.ndarray = field(default_factory=lambda: np.full((21, 21), 0.02))
    n_train: int = 12345


def history() -> History:
    return History(tuple(Iteration(i, 1.0 / i, 0.1, 0.5 * i, 10) for i in range(1, 6)))


def test_curves_have_a_panel_per_model_and_one_legend():
    figure = plot_curves(AnyCurves((AnyCurve("first"), AnyCurve("second"))))
    assert len(figure.axes) == 2
    assert figure.axes[0].get_title(loc="left").startswith("first: RMSE 0.125")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "95% band of f",
        "truth f",
        "mean",
        "5 points",
    ]
    assert figure.axes[1].get_xlabel() == "x"
    assert figure.axes[0].get_ylabel() == "y"


def test_one_curve_is_enough():
    assert len(plot_curves(AnyCurves((AnyCurve("only"),))).axes) == 1


def test_a_band_that_explodes_does_not_squeeze_the_curve():
    wild = AnyCurve("wild", lower=np.full(21, -1e6), upper=np.full(21, 1e6))
    low, high = plot_curves(AnyCurves((wild,))).axes[0].get_ylim()
    assert -3 < low < high < 3


def test_surface_shares_one_scale_between_truth_and_mean():
    figure = plot_surface(AnySurface())
    panels = figure.axes[:4]
    titles = [panel.get_title(loc="left") for panel in panels]
    assert titles == ["truth", "mean from 12,345 rows", "error |mean - truth|", "standard deviation of the surface"]
    limits = [panel.collections[0].get_clim() for panel in panels]
    assert limits[0] == limits[1]
    assert limits[2] == limits[3]
    assert panels[2].get_xlabel() == "first input"
    assert panels[0].get_ylabel() == "second input"


def test_history_is_drawn_by_iteration_and_by_time():
    left, right = plot_history(history()).axes
    np.testing.assert_array_equal(left.lines[0].get_xdata(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(right.lines[0].get_xdata(), history().seconds)
    assert left.get_ylabel() == "objective per row"


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_figures_are_written_whole(tmp_path, ending):
    save_figure(plot_history(history()), tmp_path / f"h{ending}")
    assert [p.name for p in tmp_path.iterdir()] == [f"h{ending}"]
    assert (tmp_path / f"h{ending}").stat().st_size > 1000


def test_a_failed_save_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="not supported"):
        save_figure(plot_history(history()), tmp_path / "h.xyz")
    assert list(tmp_path.iterdir()) == []


def test_no_display_and_no_pyplot_are_needed():
    code = "import sys, certgp.plots\nassert 'matplotlib.pyplot' not in sys.modules\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
