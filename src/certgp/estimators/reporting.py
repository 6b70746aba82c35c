"""The facts of a report, gathered from a fitted model and rows it has not learned from."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from certgp.data import PickedRows, Rows, as_rows
from certgp.data.rows import read_target
from certgp.errors import ExtrapolationWarning, InvalidInputError, NotCertifiableError
from certgp.estimators.effects import find_effects
from certgp.estimators.held_out import find_rank_curve, make_card, modelled_target, models_log, yardstick_of
from certgp.estimators.outputs import name_outputs, split_rows
from certgp.estimators.report_words import find_advice, settings_of, summarise_fit
from certgp.estimators.validation import check_row_pair, load_rows
from certgp.guarantees import Explanation, RankCurve
from certgp.guarantees.words import tolerance_for
from certgp.report import Card, Facts, RankChoice, Report, make_outputs_report, make_report
from certgp.version import __version__

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor

_CERTIFIED_ROWS = 200  # held-out rows whose predictions are certified one by one
_MOST_READ, _MOST_SOLVED = 50_000, 10_000  # training rows, up to which they are read again, and the exact system solved
_MOST_REFERENCE = 800
_RANKS = 60
_TIMED_ROWS = 1_000


def report(
    self: GPRegressor,
    X: ArrayLike | Rows,
    y: ArrayLike | None = None,
    *,
    path: str | Path | None = None,
    rows: tuple[ArrayLike, ...] | Rows | None = None,
    title: str | None = None,
    outputs: Sequence[int | str] | None = None,
) -> Report:
    """One self-contained page about this model: scores beside simple models, calibration, residuals, inputs, what is
    proven, and what each rank would give. Of several outputs, a part for each.

    Parameters
    ----------
    X, y : rows that the model has not learned from, (n, D) and (n,) or (n, q), or rows that hold both
    path : file to write the page to; without it the page is only returned (``Report.html``, ``Report.save``)
    rows : the training rows, as in ``certify``: simple models learn from them, and single predictions are certified
        through them. Those of the fit where the model still has them; without any both are left out
    title : of the page
    outputs : which of several to report on, by name or by number from 0; without it all
    """
    if self.outputs_ is not None:
        page = _report_outputs(self, X, y, rows, title, outputs)
    elif outputs is not None:
        raise InvalidInputError("outputs is for models of several outputs, and this one has one; leave it out")
    else:
        held_out = load_rows(self, X, y, reset=False)
        _check_enough(held_out, "X")
        train = self.models[0].rows if rows is None else load_rows(self, *check_row_pair(rows), reset=False)
        page = make_report(gather_facts(self, held_out, train, title))
    if path is not None:
        page.save(path)
    return page


def _report_outputs(
    model: GPRegressor,
    X: ArrayLike | Rows,
    y: ArrayLike | None,
    rows: tuple[ArrayLike, ...] | Rows | None,
    title: str | None,
    outputs: Sequence[int | str] | None,
) -> Report:
    assert model.outputs_ is not None
    names, held_out = name_outputs(model), split_rows(model, X, y)
    train = (
        [part.models[0].rows for part in model.outputs_] if rows is None else split_rows(model, *check_row_pair(rows))
    )
    chosen = range(len(names)) if outputs is None else _numbers_of(outputs, names)
    found = []
    for j in chosen:
        own = held_out[j]
        assert own is not None
        _check_enough(own, f"output {names[j]} of y")
        found.append(gather_facts(model.outputs_[j], own, train[j]))
    if len(found) == 1:
        return make_report(replace(found[0], title=title or found[0].title))
    return make_outputs_report(title or f"A model of {', '.join(facts.target for facts in found)}", found)


def _numbers_of(outputs: Sequence[int | str], names: Sequence[str]) -> list[int]:
    """The numbers of some outputs; a name alone is that of one."""
    if len(outputs) == 0:
        raise InvalidInputError(f"outputs is empty; name one or more of {', '.join(names)}, or leave it out for all")
    return [_number_of(each, names) for each in ([outputs] if isinstance(outputs, str) else outputs)]


def _number_of(output: int | str, names: Sequence[str]) -> int:
    """The number of an output, from 0."""
    if str(output) in names:
        return names.index(str(output))
    if isinstance(output, int) and 0 <= output < len(names):
        return output
    raise InvalidInputError(f"outputs names {output!r}, and the outputs are {', '.join(names)}; name one of them")


def _check_enough(rows: Rows, what: str) -> None:
    if rows.n_rows < 2:
        raise InvalidInputError(f"{what} has {rows.n_rows} row(s); a report needs at least 2 rows with their target")


def gather_facts(model: GPRegressor, held_out: Rows, train: Rows | None, title: str | None = None) -> Facts:
    """All that a report says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the page counts these rows
        card = make_card(model, held_out, train)
        explained, obstacle = _explain(model, held_out, train, card)
        ranks, rank_obstacle = _choices(model, held_out)
        effects = find_effects(model, held_out)
    seen = train is not None and _same_rows(held_out, train)
    target = model.target_name_ or "y"
    return Facts(
        title=title or f"A model of {target}",
        target=target,
        modelled=modelled_target(model),
        columns=_columns_of(model),
        summary=summarise_fit(model),
        settings=settings_of(model),
        card=card,
        noise=yardstick_of(model).noise,
        certificate=explained,
        obstacle=obstacle,
        effects=effects,
        ranks=ranks,
        rank_obstacle=rank_obstacle,
        advice=find_advice(model, card, explained, seen),
        made=f"Made by certgp {__version__} on {datetime.now(UTC):%Y-%m-%d}",
    )


