"""The drawing of the linear tables: a panel per data set, every figure of the rows, and a legend that names them."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from certgp.plots.style import save_figure
from certgp_paper.figures.linear_table import draw


def row(data, variant, method, rank, mean, paper):
    return {
        "metric": "nlpd",
        "data": data,
        "variant": variant,
        "method": method,
        "rank": rank,
        "mean": mean,
        "paper_mean": paper,
    }


ROWS = [
    *(row("elevators", "certgp", "MGP", rank, 0.5 - rank / 1000, 0.6) for rank in (6, 10, 50)),
    row("elevators", "paper", "FGP", 6, 0.8, 1.1),
    row("yacht", "certgp", "SGPR", 6, 0.1, None),
]


def test_panels_lines_and_legend(tmp_path):
    figure = draw(ROWS)
    visible = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in visible] == ["elevators", "yacht"]
    assert all(axes.get_xlabel() == "rank" and axes.get_ylabel() == "NLPD" for axes in visible)
    drawn = {tuple(line.get_ydata()) for line in visible[0].lines}
    assert {(0.494, 0.49, 0.45), (0.6, 0.6, 0.6), (0.8,), (1.1,)} <= drawn
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    ours = ["certgp, defaults", "paper's text, run here"]
    assert texts == ["SGPR", "FGP", "MGP", *ours, "printed in the paper", "beyond the panel: see its corner"]
    save_figure(figure, tmp_path / "table.png")
    assert (tmp_path / "table.png").stat().st_size > 5_000


def test_labels_of_ranks_do_not_run_into_each_other():
    figure = draw([row("elevators", "certgp", "MGP", rank, 0.5, None) for rank in (6, 10, 50, 100, 200, 300)])
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["6", "10", "50", "100", "", "300"]


def test_the_papers_line_is_whole_where_ours_is_missing_and_other_data_are_marked():
    rows = [row("bike", "certgp", "MGP", rank, 0.5 if rank == 6 else None, 0.6) | {"note": "x"} for rank in (6, 10, 50)]
    figure = draw(rows)
    assert figure.axes[0].get_title(loc="left") == "bike *"
    assert "data differ from the paper's" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert {(0.6, 0.6, 0.6), (0.5,)} <= {tuple(line.get_ydata()) for line in figure.axes[0].lines}


def test_values_far_above_the_others_are_clipped_and_marked():
    rows = [row("elevators", "certgp", "MGP", rank, 0.5 - rank / 1000, 0.5) for rank in (6, 10, 50, 100)]
    rows.append(row("elevators", "certgp", "FGP", 6, 9.5, 8.5))
    figure = draw(rows)
    axes = figure.axes[0]
    assert axes.get_ylim()[1] < 0.6
    assert [text.get_text() for text in axes.texts] == ["r = 6: 8.50, 9.50"]
    assert any("beyond the panel" in text.get_text() for text in figure.legends[0].get_texts())
