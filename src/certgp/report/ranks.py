"""The choice of a rank: two curves, a slider that moves along them, and what each rank gives and costs in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from certgp.guarantees.words import percent
from certgp.markup import Markup, tag
from certgp.report.axes import ends
from certgp.report.charts import figure, section, table
from certgp.report.facts import Facts, RankChoice
from certgp.report.svg import Chart

_LEAST = 1e-4  # a bound below that is drawn there
_ROWS = 9  # of the table that is always shown


def rank_section(facts: Facts) -> Markup:
    """The section; without ranks to choose from it says why."""
    choices = facts.ranks
    if not choices:
        return section(facts.id_of("rank"), "Which rank", tag("p", facts.rank_obstacle))
    charts = _charts(choices, facts)
    data = json.dumps([_described(choice, charts, facts) for choice in choices], separators=(",", ":"))
    intro = (
        f"The rank is the number of features that stand in for all rows; this model has {choices[-1].rank}. More of "
        "them bring "
        "it closer to the exact GP and cost memory and time, which grow with the square of the rank. All ranks are "
        "judged at this model's hyper-parameters."
    )
    drawings = [
        figure(title, chart.draw(title, reading), reading, ["rank", title], _column(choices, value, unit))
        for title, (chart, value, reading, unit) in charts.items()
    ]
    return section(
        facts.id_of("rank"),
        "Which rank",
        tag("p", intro),
        _chooser(choices, facts),
        tag("div", *drawings, class_="figures"),
        table(["rank", "proven distance", "NLPD", "size", "time"], _overview(choices, facts)),
        tag("p", _NOTE, class_="muted"),
        tag("script", Markup(data.replace("<", "\\u003c")), type="application/json", id=facts.id_of("rank-data")),
    )


_NOTE = (
    "Distances are in percent of a predictive standard deviation, sizes those of the model, times those of 1,000 "
    "predictions. Scores of ranks count constant, Gaussian noise. Times were measured at this model's rank and "
    "follow the number of multiplications at others."
)
_Charts = dict[str, tuple[Chart, Callable[[RankChoice], "float | None"], str, float]]


def _charts(choices: Sequence[RankChoice], facts: Facts) -> _Charts:
    found: _Charts = {}
    ranks = (float(choices[0].rank), float(max(choices[-1].rank, choices[0].rank + 1)))
    shifts = [choice.shift for choice in choices if choice.shift is not None]
    if shifts:
        values = 100.0 * np.clip(np.array(shifts), _LEAST, None)
        limits = (0.8 * float(values.min()), 1.25 * float(values.max()))
        chart = Chart(ranks, limits, ("rank", "% of a predictive std"), log=(True, True))
        reading = (
            "How far a typical prediction may be from the exact GP's at most, in percent of its standard deviation."
        )
        found["Proven distance"] = (chart, lambda choice: choice.shift, reading, 100.0)
    scores = [choice.nlpd for choice in choices if choice.nlpd is not None]
    if scores:
        chart = Chart(ranks, ends(np.array(scores)), ("rank", "NLPD"), log=(True, False))
        reading = f"Mean negative log predictive density of {facts.target} on held-out rows: lower is better."
        found["Held-out score"] = (chart, lambda choice: choice.nlpd, reading, 1.0)
    for key, (chart, value, _, unit) in zip(_KEYS, found.values(), strict=False):
        points = [(float(c.rank), max(unit * v, chart.y.low)) for c in choices if (v := value(c)) is not None]
        chart.line(points, "curve c0")
        at = chart.x(points[-1][0])
        line = facts.id_of(f"line-{key}")
        chart.add(tag("line", x1=at, x2=at, y1=chart.y.start, y2=chart.y.end, class_="cursor", id=line))
        chart.dot(*points[-1], "chosen", id=facts.id_of(f"dot-{key}"))
    return found


_KEYS = ("first", "second")


def _described(choice: RankChoice, charts: _Charts, facts: Facts) -> dict[str, object]:
    """Words and positions of one rank, for the slider."""
    marks = {}
    for key, (chart, value, _, unit) in zip(_KEYS, charts.values(), strict=False):
        at = value(choice)
        if at is not None:
            marks[key] = [round(chart.x(choice.rank), 1), round(chart.y(max(unit * at, chart.y.low)), 1)]
    return {"words": _words(choice, facts), "marks": marks}


def _words(choice: RankChoice, facts: Facts) -> dict[str, str]:
    return {
        "rank": str(choice.rank),
        "bound": _bound(choice, facts),
        "score": "not known" if choice.nlpd is None else f"{choice.nlpd:.3f}",
        "memory": f"{choice.megabytes:.3g} MB" if choice.megabytes >= 1.0 else f"{1e3 * choice.megabytes:.3g} KB",
        "time": f"{choice.milliseconds:.3g} ms",
    }


def _bound(choice: RankChoice, facts: Facts) -> str:
    if choice.shift is None:
        return "no bound by rank"
    if choice.shift > 1.0:
        return f"useless ({percent(choice.shift)} of a predictive std)"
    return f"{percent(choice.shift)} of a predictive std, about {choice.shift * facts.noise:.2g} in {facts.modelled}"


def _chooser(choices: Sequence[RankChoice], facts: Facts) -> Markup:
    last, name = len(choices) - 1, facts.id_of("rank-slider")
    slider = tag("input", type="range", id=name, min="0", max=str(last), value=str(last), step="1")
    words = _words(choices[last], facts)
    named = {
        "rank": "rank",
        "bound": "proven distance to the exact GP",
        "score": "held-out NLPD (lower is better)",
        "memory": "size of the model",
        "time": "time to predict 1,000 rows",
    }
    answers = [
        tag("div", tag("dt", text), tag("dd", words[key], id=facts.id_of(f"rank-{key}"))) for key, text in named.items()
    ]
    control = tag(
        "div",
        tag("label", "Choose a rank", for_=name),
        slider,
        id=facts.id_of("rank-chooser"),
        class_="chooser",
        hidden=True,
    )
    return tag("div", control, tag("dl", *answers, class_="answers", aria_live="polite"))


def _overview(choices: Sequence[RankChoice], facts: Facts) -> list[list[str]]:
    """Some ranks at equal ratios, the last one always."""
    wanted = np.geomspace(choices[0].rank, choices[-1].rank, _ROWS)
    ranks = np.array([choice.rank for choice in choices])
    picked = sorted({int(np.abs(np.log(ranks / rank)).argmin()) for rank in wanted})
    return [list((_words(choices[i], facts) | {"bound": _short_bound(choices[i])}).values()) for i in picked]


def _short_bound(choice: RankChoice) -> str:
    return "none" if choice.shift is None else "useless" if choice.shift > 1.0 else percent(choice.shift)


def _column(choices: Sequence[RankChoice], value: Callable[[RankChoice], float | None], unit: float) -> list[list[str]]:
    return [[str(choice.rank), f"{unit * found:.4g}"] for choice in choices if (found := value(choice)) is not None]
