"""A fitted model in plain words: what it is, and what to know about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from certgp.estimators.held_out import modelled_target, models_log, scatter_words
from certgp.guarantees import Explanation
from certgp.report import LEVELS, Advice, Card
from certgp.report.card import calibration, compare

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

_SMOOTHNESS = {
    "gaussian": "very smooth curves",
    "matern52": "smooth curves",
    "matern32": "rather rough curves",
    "matern12": "rough curves, like those of a random walk",
    "rational_quadratic": "curves with details of many sizes",
    "periodic": "curves that repeat themselves",
    "linear": "straight lines",
}
_FAR, _MANY_FAR = 4.0, 0.003  # standard deviations; a share of the rows beyond them that normal noise does not have
_FEW = 100  # held-out rows


def summarise_fit(model: GPRegressor) -> tuple[str, ...]:
    """What was fitted, for a reader who knows nothing of Gaussian processes."""
    target, names = modelled_target(model), model.column_names
    names = names if model.encoding_ is None else model.encoding_.inputs
    told = f" ({', '.join(names[:8])}{', …' if len(names) > 8 else ''})" if names else ""
    shape = _SMOOTHNESS.get(model.kernel_.name, f"curves of the kernel “{model.kernel_.name}”")
    kept = (
        "It keeps all training rows and predicts from them"
        if model.needs_training_data
        else f"{model.rank_} features stand in for the rows, so that its size and speed do not depend on their number"
    )
    varies = ", more in some places than in others" if model.noise_model_ is not None else ""
    return (
        f"A Gaussian process that learned {target} from {model.n_rows_:,} rows with "
        f"{len(names) or model.n_features_in_} input(s){told}{_as_numbers(model)}. It gives each "
        "prediction with its own uncertainty.",
        f"It expects {shape}: rows with similar inputs have similar {target}. {kept}.",
        f"Observations scatter around its predictions with a standard deviation of {scatter_words(model)}{varies}.",
        *([f"Why this one: {model.choice_}"] if model.choice_ is not None else []),
    )


def _as_numbers(model: GPRegressor) -> str:
    return "" if model.encoding_ is None else f", which became {model.n_features_in_} numbers"


def settings_of(model: GPRegressor) -> tuple[tuple[str, str], ...]:
    """The fitted model as names and values."""
    values = {key: value for key, value in model.kernel_.describe().items() if key != "kernel"}
    seconds = model.history_[-1].seconds if len(model.history_) else None
    return (
        ("estimator", type(model).__name__ + ("" if model.method_ is None else f" ({model.method_})")),
        *([("learned", f"{modelled_target(model)}: kernel and noise are in its units")] if models_log(model) else []),
        ("kernel", model.kernel_.name),
        *((key.replace("_", " "), _short(value)) for key, value in values.items()),
        *([] if model.warp_ is None else [("inputs", f"warped by the powers {_short(list(model.warp_))}")]),
        ("noise variance", f"{model.noise_variance_:.5g}"),
        ("rank", f"{model.rank_}"),
        ("training rows", f"{model.n_rows_:,}"),
        ("iterations", f"{model.n_iter_}" + ("" if seconds is None else f" in {seconds:.1f} s")),
        ("stopped", model.stop_reason_),
    )


def _short(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_short(each) for each in value[:12]) + (", …" if len(value) > 12 else "")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def find_advice(model: GPRegressor, card: Card, explained: Explanation | None, seen: bool) -> tuple[Advice, ...]:
    """What a careful reader would object to, and the remedy; the gravest first."""
    return (*_of_rows(card, seen), *_of_accuracy(card), *_of_intervals(model, card), *_of_fit(model, explained))


def _of_rows(card: Card, seen: bool) -> Iterator[Advice]:
    if seen:
        yield Advice(
            "These rows are the training rows.",
            "All scores are better than on new rows. Give rows that the model has not learned from.",
        )
    if card.n_rows < _FEW:
        yield Advice(f"Only {card.n_rows} held-out rows.", "Scores and charts are rough; hold out more rows.")
    if card.n_outside > 0.02 * card.n_rows:
        yield Advice(
            f"{card.n_outside:,} of {card.n_rows:,} held-out rows lie outside the range of the training inputs.",
            "Predictions there rest on little or nothing. Train on rows that cover the range in which you predict.",
        )


def _of_accuracy(card: Card) -> Iterator[Advice]:
    better = [each.name for each in card.baselines if compare(card.model, each) > 0]
    if better:
        yield Advice(
            f"Simpler models predict better: {', '.join(better)}.",
            "Let the methods compete (AutoGP, --method auto), allow more effort or a higher rank, or use the simpler "
            "model.",
        )


def _of_intervals(model: GPRegressor, card: Card) -> Iterator[Advice]:
    wrong = [text for level in LEVELS if (text := calibration(card.model, level))]
    if wrong:
        yield Advice(
            f"Intervals: {'; '.join(wrong)}.",
            "More rows help, or another method (AutoGP, --method auto)."
            if model.noise_model_ is not None
            else "Noise that depends on the input often helps (noise='input', --noise input); more rows always do.",
        )
    far = float(np.mean(np.abs(card.model.z) > _FAR))
    if far > _MANY_FAR and far * card.n_rows >= 2.0:
        yield Advice(
            f"{100 * far:.2g} % of the held-out rows are more than {_FAR:.0f} standard deviations off.",
            "Outliers or heavy tails: likelihood='student' (--likelihood student) lets them count less.",
        )


def _of_fit(model: GPRegressor, explained: Explanation | None) -> Iterator[Advice]:
    if not model.converged_:
        reason = model.stop_reason_.replace("raise max_iter", "raise max_iter (--max-iter)")
        yield Advice("The fit stopped before it converged.", f"{reason}.")
    if explained is not None and explained.verdict in ("useless", "far"):
        yield Advice("The model is not proven to be close to the exact GP.", explained.remedy)
    if explained is not None and explained.verdict == "noticeable":
        yield Advice(
            "The model is not proven to be close to the exact GP everywhere.",
            f"See “What is proven”. {explained.remedy}",
        )
