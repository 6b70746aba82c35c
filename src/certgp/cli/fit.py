"""certgp fit: learn a model from a table and save it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certgp.cli.arguments import DATA_HELP, add_parser_for, fraction, positive_int, seed
from certgp.cli.output import Console, aligned, score_rows
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    from certgp.data import Table
    from certgp.data.tables import Array, TableFiles
    from certgp.estimators import GPRegressor
    from certgp.experiments.scores import Scores

METHODS = ("mercer", "fourier", "sparse", "exact")
KERNELS = ("gaussian", "matern12", "matern32", "matern52")
DEFAULT_RANK = 100

_EXAMPLES = """\
examples:
  certgp fit train.csv --target price --out price.model
  certgp fit train.npz --out model --method sparse --kernel matern52 --rank 300
  certgp fit 'parts/*.parquet' --target y --drop id --test-fraction 0.1 --out y.model --json
"""


def add_parser(commands: Any) -> None:
    """Declare the command and its options."""
    parser = add_parser_for(commands, "fit", "learn a model from a table and save it", _EXAMPLES, run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--target", metavar="COL", help="column to predict (default for .npz: y)")
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="file to save the model in")
    parser.add_argument("--method", choices=METHODS, default="mercer", help="kind of model (default: mercer)")
    parser.add_argument("--rank", metavar="N", type=positive_int, help=f"number of features (default: {DEFAULT_RANK})")
    parser.add_argument("--kernel", choices=KERNELS, default="gaussian", help="covariance function (default: gaussian)")
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="seed of all random choices (default: 0)")
    parser.add_argument(
        "--test-fraction", metavar="F", type=fraction, default=0.0, help="share of the rows to keep out of the fit and score"
    )
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help="column to leave out; may be repeated")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check everything, read, fit, score, save, print: in this order, so that mistakes show before the long part."""
    _check_combination(arguments)
    console.status("starting")
    from certgp.data.tables import check_writable, open_table

    check_writable(arguments.out, endings=())
    files = open_table(arguments.data)
    if any(arguments.out.exists() and arguments.out.samefile(file) for file in files.files):
        raise InvalidInputError(f"--out {arguments.out} is one of the data files; choose another name")
    target = _target(arguments.target, files)
    model = _build(arguments, console)
    console.status("reading data")
    inputs, y = files.read(_columns(files, target, arguments.drop)).split(target)
    train, test = _split_rows(len(y), arguments.test_fraction, arguments.seed)

    console.status("fitting")
    seconds = _fit(model, inputs, y, train, target)
    scores = _score(model, inputs.values[test], y[test]) if len(test) else None
    _save(model, arguments.out, console)
    console.result(
        _fields(arguments, model, inputs, target, len(train), seconds, scores),
        _text(arguments, model, inputs, target, len(train), seconds, scores),
    )