def _columns_of(model: GPRegressor) -> tuple[tuple[str, str], ...]:
    """What was done to each column of the table; nothing where all were used as they are."""
    if model.encoding_ is not None:
        return tuple(model.encoding_.lines())
    left_out = () if model.table_ is None else model.table_.left_out
    told = tuple((name, f"left out: {why}") for name, why in left_out)
    return (*told, ("all others", "numbers as they are")) if told else ()


def _explain(model: GPRegressor, held_out: Rows, train: Rows | None, card: Card) -> tuple[Explanation | None, str]:
    """What is proven of some held-out predictions where the training rows can be read, else of the training rows."""
    coverage = card.model.coverage(0.95)
    try:
        if train is None or train.n_rows > _MOST_READ:
            return model.explain(model.certify(), coverage=coverage), ""
        picked = np.sort(np.random.default_rng(0).permutation(held_out.n_rows)[:_CERTIFIED_ROWS])
        some = PickedRows(held_out, picked)
        if model.needs_training_data:
            certificate = model.certify(some)
        else:
            certificate = model.certify(
                some,
                rows=train,
                reference_rank=min(max(4 * model.rank_, _MOST_REFERENCE), train.n_rows),
                tol=tolerance_for(yardstick_of(model)),
                exact_solve=(lambda cost: True) if train.n_rows <= _MOST_SOLVED else False,
            )
        told = model.explain(certificate, some, coverage=coverage, rows="{} held-out rows")
        if told.verdict == "useless":  # of single rows; the law of all training rows may still be known well
            law = model.explain(certificate.without_rows(), coverage=coverage)
            unknown = f"Bounds on single predictions prove nothing here. {told.remedy}"
            told = told if law.verdict == "useless" else replace(law, limits=(*law.limits, unknown))
        return told, ""
    except NotCertifiableError as error:
        return None, str(error)


def _choices(model: GPRegressor, held_out: Rows) -> tuple[tuple[RankChoice, ...], str]:
    """Ranks at equal ratios with what they give and cost, or why there are none."""
    curve = find_rank_curve(model, held_out)
    if curve is None:
        kind = "keeps all training rows" if model.needs_training_data else "is a mixture of several models"
        return (), f"There is none to choose: this model {kind}."
    wanted = np.unique(np.geomspace(1, len(curve.ranks), _RANKS).astype(int)) - 1
    milliseconds, d = _time_predictions(model, held_out), model.n_features_in_
    curve = _in_units_of_target(curve, model, held_out)
    return tuple(_choice(curve, int(i), milliseconds, d) for i in wanted), ""


def _in_units_of_target(curve: RankCurve, model: GPRegressor, held_out: Rows) -> RankCurve:
    """The curve with the NLPD of y where log(y) was learned: -log p(y) = -log p(log y) + log y."""
    if curve.nlpd is None or not models_log(model):
        return curve
    return replace(curve, nlpd=curve.nlpd + float(read_target(held_out).mean()))


def _choice(curve: RankCurve, i: int, milliseconds: float, d: int) -> RankChoice:
    rank, last = int(curve.ranks[i]), int(curve.ranks[-1])
    return RankChoice(
        rank,
        None if curve.kl_bound is None else float(np.sqrt(2.0 * curve.kl_bound[i] / curve.n_rows)),
        None if curve.nlpd is None else float(curve.nlpd[i]),
        8e-6 * rank * (rank + d + 1),  # Phi'Phi, Phi'y and what defines the features
        milliseconds * (rank * (rank + d)) / (last * (last + d)),
    )


def _time_predictions(model: GPRegressor, held_out: Rows) -> float:
    """Milliseconds for 1,000 rows: the better of two."""
    rows = PickedRows(held_out, np.arange(_TIMED_ROWS) % held_out.n_rows)
    times = []
    for _ in range(2):
        started = time.perf_counter()
        model.predict(rows, return_std=True)
        times.append(time.perf_counter() - started)
    return 1e3 * min(times)


def _same_rows(held_out: Rows, train: Rows) -> bool:
    """Are the rows to judge by those that the model learned from?"""
    known = np.sort(read_target(as_rows(train)))
    return held_out.n_rows == train.n_rows and np.array_equal(known, np.sort(read_target(held_out)))
