"""certgp predict: predictions with uncertainty from a saved model."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_command, coverage, refuse_overwriting
from certgp.cli.output import Console, aligned, score_rows
from certgp.errors import DataFileError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from certgp.cli.arguments import Commands
    from certgp.data.tables import Array, TableFiles
    from certgp.estimators import GPRegressor
    from certgp.experiments.scores import Scores

_EXAMPLES = """\
  certgp predict price.model new.csv --out predictions.csv
  certgp predict y.model 'parts/*.parquet' --out predictions.parquet --coverage 0.9
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "predict mean, std, lower and upper per row with a saved model"
    parser = add_command(commands, "predict", summary, _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument("data", nargs="+", metavar="DATA", help=f"{DATA_HELP}; columns are matched by name")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help=".csv, .parquet or .npz file to write")
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
    from certgp.estimators.naming import named_rows

    check_writable(arguments.out)
    files = open_table(arguments.data)
    refuse_overwriting(arguments.out, [arguments.model, *files.files])
    model = load(arguments.model)
    console.status("reading data")
    inputs = files.read(input_columns(model, files))
    X = named_rows(inputs.values, inputs.names) if model_columns(model) else inputs.values
    n_rows = len(inputs.values)

    console.status(f"predicting {n_rows:,} rows")
    started = time.perf_counter()
    write_table(arguments.out, _predictions(model, X, arguments.coverage))
    seconds = time.perf_counter() - started
    scores = _scores(model, X, files, arguments.coverage, console)
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


def model_columns(model: GPRegressor) -> list[str]:
    """Columns the model was fitted on; none if it saw bare arrays."""
    return [str(name) for name in getattr(model, "feature_names_in_", ())]


def input_columns(model: GPRegressor, files: TableFiles) -> Sequence[str]:
    """The model's columns by name; a model fitted on bare arrays takes the columns in their order."""
    names = model_columns(model)
    if names:
        return names
    inputs = [name for name in files.names if not (name == "y" and files.files[0].suffix.lower() == ".npz")]
    if len(inputs) != model.n_features_in_:
        raise DataFileError(
            f"the model was fitted on {model.n_features_in_} column(s) without names but the data have {len(inputs)}; "
            "give exactly its input columns, in the order of the fit"
        )
    return inputs


def _scores(model: GPRegressor, X: ArrayLike, files: TableFiles, coverage: float, console: Console) -> Scores | None:
    """Scores where the target is there and usable; new rows often carry an empty target column, which is no error."""
    from certgp.experiments.scores import score

    target = getattr(model, "target_name_", None)
    if target is None or target not in files.names:
        return None
    try:
        y = files.read([target]).values[:, 0]
    except DataFileError as error:
        console.notice(f"note: predictions are not scored: {error}")
        return None
    return score(model, X, y, coverage)
