"""Figures have the parts a reader needs, touch no global state, and are written whole."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from certgp.plots import plot_history, plot_map, plot_surface, save_figure
from certgp.training import History, Iteration

GRID = np.linspace(-2.0, 2.0, 21)


def history() -> History:
    return History(tuple(Iteration(i, 1.0 / i, 0.1, 0.5 * i, 10) for i in range(1, 6)))


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


def test_a_map_shows_prediction_uncertainty_and_places():
    longitude, latitude = np.arange(-180.0, 180.0, 10.0), np.arange(-60.0, 61.0, 10.0)
    mean = np.add.outer(latitude, longitude)
    figure = plot_map(longitude, latitude, mean, np.abs(mean), np.zeros((5, 2)), "rain")
    upper, lower = figure.axes[:2]
    assert upper.get_title(loc="left") == "prediction"
    assert lower.get_title(loc="left") == "standard deviation, and the 5 places learned from"
    assert lower.get_xlabel() == "longitude"
    assert len(lower.lines[0].get_xdata()) == 5
    assert figure.axes[2].get_ylabel() == "rain"


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
