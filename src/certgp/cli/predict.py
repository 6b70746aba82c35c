"""certgp predict: predictions with uncertainty from a saved model."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_command, coverage, refuse_overwriting
from certgp.cli.columns import columns_for
from certgp.cli.output import Console, aligned, score_rows
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from certgp.cli.arguments import Commands
    from certgp.data.tables import Array, TableFiles
    from certgp.estimators import GPRegressor
    from certgp.estimators.scores import Scores

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


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, read, predict, write; score where the data hold the target too."""
    console.status("starting")
    from certgp.data.tables import check_writable, open_table, write_table
    from certgp.estimators import load

    printed = str(arguments.out) == "-"
    if printed and arguments.json:
        raise InvalidInputError("--out - prints the predictions and --json the summary; leave one of them out")
    if not printed:
        check_writable(arguments.out)
    files = open_table(arguments.data)
    refuse_overwriting(arguments.out, [arguments.model, *files.files])
    model = load(arguments.model)
    console.status("reading data")
    columns = columns_for(model, files, console)
    X = columns.read_inputs(model, files)
    n_rows = len(X)

    console.status(f"predicting {n_rows:,} rows")
    started = time.perf_counter()
    predictions = _predictions(model, X, arguments.coverage)
    if printed:
        console.csv(predictions)
        return
    write_table(arguments.out, predictions)
    seconds = time.perf_counter() - started
    scores = _scores(model, X, files, columns.target, arguments.coverage, console)
    fields: dict[str, object] = {
        "command": "predict",
        "model": str(arguments.model),
        "out": str(arguments.out),
        "n_rows": n_rows,
        "coverage": arguments.coverage,
        "seconds": seconds,
        "scores": asdict(scores) if scores else None,
    }
    rows = [("rows", f"{n_rows:,} in {seconds:.1f} s"), *(score_rows(scores) if scores else [])]
    console.result(fields, aligned([*rows, ("saved", f"{arguments.out} (columns mean, std, lower, upper)")]))


def _predictions(model: GPRegressor, X: ArrayLike, coverage: float) -> dict[str, Array]:
    mean, std = model.predict(X, return_std=True)
    lower, upper = model.predict_interval(X, coverage)
    return {"mean": mean, "std": std, "lower": lower, "upper": upper}


def _scores(
    model: GPRegressor, X: ArrayLike, files: TableFiles, target: str | None, coverage: float, console: Console
) -> Scores | None:
    """Scores where the target is there and usable; new rows often carry an empty target column, which is no error."""
    from certgp.estimators.scores import score

    if target is None:
        return None
    try:
        y = files.read([target]).values[:, 0]
    except DataFileError as error:
        console.notice(f"note: predictions are not scored: {error}")
        return None
    return score(model, X, y, coverage)
