"""certgp predict: predictions with uncertainty from a saved model."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_bad_rows_option, add_command, coverage, refuse_overwriting
from certgp.cli.cluster import add_scheduler_option, engine_of, refuse_scheduler
from certgp.cli.columns import Columns, columns_for
from certgp.cli.new_rows import ModelFacts, NewTable, open_new
from certgp.cli.output import Console, aligned, score_rows, skipped_fields
from certgp.cli.table_options import add_text_options
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.cli.predicting import Predicted, ScoreCounts
    from certgp.data.tables import Columns as TableColumns
    from certgp.data.tables import TableFiles
    from certgp.engines.dask import DaskEngine
    from certgp.estimators import GPRegressor
    from certgp.estimators.validation import OutsideRange

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
    add_scheduler_option(parser, "predict there")


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
    if facts.encoding is not None:
        refuse_scheduler(arguments, "a table with categories, dates or gaps")
    checked = facts.check(files, arguments)
    from certgp.estimators.persistence import load_estimator  # torch: all that is cheap has been checked

    model, engine = load_estimator(arguments.model), engine_of(arguments)
    scores_wanted = not printed and model.outputs_ is None
    if engine is None:
        table = open_new(model, files, checked, console)
        scored = _may_score(scores_wanted and table.has_target, files, console)
        parts = _predict_here(model, table, arguments.coverage, scored)
    else:
        columns = columns_for(model, files, console)
        scored = _may_score(scores_wanted and columns.target is not None, files, console)
        columns = columns if scored else replace(columns, target=None)
        parts = _predict_there(engine, model, files, columns, arguments.coverage)
    started = time.perf_counter()
    if printed:
        with tempfile.TemporaryFile() as text:  # nothing is printed where a row further down is refused
            with writing_to(text, ".csv") as write:
                _write_all(parts, files, scored, write, console)
            text.seek(0)
            console.copy(text)
        return
    with writing_table(arguments.out) as write:
        outside, counts = _write_all(parts, files, scored, write, console)
    seconds, n_rows = time.perf_counter() - started, outside.n_rows
    scores = None if counts is None else counts.scores(arguments.coverage)
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


def _names(model: GPRegressor) -> str:
    """The columns that are written."""
    from certgp.estimators.held_out import models_log
    from certgp.estimators.outputs import name_outputs

    names = ["mean", "std", "lower", "upper", *(["median"] if models_log(model) else [])]
    if model.outputs_ is None:
        return ", ".join(names)
    first = ", ".join(f"{name}_{name_outputs(model)[0]}" for name in names)
    return f"{first} and so on for {len(model.outputs_)} outputs"


def _may_score(wanted: bool, files: TableFiles, console: Console) -> bool:
    """Can predictions be scored, where that is wanted? Rows that are left out would leave their targets behind."""
    if wanted and files.skipped is not None:
        console.notice("note: predictions are not scored with --on-bad-rows skip")
        return False
    return wanted


def _write_all(
    parts: Iterator[Predicted],
    files: TableFiles,
    scored: bool,
    write: Callable[[TableColumns], None],
    console: Console,
) -> tuple[OutsideRange, ScoreCounts | None]:
    """Write the predictions of all rows; how many there are and, where they are scored, the counts of that."""
    from certgp.cli.predicting import ScoreCounts
    from certgp.estimators.validation import OutsideRange

    outside, started = OutsideRange(), time.perf_counter()
    counts = ScoreCounts() if scored else None
    for part in parts:
        if part.trouble is not None and counts is not None:
            console.notice(f"note: predictions are not scored: {part.trouble}")
        counts = None if counts is None or part.counts is None else counts + part.counts
        outside += part.outside
        write(part.columns if files.skipped is None else {"row": part.rows, **part.columns})
        speed = outside.n_rows / (time.perf_counter() - started)
        console.status("predicting", f"{outside.n_rows:,} rows, {speed:,.0f} rows/s")
    if not outside.n_rows:
        raise DataFileError(f"{files.files[0]} has no rows that can be used; at least one is needed")
    if files.skipped is not None:
        files.skipped.warn()
    outside.warn()
    return outside, counts


def _predict_here(model: GPRegressor, table: NewTable, coverage: float, scored: bool) -> Iterator[Predicted]:
    """Some rows at a time; a target that is empty, as in many tables of new rows, is no error."""
    from certgp.cli.predicting import predict_rows

    targets = table.targets(_CHUNK_ROWS) if scored else None
    for numbers, X in table.inputs(_CHUNK_ROWS):
        y, trouble = None, None
        try:
            y = None if targets is None else next(targets)
        except DataFileError as error:
            targets, trouble = None, str(error)
        yield replace(predict_rows(model, numbers, X, y, coverage), trouble=trouble)


def _predict_there(
    engine: DaskEngine, model: GPRegressor, files: TableFiles, columns: Columns, coverage: float
) -> Iterator[Predicted]:
    """On the workers of a cluster, piece by piece, in the order of the rows."""
    from certgp.cli.predicting import PredictPiece, pieces_of

    pieces, before = pieces_of(files.absolute()), 0  # workers run in folders of their own
    task = PredictPiece(model, columns, coverage, files.skipped is not None)
    for part in engine.map(task, pieces):
        if files.skipped is not None and part.skipped is not None:
            files.skipped.add(part.skipped)
        if part.columns:
            yield replace(part, rows=before + part.rows)
        before += part.behind
