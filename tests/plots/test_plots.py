"""Figures have the parts a reader needs, touch no global state, and are written whole."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from certgp.plots import plot_curves, plot_history, plot_surface, save_figure
from certgp.training import History, Iteration

GRID = np.linspace(-2.0, 2.0, 21)
POINTS = (GRID[::5], np.sin(GRID[::5]), GRID, np.sin(GRID) + 0.1)
ANSWER = (np.sin(GRID), np.sin(GRID) - 0.5, np.sin(GRID) + 0.5)


def history() -> History:
    return History(tuple(Iteration(i, 1.0 / i, 0.1, 0.5 * i, 10) for i in range(1, 6)))


def test_curves_have_a_panel_per_model_and_one_legend():
    figure = plot_curves(*POINTS, {"first: RMSE 0.125": ANSWER, "second": ANSWER})
    assert len(figure.axes) == 2
    assert figure.axes[0].get_title(loc="left") == "first: RMSE 0.125"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "95% band of f",
        "truth f",
        "mean",
        "5 points",
    ]
    assert figure.axes[1].get_xlabel() == "x"
    assert figure.axes[0].get_ylabel() == "y"


def test_one_curve_is_enough():
    assert len(plot_curves(*POINTS, {"only": ANSWER}).axes) == 1


def test_a_band_that_explodes_does_not_squeeze_the_curve():
    wild = (np.sin(GRID), np.full(21, -1e6), np.full(21, 1e6))
    low, high = plot_curves(*POINTS, {"wild": wild}).axes[0].get_ylim()
    assert -3 < low < high < 3


def test_surface_shares_one_scale_between_truth_and_mean():
    truth = np.outer(GRID, GRID)
    figure = plot_surface(GRID, truth, truth + 0.01, np.full((21, 21), 0.02), 12345)
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
