"""Drawings of the deep table, the sensitivity table and the electric figure show every row."""

from __future__ import annotations

import pytest

from certgp.plots.style import save_figure
from certgp_paper.figures import deep_table, electric, sensitivity


def metric(name: str, ours: float, paper: float | None) -> dict:
    sd = None if paper is None else 0.01
    return {name: ours, f"{name}_sd": None, f"paper_{name}": paper, f"paper_{name}_sd": sd}


@pytest.fixture
def save(tmp_path):
    def write(figure):
        save_figure(figure, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 5_000
        return figure

    return write


def test_deep_table_has_a_panel_a_data_set_and_a_line_a_method(save):
    rows = [
        {"data": data, "method": method, "shared_splits": splits}
        | metric("nlpd", 99.0, paper)
        | metric("seconds", 99.0, paper)
        | {"nlpd_shared": 0.3 + i, "nlpd_shared_sd": None, "cpu_seconds_shared": 9.0 + i, "cpu_seconds_shared_sd": 1.0}
        for data, paper, splits in (("elevators", 0.4, "0 3"), ("concrete", None, "1"))
        for i, method in enumerate(("SVIGP", "DMGP", "DNN+S"))
    ]
    figure = save(deep_table.draw(rows))
    assert len(figure.axes) == 4
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["SVIGP", "DMGP", "DNN+S"]
    ours = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [1.3]]
    assert ours, "DMGP's own dot, over the splits that all methods have"
    both = [rows[1] | {"variant": "paper"}, rows[1] | {"variant": "certgp"}]
    labels = save(deep_table.draw(both)).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["DMGP, paper's recipe", "DMGP"]
    titles = [axes.get_title(loc="left") for axes in figure.axes[::2]]
    assert titles == ["elevators: means over splits 0, 3", "concrete: split 1"]
    assert any(list(line.get_xdata()) == [10.0] for line in figure.axes[1].lines), "CPU seconds"


def test_deep_table_without_shared_splits_shows_the_papers_figures_alone(save):
    row = {"data": "elevators", "shared_splits": ""} | metric("nlpd", 0.3, 0.4) | metric("seconds", 9.0, 50.0)
    row |= dict.fromkeys(("nlpd_shared", "nlpd_shared_sd", "cpu_seconds_shared", "cpu_seconds_shared_sd"))
    figure = save(deep_table.draw([row | {"method": method} for method in ("SGPR", "DMGP")]))
    assert figure.axes[0].get_title(loc="left") == "elevators: methods share no split"


def test_sensitivity_has_lines_over_the_rank_for_each_dimension(save):
    rows = [
        {"data": "elevators", "method": method, "d": d, "m": m, "cpu_seconds": 9.0 * m, "note": note}
        | metric("nlpd", 0.3 + 0.1 * d + 0.01 * m, 0.4)
        | metric("seconds", 10.0 * m, 40.0 if d < 3 else None)
        for method, note in (("DMGP", ""), ("DFGP", "the public test file only"))
        for d in (1, 2, 3)
        for m in (4, 2)
    ]
    figure = save(sensitivity.draw(rows))
    assert len(figure.axes) == 4
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["elevators, DMGP", "elevators, DFGP *"]
    assert list(map(float, figure.axes[2].lines[0].get_ydata())) == [18.0, 36.0], "CPU seconds"
    first = figure.axes[0]
    assert list(map(float, first.lines[0].get_ydata())) == pytest.approx([0.42, 0.44])
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"d = 1", "d = 3", "paper, d = 2"}


def test_electric_has_lines_for_ours_and_dashes_for_baselines(save):
    rows = [
        {"data": "3droad", "method": "DFGP", "rows": n, "baseline": False, "nlpd": 1.0 / n, "cpu_seconds": n * 0.1}
        for n in (400, 100)
    ] + [{"data": "3droad", "method": "SVIGP", "rows": 400, "baseline": True, "nlpd": 0.5, "cpu_seconds": 50.0}]
    figure = save(electric.draw(rows))
    left = figure.axes[0]
    assert list(left.lines[0].get_xdata()) == [100, 400]
    assert [line.get_linestyle() for line in left.lines] == ["-", "--"]
    assert "SVIGP, all rows" in {text.get_text() for text in figure.legends[0].get_texts()}


def test_electric_has_two_panels_for_each_data_set(save):
    row = {"method": "DFGP", "baseline": False, "nlpd": 0.5, "cpu_seconds": 3.0}
    figure = save(electric.draw([row | {"data": data, "rows": n} for data in ("3droad", "protein") for n in (50, 90)]))
    titles = ["3droad: NLPD", "3droad: training time", "protein: NLPD", "protein: training time"]
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == titles


def test_electric_shows_means_over_shared_splits_with_bars(save):
    row = {"data": "3droad", "method": "DFGP", "baseline": False, "nlpd": 9.0, "cpu_seconds": 9.0}
    means = {"nlpd_shared": 0.5, "cpu_seconds_shared": 3.0}
    bars = {"nlpd_shared_sd": 0.1, "cpu_seconds_shared_sd": 0.2}
    figure = save(electric.draw([row | means | bars | {"rows": n} for n in (100, 400)]))
    assert list(figure.axes[0].lines[0].get_ydata()) == [0.5, 0.5]
    assert len(figure.axes[0].collections) == 1  # the bars
    alone = save(electric.draw([row | means | {"rows": n} for n in (100, 400)]))
    assert not alone.axes[0].collections
