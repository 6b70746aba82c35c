"""Charts of what the inputs do."""

from __future__ import annotations

from collections.abc import Sequence

from certgp.markup import Markup, tag
from certgp.report.axes import ends
from certgp.report.charts import figure
from certgp.report.facts import Curve, Effect
from certgp.report.svg import WIDTH, Chart, shortened

_MOST_BARS = 20
_ROW = 26.0  # height of a bar with its name
_NAME = 140.0  # width of the names
_PLOT = WIDTH - _NAME - 12.0


def relevance(effects: Sequence[Effect], target: str) -> Markup:
    """By how much the error of the target grows when an input is shuffled, with two standard errors."""
    shown = effects[:_MOST_BARS]
    top = max(max(each.relevance + 2.0 * each.relevance_error for each in shown), 1e-12)
    height = _ROW * len(shown) + 52.0
    axis = f"growth of the RMSE, in {target}"
    axis = axis if shortened(axis, _PLOT) == axis else "growth of the RMSE"  # the words below name the target
    chart = Chart((0.0, 1.05 * top), (float(len(shown)), 0.0), (axis, ""), height=height, left=_NAME)
    for k, each in enumerate(shown):
        low, high = (max(each.relevance + side * 2.0 * each.relevance_error, 0.0) for side in (-1, 1))
        chart.box((0.0, max(each.relevance, 0.0)), (k + 0.22, k + 0.78), "bar")
        _named_line(chart, k, each.name, low, high)
    drawing = chart.draw("Which inputs matter", "Bars of relevance, the most relevant input first", y_ticks=False)
    rows = [[each.name, f"{each.relevance:.3g}", f"{2.0 * each.relevance_error:.2g}"] for each in effects]
    reading = (
        f"How much larger the error of {target} on held-out rows becomes when one column is shuffled, with two "
        "standard errors. Inputs that say the same thing share their relevance."
    )
    return figure("Which inputs matter", drawing, reading, ["input", "growth of RMSE", "two standard errors"], rows)


def _named_line(chart: Chart, k: int, name: str, low: float, high: float) -> None:
    """A horizontal line in row k of a chart of names."""
    middle = chart.y(k + 0.5)
    chart.add(tag("line", x1=chart.x(low), x2=chart.x(high), y1=middle, y2=middle, class_="whisker"))
    chart.add(tag("text", shortened(name, _NAME), x=_NAME - 8.0, y=middle + 4.0, class_="tick", text_anchor="end"))


def effect(each: Curve, limits: tuple[float, float], target: str) -> Markup:
    """The average prediction along one input, with its 95 % band."""
    chart = _of_names(each, limits, target) if each.labels else _of_numbers(each, limits, target)
    told = f"Average predicted {target} along {each.name} with a 95 % band"
    drawing = chart.draw(f"Effect of {each.name}", told, y_ticks=not each.labels)
    values = each.labels or [f"{x:.4g}" for x in each.grid]
    rows = [
        [x, f"{m:.4g}", f"{low:.4g} to {high:.4g}"]
        for x, m, low, high in zip(values, each.mean, each.lower, each.upper, strict=True)
    ]
    reading = f"Predicted {target}, averaged over held-out rows with {each.name} set to each value; 95 % band."
    if len(each.labels) > _MOST_BARS:
        reading += f" Drawn are the first {_MOST_BARS} of {len(each.labels)} values; the table has all."
    return figure(f"Effect of {each.name}", drawing, reading, [each.name, "average", "95 % band"], rows)


def _of_numbers(each: Curve, limits: tuple[float, float], target: str) -> Chart:
    xs = each.grid.tolist()
    chart = Chart(ends(each.grid, margin=0.0), limits, (each.name, target), height=220.0)
    chart.band(xs, each.lower.tolist(), each.upper.tolist(), "band strong")
    chart.line(zip(xs, each.mean.tolist(), strict=True), "curve c0")
    return chart


def _of_names(each: Curve, limits: tuple[float, float], target: str) -> Chart:
    """A point for each name, the names one below the other."""
    shown = each.labels[:_MOST_BARS]
    chart = Chart(limits, (float(len(shown)), 0.0), (target, ""), height=_ROW * len(shown) + 52.0, left=_NAME)
    for k, name in enumerate(shown):
        _named_line(chart, k, name, float(each.lower[k]), float(each.upper[k]))
        chart.dot(float(each.mean[k]), k + 0.5, "dot")
    return chart


def common_limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """One scale for all effects, so that they can be compared."""
    drawn = [array for each in curves for array in (each.lower, each.upper)]
    return ends(*drawn) if drawn else (0.0, 1.0)
