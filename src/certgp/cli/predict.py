"""certgp predict: predictions with uncertainty from a saved model."""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_bad_rows_option, add_command, coverage, refuse_overwriting
from certgp.cli.columns import rows_for
from certgp.cli.new_rows import ModelFacts, NewTable, open_new
from certgp.cli.output import Console, aligned, score_rows, skipped_fields
from certgp.cli.several_outputs import name_outputs
from certgp.cli.table_options import add_text_options
from certgp.errors import DataFileError, ExtrapolationWarning, InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.data import ArrayRows
    from certgp.data.reading import Array
    from certgp.data.tables import Columns as TableColumns
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.estimators.scores import Scores

_CHUNK_ROWS = 65_536
_EXAMPLES = """\
  certgp predict price.model new.csv --out predictions.csv
  certgp predict y.model 'parts/*.parquet' --out predictions.parquet --coverage 0.9
  certgp predict price.model new.csv --out - | head
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "predict mean, std, lower and upper per row with a saved model"
    parser = add_command(commands, "predict", summary, _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    matched = "columns are matched by name, those of arrays by position"
    parser.add_argument("data", nargs="+", metavar="DATA", help=f"{DATA_HELP}; {matched}")
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        required=True,
        help=".csv, .parquet or .npz file to write; - prints CSV instead of a summary",
    )
    parser.add_argument(
        "--coverage",
        metavar="P",
        type=coverage,
        default=0.95,
        help="probability with which a new value lies between lower and upper (default: 0.95)",
    )
    add_text_options(parser, "those of the fit")
    add_bad_rows_option(parser, "; a column 'row' then says which rows of DATA, from 0, the others are")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, then read, predict, write and score some rows at a time; the file appears when all is done."""
    console.status("starting")
    from certgp.data.tables import check_writable, writing_table, writing_to

    printed = str(arguments.out) == "-"
    if printed and arguments.json:
        raise InvalidInputError("--out - prints the predictions and --json the summary; leave one of them out")
    if not printed:
        check_writable(arguments.out)
    facts = ModelFacts.read(arguments.model)
    files = facts.open(arguments.data, arguments)
    refuse_overwriting(arguments.out, [arguments.model, *files.files])
    checked = facts.check(files, arguments)
    from certgp.estimators.persistence import load_estimator  # torch: all that is cheap has been checked

    model = load_estimator(arguments.model)
    table = open_new(model, files, checked, console)
    started = time.perf_counter()
    if printed:
        with tempfile.TemporaryFile() as text:  # nothing is printed where a row further down is refused
            with writing_to(text, ".csv") as write:
                _predict(model, files, table, arguments.coverage, write, console, scored=False)
            text.seek(0)
            console.copy(text)
        return
    with writing_table(arguments.out) as write:
        scored = table.has_target and model.outputs_ is None
        n_rows, scores = _predict(model, files, table, arguments.coverage, write, console, scored)
    seconds = time.perf_counter() - started
    fields: dict[str, object] = {
        "command": "predict",
        "model": str(arguments.model),
        "out": str(arguments.out),
        "n_rows": n_rows,
        "coverage": arguments.coverage,
        "seconds": seconds,
        "scores": asdict(scores) if scores else None,
        "skipped": skipped_fields(files),
    }
    rows = [("rows", f"{n_rows:,} in {seconds:.1f} s"), *(score_rows(scores) if scores else [])]
    console.result(fields, aligned([*rows, ("saved", f"{arguments.out} (columns {_names(model)})")]))


