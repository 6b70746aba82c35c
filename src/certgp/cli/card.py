"""The card after a fit: held-out scores beside simple models, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certgp.cli.output import table
from certgp.cli.training_data import TrainingRows

if TYPE_CHECKING:
    from certgp.estimators import GPRegressor
    from certgp.report import Card

_READING = (
    "RMSE is the error of a typical prediction; NLPD judges predictions with their uncertainty, and lower is better; "
    "an honest 80 % interval holds 80 % of the rows."
)


def make_card(model: GPRegressor, rows: TrainingRows, seed: int) -> Card:
    """The card of the rows that were held out."""
    from certgp.estimators import held_out

    assert rows.test is not None
    return held_out.make_card(model, rows.test, rows.train, seed)


def card_fields(card: Card | None) -> dict[str, object]:
    """The card for machines; ``test`` is the model alone."""
    if card is None:
        return {"test": None, "card": None}
    model = card.model
    alone = {"rmse": model.rmse, "nlpd": model.nlpd, "coverage": model.coverage(0.95), "nominal_coverage": 0.95}
    return {"test": alone | {"n_rows": card.n_rows}, "card": card.to_dict()}


def card_table(card: Card) -> str:
    """The scores for people: the model first, then the simple models."""
    from certgp.report import LEVELS

    header = [f"{card.n_rows:,} held-out rows", "RMSE", "NLPD", *(f"in {100 * level:g} %" for level in LEVELS)]
    lines = [
        [
            each.name,
            f"{each.rmse:.4g}",
            f"{each.nlpd:.3f}",
            *(f"{100 * each.coverage(level):.1f} %" for level in LEVELS),
        ]
        for each in card.methods
    ]
    return table(header, lines)


def card_text(card: Card | None, also: Sequence[str] = ()) -> str:
    """The card for people; ``also`` are notes about the rows."""
    if card is None:
        return "No rows were held out, so nothing says how good the model is; --test-fraction 0.1 holds a tenth out."
    fifths = card.coverage_by_fifth()
    notes = [_READING, "", card.verdict()]
    if len(fifths) == 5:
        shares = ", ".join(f"{100 * share:.0f} %" for share in fifths)
        notes.append(f"In 95 % intervals, from the lowest fifth of the predictions to the highest: {shares}.")
    if card.n_outside:
        lie = "lies" if card.n_outside == 1 else "lie"
        notes.append(f"{card.n_outside:,} of the held-out rows {lie} outside the range of the training inputs.")
    if card.baseline_rows is not None:
        notes.append(f"The simple models learned from {card.baseline_rows:,} rows only.")
    notes += also
    notes.append("The model has not learned from these rows; --test-fraction 0 learns from all and scores none.")
    return "\n".join([card_table(card), "", *notes])
