"""certgp fit: learn a model from a table and save it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command, refuse_overwriting
from certgp.cli.card import make_card
from certgp.cli.cluster import engine_of
from certgp.cli.fit_options import EXAMPLES, add_options, check_model_path, check_options, race_options
from certgp.cli.interrupts import INTERRUPTED, resume_words, stopping_on_interrupt
from certgp.cli.models import build_model, set_options
from certgp.cli.output import Console, aligned
from certgp.cli.proof import prove
from certgp.cli.several_outputs import describe_outputs, split_outputs, tell_outputs
from certgp.cli.told_fit import model_facts, model_fields, tell_fit
from certgp.cli.training_data import TrainingData, TrainingRows

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.estimators import GPRegressor
    from certgp.training import Callback, StopRule

Outcome = tuple[dict[str, object], list[tuple[str, str]]]  # for machines, and as names and values for people
_ANNOUNCED_ROWS = 500_000  # of so many a fit may take minutes


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    add_options(add_command(commands, "fit", "learn a model from a table and save it", EXAMPLES, run))


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Check, read, fit, prove, save, score, print: in this order, so that a mistake shows before the long part.
    Interrupted, a fit saves the best model so far.
    """
    check_options(arguments)
    console.status("starting")
    check_model_path(arguments.out)
    data = TrainingData.open(arguments)
    refuse_overwriting(arguments.out, list(data.files.files))
    console.status("reading data")
    rows = data.read()
    for note in rows.notes:
        console.notice(f"note: {note}")

    console.status("fitting")
    from certgp.training import StopRule

    rule = StopRule()  # asked by Ctrl-C
    model = _build(rows, rule, console)
    started, worked = time.perf_counter(), time.process_time()
    with stopping_on_interrupt(rule, console):
        rows.fit(model)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    outcome = _describe(model, rows, seconds)
    if rule.reason is not None:
        return _end_early(model, arguments, outcome, console)
    try:
        _conclude(model, rows, worked, outcome, console)
    except KeyboardInterrupt:
        _save(model, arguments.out, console)
        console.notice(f"interrupted before all was proven and scored; the model itself is done: {arguments.out}")
        return INTERRUPTED
    except Exception:
        _save(model, arguments.out, console)  # whatever went wrong with the proof or the scores, the fit is not lost
        raise
    return 0


def _build(rows: TrainingRows, rule: StopRule, console: Console) -> GPRegressor:
    """The model that the options ask for; what its fit will cost is said where it may be long."""
    given = rows.data.arguments
    callbacks: list[Callback] = [console.iteration, rule]
    model = build_model(given.method, given.kernel, given.rank, given.seed, callbacks, given.max_iter)
    set_options(model, given, **race_options(given))
    _announce(model, rows, console)
    engine = engine_of(given)
    if engine is not None:
        model.set_params(engine=engine)
    if given.max_seconds is not None:
        console.expect(given.max_seconds)
    return model


def _announce(model: GPRegressor, rows: TrainingRows, console: Console) -> None:
    """Before a long fit: what it will cost, from a measurement on the first rows, in this process."""
    from certgp.estimators import FourierGP, MercerGP, SparseGP, estimate_fit

    arguments = rows.data.arguments
    fixed_rank = model.get_params(deep=False).get("rank") != "auto"
    if isinstance(model, MercerGP | FourierGP | SparseGP) and fixed_rank and rows.train.n_rows >= _ANNOUNCED_ROWS:
        estimate = estimate_fit(model, rows.train, max_seconds=arguments.max_seconds)
        if arguments.scheduler is not None:
            console.notice(f"note: {estimate}, in one process; workers share the passes over all rows")
            return
        console.notice(f"note: {estimate}")
        console.expect(estimate.seconds)


def _describe(model: GPRegressor, rows: TrainingRows, seconds: float) -> Outcome:
    """What was fitted."""
    arguments = rows.data.arguments
    if model.outputs_ is not None:
        fields, facts = describe_outputs(model, rows, arguments, seconds)
    else:
        fields = model_fields(arguments, model, seconds) | {"columns": list(rows.data.inputs)}
        facts = model_facts(arguments, model, seconds)
    return fields | {"target": rows.data.target}, facts


def _end_early(model: GPRegressor, arguments: argparse.Namespace, outcome: Outcome, console: Console) -> int:
    """Save what an interrupted fit has, and say how to go on."""
    fields, facts = outcome
    _save(model, arguments.out, console)
    further = [("saved", f"{arguments.out}, the best model so far"), ("to go on", resume_words(arguments))]
    console.result(fields | {"interrupted": True}, aligned([*facts, *further]))
    return INTERRUPTED


def _conclude(model: GPRegressor, rows: TrainingRows, seconds: float, outcome: Outcome, console: Console) -> None:
    """Prove what can be proven in little time beside the fit's CPU ``seconds``, save, score, tell."""
    arguments = rows.data.arguments
    console.status("proving")
    if model.outputs_ is not None:
        outputs = split_outputs(model, rows, seconds)
        _save(model, arguments.out, console)
        console.status("scoring beside simple models")
        console.result(*tell_outputs(outputs, arguments, *outcome))
        return
    proof = prove(model, seconds)
    _save(model, arguments.out, console)
    console.status("scoring beside simple models")
    card = None if rows.test is None else make_card(model, rows, arguments.seed)
    console.result(*tell_fit(model, rows, proof, card, *outcome))


def _save(model: GPRegressor, path: Path, console: Console) -> None:
    if model.needs_training_data:
        model.save(path, include_training_data=True)
        console.notice(f"note: {path} holds the training data; this model cannot predict without it")
    else:
        model.save(path)
