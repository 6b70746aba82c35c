"""Drawings of the paper's figures, from small made-up rows: axes are labelled, lines are told apart, gaps are drawn."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import made_up_rows as made_up
from certgp.plots.style import save_figure
from certgp_paper.figures import curves, figure1, figure2, predictive, ranks


def rank_row(kernel, method, D, rank, **certificates):
    promised = dict.fromkeys(("a_priori_paper", "a_priori_sharp", "trace_paper", "trace_sharp", "reference"))
    more = None if rank is not None else 200
    return (
        {"kernel": kernel, "method": method, "D": D, "N": 100, "rank": rank, "more_than": more}
        | promised
        | certificates
    )


def rank_rows():
    mercer = {"a_priori_paper": 9, "a_priori_sharp": 8, "trace_paper": 7, "trace_sharp": 6, "reference": 5}
    return [
        *(rank_row("gaussian", "mercer", D, 4 + D, **mercer) for D in (1, 2)),
        *(rank_row("gaussian", "fourier", D, rank) for D in (1, 2) for rank in (8, 10, 16)),
        rank_row("matern12", "fourier", 1, 60),
        rank_row("matern12", "fourier", 2, None),
    ]


def kl_rows():
    base = {"N": 100, "kl_sd": None, "lower": None, "upper": None}
    return [
        base
        | {"kernel": kernel, "method": method, "rank": r, "draws": 10, "kl": 1 / r, "kl_first": 1 / r}
        | {"kl_least": 0.5 / r, "kl_largest": 2 / r, "trace_paper": 9 / r, "trace_sharp": 4 / r}
        | ({"lower": 0.9 / r, "upper": 1.1 / r} if kernel == "gaussian" or method == "fourier" else {})
        for kernel, method in [
            ("gaussian", "mercer"),
            ("gaussian", "fourier"),
            ("matern12", "eigendecomposition"),
            ("matern12", "fourier"),
        ]
        for r in (2, 4, 8)
    ]


def curve_rows(models):
    """Rows of models, given as variant, features, rank and variance."""
    grid = [-1.0, 0.0, 1.0]
    named = {f"{'-'.join(map(str, each))}": each for each in models}
    labels = ("variant", "features", "rank", "variance")
    scores = [
        {"kind": "scores", "model": name, "rmse": 0.125, "point_sets": 10} | dict(zip(labels, each, strict=True))
        for name, each in named.items()
    ]
    points = [{"kind": "point", "x": 0.5, "truth": 0.2}]
    answers = [
        {"kind": "curve", "model": name, "x": x, "truth": x, "mean": x, "lower": x - 1e6, "upper": x + 1.0}
        for name in named
        for x in grid
    ]
    return [*scores, *points, *answers]


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def labelled(figure: Figure) -> None:
    for axes in figure.axes:
        assert axes.get_title(loc="left")
    assert any(axes.get_xlabel() for axes in figure.axes)
    assert any(axes.get_ylabel() for axes in figure.axes)


def test_figure1_shows_ranks_the_full_rank_and_what_certificates_promise():
    figure = figure1.draw(rank_rows())
    labelled(figure)
    left, right = figure.axes
    assert left.get_yscale() == right.get_yscale() == "log"
    assert "full rank, N = 100" in legend(left)
    assert "Matérn 1/2, Fourier: more than 2 N" in legend(left)
    assert len(legend(right)) == 6
    lines = [line for line in right.lines if str(line.get_label()).startswith("lowest rank")]
    assert list(lines[0].get_ydata()) == [5, 6]


def rate_rows():
    kinds = [("gaussian", 1), ("gaussian", 2), ("matern32", 1), ("matern52", 1)]
    ranks = {"theorem3": 4, "theorem3_sharp": 3}
    return [
        {"kernel": kernel, "method": "rates", "D": D, "rows": n, **ranks, "burt": None if n == 1000 else 7}
        for kernel, D in kinds
        for n in (100, 1000)
    ]


def test_figure1_compares_theorems_at_growing_n_where_these_rows_are():
    figure = figure1.draw(rank_rows() + rate_rows())
    labelled(figure)
    assert len(figure.axes) == 4
    for axes in figure.axes[2:]:
        assert axes.get_xscale() == axes.get_yscale() == "log"
        assert legend(axes) == ["Burt et al., k-DPP", "theorem 3, paper", "theorem 3, sharpened"]
        assert [len(line.get_xdata()) for line in axes.lines] == [1, 2, 2] * 2  # unknown ranks are left out
    assert len(figure1.draw(rate_rows()).axes) == 4


def test_figure1_draws_the_largest_n_only():
    other = [row | {"N": 50, "rank": 999} for row in rank_rows()]
    left = figure1.draw(rank_rows() + other).axes[0]
    assert left.get_ylim()[1] < 900


def test_figure1_says_over_how_many_seeds_its_medians_are():
    rows = [
        row | {"seed": seed} for row in rank_rows() for seed in range(3) if seed == 0 or row["kernel"] == "gaussian"
    ]
    left, right = figure1.draw(rows).axes
    assert "Gaussian, Mercer (3 seeds)" in legend(left)
    assert "Matérn 1/2, Fourier (1 seed)" in legend(left)
    assert "lowest rank (3 seeds)" in legend(right)


def test_figure2_has_fourier_on_the_left_and_certificates_on_both_sides():
    figure = figure2.draw(kl_rows())
    labelled(figure)
    left, right = figure.axes
    assert left.get_title(loc="left").startswith("Fourier")
    assert "certificate R1 of that draw" in legend(left)
    assert sum("mean of 10" in text for text in legend(left)) == 2
    assert "certificate R1, upper end" in legend(right)
    assert len(set(legend(right))) == len(legend(right)) == 5


def test_predictions_stand_below_their_bounds_and_what_is_rounding_is_left_out():
    tiny = [row | {"kl_median": 1e-9, "D": 2} for row in made_up.predictive()]
    figure = predictive.draw(made_up.predictive() + tiny)
    labelled(figure)
    for axes, curves_drawn in zip(figure.axes, (1, 1, 2), strict=True):
        assert axes.get_xscale() == axes.get_yscale() == "log"
        dots = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert len(dots) == 10
        assert len(axes.lines) == 10 + curves_drawn
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["Gaussian, Mercer", "Gaussian, Fourier", "D = 1", "bound; ln t", "-ln b"]


def test_curves_have_the_papers_models_beside_certgps_and_keep_their_scale_when_a_band_explodes():
    both = [("paper", "Mercer", 34, "dtc"), ("paper", "Mercer", 34, "lowrank"), ("certgp", "Mercer", 34, "dtc")]
    figure = curves.draw(curve_rows([(None, "exact", 25, None), *both]))
    labelled(figure)
    assert len(figure.axes) == 4
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == titles[1] == "None-exact-25-None: mean RMSE 0.125"
    assert titles[2].startswith("paper's paper-Mercer")
    assert titles[3].startswith("certgp's certgp-Mercer")
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[1] == "low-rank variance"
    assert texts[-1] == "1 points"
    assert len(figure.axes[2].collections) == 2  # both bands
    assert len(figure.axes[3].collections) == 1
    assert figure.axes[0].get_ylim()[0] > -3


def test_ranks_have_a_line_per_rank_and_a_column_per_model():
    kinds = [(v, f, r, "lowrank") for r in (4, 10, 24) for v in ("paper", "certgp") for f in ("Mercer", "Fourier")]
    figure = ranks.draw(curve_rows(kinds))
    labelled(figure)
    assert len(figure.axes) == 12
    assert figure.axes[0].get_title(loc="left").startswith("paper-Mercer-4")
    assert figure.axes[11].get_title(loc="left").startswith("certgp-Fourier-24")


def test_a_palette_makes_line_drawings_smaller(tmp_path):
    figure = figure2.draw(kl_rows())
    save_figure(figure, tmp_path / "full.png")
    save_figure(figure, tmp_path / "small.png", colours=64)
    assert (tmp_path / "small.png").stat().st_size < 0.7 * (tmp_path / "full.png").stat().st_size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.png", "small.png"]
