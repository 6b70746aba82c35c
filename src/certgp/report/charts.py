"""The charts of a report. Each is a figure: a title, a drawing, how to read it, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from certgp.markup import Markup, tag
from certgp.report.axes import ends
from certgp.report.predicted import AverageInterval, CalibrationCurve, Predicted, ResidualGroups, coverage_error
from certgp.report.svg import Chart

Array = NDArray[np.float64]
_CELLS = 26  # per axis
_GROUPS = 10  # of rows, by their prediction
_TAIL = 0.002  # of the rows on either side, which would use up the scale of the others


def section(id_: str, title: str, *children: str | None) -> Markup:
    """A part of the page that links can name."""
    return tag("section", tag("h2", title), *children, id=id_)


def figure(title: str, drawing: Markup, reading: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A drawing with its title, a sentence on how to read it, and its numbers folded away."""
    numbers = tag("details", tag("summary", f"Numbers of “{title}”"), table(header, rows))
    return tag("figure", tag("h3", title), drawing, tag("figcaption", reading), numbers)


def table(header: Sequence[str], rows: Sequence[Sequence[str | Markup]], class_: str | None = None) -> Markup:
    """Rows under a header; the first column names them. A wide one scrolls inside its own frame."""
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))
    lines = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    whole = tag("table", head, tag("tbody", *lines), class_=class_)
    return tag(
        "div", whole, class_="scroll", tabindex="0", role="region", aria_label=f"table of {header[0] or 'values'}"
    )


def predicted_and_actual(model: Predicted, target: str) -> Markup:
    """Counts of rows by prediction and target, with the average 95 % interval."""
    low, high = np.quantile(np.concatenate([model.mean, model.y]), [_TAIL, 1.0 - _TAIL])
    limits = ends(np.array([low, high]))
    chart = Chart(limits, limits, (f"predicted {target}", f"actual {target}"), height=340.0)
    edges = np.linspace(*limits, _CELLS + 1)
    inside = np.clip(model.mean, *limits), np.clip(model.y, *limits)
    counts, _, _ = np.histogram2d(*inside, bins=(edges, edges))
    groups = model.groups(_GROUPS)
    usual = AverageInterval.of(model, _GROUPS)
    centre, half = usual.centre, usual.half
    chart.band(centre.tolist(), (centre - half).tolist(), (centre + half).tolist(), "band")
    for i, j in zip(*np.nonzero(counts), strict=True):
        share = 0.25 + 0.75 * np.log1p(counts[i, j]) / np.log1p(counts.max())
        chart.box((edges[i], edges[i + 1]), (edges[j], edges[j + 1]), "cell", float(share))
    chart.line([(limits[0], limits[0]), (limits[1], limits[1])], "ideal")
    drawing = chart.draw("Predicted and actual", f"Counts of {len(model.y)} held-out rows around the diagonal")
    rows = [
        [
            f"{centre[k]:.4g}",
            f"{model.y[g].mean():.4g}",
            f"{centre[k] - half[k]:.4g} to {centre[k] + half[k]:.4g}",
            f"{len(g)}",
        ]
        for k, g in enumerate(groups)
    ]
    reading = (
        "Stronger colour means more held-out rows. On the dashed line prediction and truth agree; the band is the "
        "average 95 % interval, which should hold 95 of 100 rows."
    )
    return figure(
        "Predicted and actual", drawing, reading, ["predicted", "actual, mean", "95 % interval", "rows"], rows
    )


def calibration(methods: Sequence[Predicted]) -> Markup:
    """Observed against nominal coverage, with the band in which chance alone may move it."""
    curves = {each.name: CalibrationCurve.of(each) for each in methods}
    levels, room = curves[methods[0].name].levels, curves[methods[0].name].room
    chart = Chart((0.0, 100.0), (0.0, 100.0), ("rows that should lie inside, %", "rows that do, %"), height=340.0)
    chart.band((100 * levels).tolist(), (100 * (levels - room)).tolist(), (100 * (levels + room)).tolist(), "band")
    chart.line([(0.0, 0.0), (100.0, 100.0)], "ideal")
    shares = {name: curve.shares for name, curve in curves.items()}
    for k, (name, share) in enumerate(shares.items()):
        chart.line(zip(100 * levels, 100 * share, strict=True), f"curve c{k}")
        chart.add(tag("line", x1=chart.x(4), x2=chart.x(12), y1=26.0 + 18 * k, y2=26.0 + 18 * k, class_=f"curve c{k}"))
        chart.add(tag("text", name, x=chart.x(14), y=30.0 + 18 * k, class_="note"))
    drawing = chart.draw("Are the intervals honest?", "Observed against nominal coverage of central intervals")
    rows = [
        [f"{100 * level:.0f} %", *(f"{100 * share[i]:.1f} %" for share in shares.values())]
        for i, level in enumerate(levels)
    ]
    reading = (
        "A curve on the dashed line is honest, below it the intervals are too narrow, above it too wide. Inside the "
        "band chance alone explains the difference."
    )
    return figure("Are the intervals honest?", drawing, reading, ["interval", *shares], rows)


