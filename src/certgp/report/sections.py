"""The sections of a report but for the rank, in the order of the page."""

from __future__ import annotations

import numpy as np

from certgp.guarantees.words import percent
from certgp.markup import Markup, tag
from certgp.report import charts, input_charts
from certgp.report.card import LEVELS
from certgp.report.facts import Facts

_DISTANCE = {
    "exact": "good",
    "negligible": "good",
    "small": "good",
    "noticeable": "care",
    "far": "bad",
    "useless": "care",
}


def tiles(facts: Facts) -> Markup:
    """The four numbers that a reader in a hurry needs."""
    model, best = facts.card.model, facts.card.best_baseline
    rmse = "error of a typical prediction" if best is None else f"{best.name}: {best.rmse:.3g}"
    nlpd = "lower is better" if best is None else f"{best.name}: {best.nlpd:.3f}; lower is better"
    share = model.coverage(0.95)
    shown = [
        (f"RMSE, in {facts.target}", f"{model.rmse:.3g}", rmse, ""),
        ("NLPD", f"{model.nlpd:.3f}", nlpd, ""),
        ("held-out rows in their 95 % interval", f"{100 * share:.1f} %", f"of {facts.card.n_rows:,} rows", ""),
        ("approximation error", *_distance(facts)),
    ]
    cells = [
        tag("div", tag("dt", name), tag("dd", tag("span", value, class_=tone or None), tag("small", note)))
        for name, value, note, tone in shown
    ]
    return tag("dl", *cells, class_="tiles")


def _distance(facts: Facts) -> tuple[str, str, str]:
    found = facts.certificate
    if found is None:
        return "not certified", "see “What is proven”", "care"
    notes = {
        "exact": "this is the exact GP itself",
        "negligible": "proven, beside the noise",
        "small": "proven, beside the noise",
        "noticeable": "beside the noise; see “What is proven”",
        "far": "proven to differ from the exact GP",
        "useless": "the bound proves nothing",
    }
    return found.verdict, notes[found.verdict], _DISTANCE[found.verdict]


def warnings(facts: Facts) -> Markup | None:
    """What to know, and what to do about it."""
    if not facts.advice:
        return None
    items = [tag("li", tag("strong", each.what), each.remedy) for each in facts.advice]
    return charts.section(facts.id_of("know"), "What to know", tag("ul", *items, class_="advice"))


def fitted(facts: Facts) -> Markup:
    """What was fitted, in plain words."""
    rows = [list(pair) for pair in facts.settings]
    details = tag("details", tag("summary", "All settings"), charts.table(["setting", "value"], rows, "words"))
    words = [tag("p", text) for text in facts.summary]
    return charts.section(facts.id_of("fitted"), "What was fitted", *words, details)


def columns(facts: Facts) -> Markup | None:
    """What was done to the columns of the table."""
    if not facts.columns:
        return None
    rows = [list(pair) for pair in facts.columns]
    told = ["Learned from the training rows alone, kept in the model file, and repeated on every table it predicts."]
    if facts.modelled != facts.target:
        told.append(
            f"The model has learned {facts.modelled}; scores and intervals are in the units of {facts.target}, "
            f"predictions are means of {facts.target}; noise, effects and what is proven are about {facts.modelled}."
        )
    return charts.section(
        facts.id_of("columns"),
        "What was done to the columns",
        *(tag("p", text) for text in told),
        charts.table(["column", "what was done"], rows, "words"),
    )


def scores(facts: Facts) -> Markup:
    """The scores beside simple models."""
    card = facts.card
    header = ["held-out rows", "RMSE", "NLPD", *(f"in {100 * level:.0f} %" for level in LEVELS)]
    rows = [
        [
            each.name,
            f"{each.rmse:.4g}",
            f"{each.nlpd:.3f}",
            *(f"{100 * each.coverage(level):.1f} %" for level in LEVELS),
        ]
        for each in card.methods
    ]
    whole = Markup(charts.table(header, rows).replace("<tbody><tr>", '<tbody><tr class="this">', 1))
    notes = [
        "RMSE is the error of a typical prediction. NLPD judges predictions and their uncertainty together: lower is "
        "better, and only differences count. The other columns are the shares of rows in their intervals: an honest "
        "80 % interval holds 80 % of the rows."
    ]
    if card.baselines:
        notes.append(
            "Simple models: the mean; least squares; scikit-learn's HistGradientBoostingRegressor as it comes. Each "
            "has the standard deviation of its errors on a fifth of the training rows that it had not seen."
        )
    if facts.modelled != facts.target:
        notes.append(
            f"All models learn {facts.modelled}. Scores are in the units of {facts.target}: RMSE is that of means, "
            "NLPD a density."
        )
    if card.baseline_rows is not None:
        notes.append(f"They learned from {card.baseline_rows:,} of the training rows, drawn at random.")
    muted = [tag("p", text, class_="muted") for text in notes]
    return charts.section(facts.id_of("scores"), "How good it is", whole, *muted)


def predictions(facts: Facts) -> Markup:
    """Predictions, intervals and residuals of held-out rows."""
    model = facts.card.model
    compared = [model, *(each for each in facts.card.baselines if each.name == "gradient boosting")]
    drawings = [
        charts.predicted_and_actual(model, facts.target),
        charts.calibration(compared),
        charts.standard_residuals(model),
        charts.residuals_by_prediction(model, facts.target),
        charts.coverage_by_prediction(model, facts.target),
    ]
    shown = tag("div", *drawings, class_="figures")
    return charts.section(facts.id_of("predictions"), "Predictions of held-out rows", shown)


def inputs(facts: Facts) -> Markup | None:
    """Relevance and effects of the inputs."""
    if not facts.effects:
        return None
    curves = [curve for each in facts.effects for curve in each.curves]
    limits = input_charts.common_limits(curves)
    effects = [input_charts.effect(each, limits, facts.modelled) for each in curves]
    intro = (
        "What the model does with its inputs, which need not be what they cause. Effects are averages: where inputs "
        "act together, single rows may go another way."
    )
    return charts.section(
        facts.id_of("inputs"),
        "What the inputs do",
        tag("p", intro),
        tag("div", input_charts.relevance(facts.effects, facts.modelled), *effects, class_="figures"),
    )


def certificate(facts: Facts) -> Markup:
    """What is proven, what it does not say, the numbers, the theorems."""
    id_, title, found = facts.id_of("proven"), "What is proven", facts.certificate
    if found is None:
        return charts.section(id_, title, tag("p", f"Nothing: {facts.obstacle}"))
    return charts.section(
        id_,
        title,
        tag("blockquote", *(tag("p", text) for text in found.meaning)),
        tag("h3", "What it does not say"),
        *(tag("p", text) for text in found.limits),
        tag(
            "details",
            tag("summary", "Numbers"),
            charts.table(["quantity", "value"], [list(p) for p in found.numbers], "words"),
        ),
        tag(
            "details",
            tag("summary", "Theorems and assumptions"),
            charts.table(["", ""], [list(p) for p in found.basis], "words"),
        ),
    )


def headline(facts: Facts) -> str:
    """The page in a sentence or two."""
    share = 1.0 - (facts.card.model.rmse / max(float(np.std(facts.card.model.y)), 1e-300)) ** 2
    amount = percent(share) if share > 0.0 else "none"
    explained = f"It explains {amount} of the variance of {facts.target} on rows it has not seen."
    return f"{facts.card.verdict()} {explained}"
