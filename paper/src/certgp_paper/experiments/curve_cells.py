"""Cells and rows that both curve figures share: a model at a rank, fitted to one point set.

Every cell also fits the exact GP to its points, so that each figure is a comparison on the same points. The Fourier GP
is fitted with several draws of frequencies; a point set has draws of its own. Point set 0 is the one of the figures,
and only its cells keep the curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.curve_problem import (
    EXACT,
    FOURIER,
    GRID,
    LOW_RANK,
    OWN,
    PAPER,
    POINTS,
    Array,
    Curve,
    CurveModel,
    curve_models,
    draw_points,
    fit_curve,
    true_curve,
)
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.fresh_sets import FRESH_SETS

POINT_SETS, QUICK_POINT_SETS = 10, 2
DRAWS, QUICK_DRAWS = 20, 3
_THINNING = 4  # of the grid in tables: 16 points to a wave of the cosine
_FIRST_STATE = 1_000  # of the models: far from the seeds of the points, whose random numbers must be others
_DECIMALS = 6  # more than a drawing or a table shows
_FIGURE_SET = 0
_DISTANCES = ("distance_mean", "distance_lower", "distance_upper")
_SCORES = ("rmse", "rmse_inputs", "coverage", "width", *_DISTANCES)
_EXACT_SCORES = ("exact_rmse", "exact_rmse_inputs", "exact_width")
_LABELS = ("variant", "features", "rank", "variance")


def curve_cell(family: str, variant: str, features: str, rank: int, seed: int, quick: bool) -> Cell:
    """A cell of one of the figures."""
    settings: dict[str, Any] = {"variant": variant, "features": features, "rank": rank, "points": POINTS, "seed": seed}
    if features == FOURIER:
        settings["draws"] = QUICK_DRAWS if quick else DRAWS
    return Cell(family, settings)


def compute_curve_cell(settings: Settings) -> Values:
    """Fit the models of a cell, and the exact GP beside them."""
    variant, features = str(settings["variant"]), str(settings["features"])
    rank, points, seed = (whole_number(settings, key) for key in ("rank", "points", "seed"))
    draws = whole_number(settings, "draws") if features == FOURIER else 1
    x, y = draw_points(points, seed)
    exact = fit_curve(CurveModel(PAPER, EXACT, points, LOW_RANK), x, y)
    values: dict[str, Any] = {
        "exact_rmse": round(exact.rmse, _DECIMALS),
        "exact_rmse_inputs": round(exact.rmse_inputs, _DECIMALS),
        "exact_width": round(exact.width, _DECIMALS),
        "answers": [
            _answer(
                model, draw, fit_curve(model, x, y, _FIRST_STATE + DRAWS * seed + draw), exact, keep=seed == _FIGURE_SET
            )
            for model in curve_models(variant, features, rank)
            for draw in range(draws)
        ],
    }
    if seed == _FIGURE_SET:
        values |= {"x": x.tolist(), "y": y.tolist(), "grid": _thin(GRID), "truth": _thin(true_curve(GRID))}
    return values


def _answer(model: CurveModel, draw: int, curve: Curve, exact: Curve, keep: bool) -> dict[str, Any]:
    """Scores of one fit; the curve itself of the first draw for the figure's points."""
    scores = {"rmse": curve.rmse, "rmse_inputs": curve.rmse_inputs, "coverage": curve.coverage, "width": curve.width}
    scores = {key: round(value, _DECIMALS) for key, value in (scores | curve.distances(exact)).items()}
    answer = {"model": model.name, "variance": model.variance, "draw": draw, **scores}
    if keep and draw == 0:
        answer |= {"mean": _thin(curve.mean), "lower": _thin(curve.lower), "upper": _thin(curve.upper)}
    return answer


def _thin(values: Array) -> list[float]:
    """Every fourth value."""
    return [round(float(value), _DECIMALS) for value in values[::_THINNING]]


def curve_rows(finished: Sequence[Finished]) -> list[Row]:
    """First each model's scores over all point sets, then those of each point set, then points and answers of the
    figure's.

    Kinds: "scores" means over point sets, and over draws inside each; "set" one point set; "point"; "curve". Means are
    over the first point sets, which all models share.
    """
    sets = [row for cell in finished for row in _set_rows(cell)]
    shown = [cell for cell in finished if "grid" in cell.result]
    points = [
        {"kind": "point", "x": x, "truth": y} for cell in shown[:1] for x, y in zip(cell["x"], cell["y"], strict=True)
    ]
    shared = [row for row in sets if row["seed"] not in FRESH_SETS]
    return [*_mean_rows(shared), *sets, *points, *(row for cell in shown for row in _grid_rows(cell))]


def _set_rows(cell: Finished) -> list[Row]:
    """A row for each model of a cell: means over draws of frequencies, and how many of these beat the exact GP."""
    rows: list[Row] = []
    for name, answers in _by_model(cell):
        variance = answers[0]["variance"]
        row = {"kind": "set", "model": name, **_labels(cell, variance), "seed": cell["seed"], "draws": len(answers)}
        row |= {key: mean(answer[key] for answer in answers) for key in _SCORES}
        row |= {key: cell[key] for key in _EXACT_SCORES}
        row["nearer"] = sum(answer["rmse"] < cell["exact_rmse"] for answer in answers)
        row["narrower"] = sum(answer["width"] < cell["exact_width"] for answer in answers)
        rows.append(row)
    return rows


def _by_model(cell: Finished) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for name, answers in groupby(cell["answers"], key=lambda answer: str(answer["model"])):
        yield name, list(answers)


def _labels(cell: Finished, variance: str) -> dict[str, Any]:
    known = {"variant": cell["variant"], "features": cell["features"], "rank": cell["rank"], "variance": variance}
    return known if cell["features"] != EXACT else known | {"variant": None, "variance": None}


def _mean_rows(sets: Sequence[Row]) -> list[Row]:
    rows: list[Row] = []
    for name in dict.fromkeys(row["model"] for row in sets):
        own = [row for row in sets if row["model"] == name]
        labels = {key: own[0][key] for key in _LABELS}
        counts = {"point_sets": len(own), "draws": own[0]["draws"]}
        rows.append(
            {
                "kind": "scores",
                "model": name,
                **labels,
                **counts,
                **{key: mean(row[key] for row in own) for key in _SCORES},
            }
        )
    return rows


def _grid_rows(cell: Finished) -> list[Row]:
    """The answers along the grid."""
    rows: list[Row] = []
    for answer in cell["answers"]:
        if "mean" not in answer:
            continue
        rows += [
            {
                "kind": "curve",
                "model": answer["model"],
                "x": x,
                "truth": truth,
                "mean": middle,
                "lower": lower,
                "upper": upper,
            }
            for x, truth, middle, lower, upper in zip(
                cell["grid"], cell["truth"], answer["mean"], answer["lower"], answer["upper"], strict=True
            )
        ]
    return rows


def exact_cells(family: str, seeds: range) -> list[Cell]:
    """The exact GP on each point set, which has rank N."""
    return [curve_cell(family, OWN, EXACT, POINTS, seed, quick=False) for seed in seeds]