def standard_residuals(model: Predicted) -> Markup:
    """Histogram of residuals in predictive standard deviations, beside the normal law."""
    edges = np.linspace(-4.0, 4.0, 33)
    counts, _ = np.histogram(np.clip(model.z, -3.999, 3.999), edges)
    share = counts / (len(model.z) * (edges[1] - edges[0]))
    xs = np.linspace(-4.0, 4.0, 81)
    normal = np.exp(-0.5 * xs**2) / np.sqrt(2.0 * np.pi)
    top = max(float(share.max()), 0.42) * 1.06
    chart = Chart((-4.0, 4.0), (0.0, top), ("error / predicted standard deviation", "density"))
    for k in np.flatnonzero(counts):
        chart.box((edges[k], edges[k + 1]), (0.0, float(share[k])), "bar")
    chart.line(zip(xs, normal, strict=True), "ideal")
    drawing = chart.draw("Errors, in predicted standard deviations", "Histogram of errors of held-out rows")
    rows = [[f"{edges[k]:.2f} to {edges[k + 1]:.2f}", f"{counts[k]}"] for k in range(len(counts))]
    reading = (
        "Bars should follow the dashed bell: narrower means too careful, wider too sure, shifted means biased. "
        "Errors beyond 4 are counted in the outermost bars."
    )
    return figure("Errors, in predicted standard deviations", drawing, reading, ["error", "rows"], rows)


def residuals_by_prediction(model: Predicted, target: str) -> Markup:
    """Mean and spread of the residuals in tenths of the prediction."""
    found = ResidualGroups.of(model, _GROUPS)
    at, bias, room, low, middle, high = found.at, found.bias, found.room, found.low, found.middle, found.high
    chart = Chart(
        ends(at), ends(low, high, bias - room, bias + room), (f"predicted {target}", "actual minus predicted")
    )
    chart.band(at.tolist(), low.tolist(), high.tolist(), "band")
    chart.line([(chart.x.low, 0.0), (chart.x.high, 0.0)], "ideal")
    for x, centre, width in zip(at, bias, room, strict=True):
        chart.whisker(x, centre - width, centre + width, "whisker")
        chart.dot(x, centre, "dot")
    drawing = chart.draw(
        "Errors along the prediction", "Mean error with two standard errors in tenths of the prediction"
    )
    rows = [
        [f"{at[k]:.4g}", f"{bias[k]:.3g}", f"{low[k]:.3g}", f"{middle[k]:.3g}", f"{high[k]:.3g}"]
        for k in range(len(at))
    ]
    reading = (
        "Points are mean errors of groups of rows with two standard errors; they should touch the dashed line. The "
        "band holds the middle 80 % of the errors."
    )
    return figure(
        "Errors along the prediction", drawing, reading, ["predicted", "mean", "10 %", "median", "90 %"], rows
    )


def coverage_by_prediction(model: Predicted, target: str) -> Markup:
    """Coverage of the 80 % and 95 % intervals in fifths of the prediction."""
    groups = model.groups(5)
    at = np.arange(1, len(groups) + 1, dtype=np.float64)
    shown = {level: np.array([100 * model.inside(level)[g].mean() for g in groups]) for level in (0.8, 0.95)}
    few = min(len(g) for g in groups)
    low = min(60.0, *(float(share.min()) - 100 * coverage_error(level, few) for level, share in shown.items()))
    chart = Chart(
        (0.5, len(groups) + 0.5), (max(low, 0.0), 101.0), ("fifth of the rows, by prediction", "rows inside, %")
    )
    for k, (level, share) in enumerate(shown.items()):
        chart.line([(chart.x.low, 100 * level), (chart.x.high, 100 * level)], "ideal")
        for x, value, g in zip(at + (0.16 * k - 0.08), share, groups, strict=True):
            room = 100 * coverage_error(level, len(g))
            chart.whisker(x, max(value - room, chart.y.low), min(value + room, 100.0), f"whisker c{k}")
            chart.dot(x, float(value), f"dot c{k}")
        chart.note(0.56, 100 * level + 1.2, f"{100 * level:.0f} %")
    drawing = chart.draw("Honest everywhere?", "Coverage of the 80 % and 95 % intervals in fifths of the prediction")
    rows = [
        [
            f"{model.mean[g].min():.4g} to {model.mean[g].max():.4g}",
            *(f"{share[k]:.1f} %" for share in shown.values()),
            f"{len(g)}",
        ]
        for k, g in enumerate(groups)
    ]
    reading = "From the lowest predictions (1) to the highest. Points should touch the dashed line of their interval."
    return figure("Honest everywhere?", drawing, reading, [f"predicted {target}", "80 %", "95 %", "rows"], rows)
