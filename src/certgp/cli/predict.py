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
from certgp.cli.cluster import add_scheduler_option, engine_of
from certgp.cli.columns import Columns, columns_for
from certgp.cli.output import Console, aligned, score_rows, skipped_fields
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.cli.predicting import Predicted
    from certgp.data.tables import Columns as TableColumns
    from certgp.data.tables import TableFiles
    from certgp.engines.dask import DaskEngine
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
    add_bad_rows_option(parser, "; a column 'row' then says which rows of DATA, from 0, the others are")
    add_scheduler_option(parser, "predict there")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, then read, predict, write and score some rows at a time; the file appears when all is done."""
    console.status("starting")
    from certgp.data.skipped import skipping
    from certgp.data.tables import check_writable, open_table, writing_table, writing_to
    from certgp.estimators import load

    printed = str(arguments.out) == "-"
    if printed and arguments.json:
        raise InvalidInputError("--out - prints the predictions and --json the summary; leave one of them out")
    if not printed:
        check_writable(arguments.out)
    files = open_table(arguments.data, skipping(arguments.on_bad_rows))
    refuse_overwriting(arguments.out, [arguments.model, *files.files])
    model = load(arguments.model)
    columns = columns_for(model, files, console)
    names = "mean, std, lower, upper"
    if model.outputs_ is not None:
        columns = replace(columns, target=None)
        names = f"mean_0, std_0, lower_0, upper_0 and so on for {len(model.outputs_)} outputs"
    engine = engine_of(arguments)
    started = time.perf_counter()
    if printed:
        with tempfile.TemporaryFile() as text:  # nothing is printed where a row further down is refused
            with writing_to(text, ".csv") as write:
                _predict(model, files, replace(columns, target=None), arguments.coverage, write, console, engine)
            text.seek(0)
            console.copy(text)
        return
    with writing_table(arguments.out) as write:
        n_rows, scores = _predict(model, files, columns, arguments.coverage, write, console, engine)
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
    console.result(fields, aligned([*rows, ("saved", f"{arguments.out} (columns {names})")]))


def _predict(
    model: GPRegressor,
    files: TableFiles,
    columns: Columns,
    coverage: float,
    write: Callable[[TableColumns], None],
    console: Console,
    engine: DaskEngine | None = None,
) -> tuple[int, Scores | None]:
    """Write the predictions of all rows; how many there are and, where the files hold the target, their scores."""
    from certgp.cli.predicting import ScoreCounts
    from certgp.estimators.validation import OutsideRange

    skipped = files.skipped
    if skipped is not None and columns.target is not None:
        console.notice("note: predictions are not scored with --on-bad-rows skip")
        columns = replace(columns, target=None)
    outside, started = OutsideRange(), time.perf_counter()
    counts = None if columns.target is None else ScoreCounts()
    run = _predict_here(model, files, columns, coverage)
    for part in run if engine is None else _predict_there(engine, model, files, columns, coverage):
        if part.trouble is not None and counts is not None:
            console.notice(f"note: predictions are not scored: {part.trouble}")
        counts = None if counts is None or part.counts is None else counts + part.counts
        outside += part.outside
        write(part.columns if skipped is None else {"row": part.rows, **part.columns})
        speed = outside.n_rows / (time.perf_counter() - started)
        console.status("predicting", f"{outside.n_rows:,} rows, {speed:,.0f} rows/s")
    if not outside.n_rows:
        raise DataFileError(f"{files.files[0]} has no rows that can be used; at least one is needed")
    if skipped is not None:
        skipped.warn()
    outside.warn()
    return outside.n_rows, None if counts is None else counts.scores(coverage)


def _predict_here(model: GPRegressor, files: TableFiles, columns: Columns, coverage: float) -> Iterator[Predicted]:
    """Some rows at a time; a target that is empty, as in many tables of new rows, is no error."""
    from certgp.cli.predicting import predict_rows

    targets = None if columns.target is None else files.chunks([columns.target], _CHUNK_ROWS)
    for numbers, X in files.chunks(columns.inputs, _CHUNK_ROWS):
        y, trouble = None, None
        try:
            y = None if targets is None else next(targets)[1][:, 0]
        except DataFileError as error:
            targets, trouble = None, str(error)
        yield replace(predict_rows(model, numbers, X, y, coverage), trouble=trouble)


def _predict_there(
    engine: DaskEngine, model: GPRegressor, files: TableFiles, columns: Columns, coverage: float
) -> Iterator[Predicted]:
    """On the workers of a cluster, piece by piece, in the order of the rows."""
    from certgp.cli.predicting import PredictPiece, pieces_of

    pieces, before = pieces_of(files), 0
    task = PredictPiece(model, columns, coverage, files.skipped is not None)
    for part in engine.map(task, pieces):
        if files.skipped is not None and part.skipped is not None:
            files.skipped.add(part.skipped)
        if part.columns:
            yield replace(part, rows=before + part.rows)
        before += part.behind