def _predict(
    model: GPRegressor,
    files: TableFiles,
    table: NewTable,
    coverage: float,
    write: Callable[[TableColumns], None],
    console: Console,
    scored: bool,
) -> tuple[int, Scores | None]:
    """Write the predictions of all rows; how many there are and, where the files hold the target, their scores."""
    from certgp.estimators.held_out import count_outside
    from certgp.estimators.validation import OutsideRange

    skipped = files.skipped
    if skipped is not None and scored:
        console.notice("note: predictions are not scored with --on-bad-rows skip")
        scored = False
    scoring, outside = _Scoring(table if scored else None, coverage, console), OutsideRange()
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # one about all rows follows
        for numbers, X in table.inputs(_CHUNK_ROWS):
            outside += count_outside(model, rows_for(model, X))
            predictions = _predictions(model, rows_for(model, X), coverage)
            write(predictions if skipped is None else {"row": numbers, **predictions})
            scoring.add(model, X, predictions)
            speed = outside.n_rows / (time.perf_counter() - started)
            console.status(f"predicted {outside.n_rows:,} rows, {speed:,.0f} a second")
    if skipped is not None:
        skipped.warn()
    outside.warn()
    return outside.n_rows, scoring.scores()


def _predictions(model: GPRegressor, X: ArrayRows, coverage: float) -> dict[str, Array]:
    """Columns of the table to write; of several outputs a group for each, by number."""
    import numpy as np

    from certgp.estimators.held_out import distribution_of_target, models_log

    if models_log(model):
        law = distribution_of_target(model, X)
        mean, variance = law.moments()
        ends = law.quantiles(np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage, 0.5]))
        found = {"mean": mean, "std": np.sqrt(variance)}
        found |= {name: ends[..., i] for i, name in enumerate(("lower", "upper", "median"))}
    else:
        mean, std = model.predict(X, return_std=True)
        lower, upper = model.predict_interval(X, coverage)
        found = {"mean": np.asarray(mean), "std": std, "lower": lower, "upper": upper}
    if model.outputs_ is None:
        return found
    return {f"{name}_{of}": each[:, j] for j, of in enumerate(name_outputs(model)) for name, each in found.items()}


def _names(model: GPRegressor) -> str:
    """The columns that are written."""
    from certgp.estimators.held_out import models_log

    names = ["mean", "std", "lower", "upper", *(["median"] if models_log(model) else [])]
    if model.outputs_ is None:
        return ", ".join(names)
    first = ", ".join(f"{name}_{name_outputs(model)[0]}" for name in names)
    return f"{first} and so on for {len(model.outputs_)} outputs"


def _mean_loss(model: GPRegressor, X: Array, y: Array) -> float:
    """Mean negative log predictive density, in the units of y."""
    from certgp.estimators.held_out import distribution_of_target, models_log

    if models_log(model):
        return -float(distribution_of_target(model, rows_for(model, X)).log_density(y).mean())
    return float(model.nlpd(rows_for(model, X, y)))


class _Scoring:
    """Sums over chunks from which the scores of all rows follow, where the files hold the target."""

    def __init__(self, table: NewTable | None, coverage: float, console: Console) -> None:
        self._targets = None if table is None else table.targets(_CHUNK_ROWS)
        self._coverage, self._console = coverage, console
        self._n, self._squares, self._losses, self._inside = 0, 0.0, 0.0, 0

    def add(self, model: GPRegressor, X: Array, predictions: Mapping[str, Array]) -> None:
        """Take in the next chunk; a target that is empty, as in many tables of new rows, is no error."""
        if self._targets is None:
            return
        try:
            y = next(self._targets)
        except DataFileError as error:
            self._console.notice(f"note: predictions are not scored: {error}")
            self._targets = None
            return
        self._n += len(y)
        self._squares += float(((predictions["mean"] - y) ** 2).sum())
        self._losses += len(y) * _mean_loss(model, X, y)
        self._inside += int(((predictions["lower"] <= y) & (y <= predictions["upper"])).sum())

    def scores(self) -> Scores | None:
        """The scores of all rows."""
        from certgp.estimators.scores import Scores

        if self._targets is None:
            return None
        n = self._n
        return Scores(math.sqrt(self._squares / n), self._losses / n, self._inside / n, self._coverage)
