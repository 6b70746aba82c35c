"""certgp certify: what is proven about a saved model."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_command, coverage, positive_int, positive_number
from certgp.cli.output import Console
from certgp.cli.predict import input_columns, model_columns
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from certgp.cli.arguments import Commands
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.estimators.low_rank import LowRankRegressor
    from certgp.guarantees import Certificate, CostEstimate

_EXAMPLES = """\
  certgp certify price.model                                      the certificate saved with the model
  certgp certify price.model new.csv                              bounds on every prediction at new.csv
  certgp certify price.model new.csv --train train.csv --tol 0.1  sharper ones, through a reference on the training rows
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "certify", "say with proof how far a model is from the exact GP", _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument("data", nargs="*", metavar="DATA", help=f"rows whose predictions to certify: {DATA_HELP}")
    parser.add_argument(
        "--train",
        nargs="+",
        metavar="FILE",
        help="the training rows, with the target; a reference model read over them gives sharper and two-sided bounds",
    )
    parser.add_argument("--reference-rank", metavar="N", type=positive_int, help="size of that reference")
    parser.add_argument(
        "--tol",
        metavar="T",
        type=positive_number,
        help="double the reference until the KL half-width per row, or with DATA the error of the means, is at most T",
    )
    parser.add_argument("--delta", metavar="P", type=coverage, help="allow a statistical statement that fails with P")
    parser.add_argument(
        "--exact-solve",
        action="store_true",
        help="where the reference is too weak for --tol, solve the exact system; asks first, showing the cost",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before --exact-solve")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, read, certify, print."""
    _check(arguments)
    console.status("starting")
    from certgp.data.tables import open_table
    from certgp.estimators import load

    files = open_table(arguments.data) if arguments.data else None
    train = open_table(arguments.train) if arguments.train else None
    model = load(arguments.model)
    X = _inputs(model, files) if files is not None else None
    console.status("certifying")
    started = time.perf_counter()
    certificate = _certificate(model, X, train, arguments, console)
    fields: dict[str, object] = {"command": "certify", "model": str(arguments.model)}
    fields |= certificate.to_dict() | {"seconds": time.perf_counter() - started}
    console.result(fields, str(certificate))
    if train is None and _says_nothing(certificate, model):
        console.notice(
            "note: without the training rows the bound on predictions exceeds the prior's own spread; give them with "
            "--train FILE, and the error you want with --tol, for one that says something"
        )


def _says_nothing(certificate: Certificate, model: GPRegressor) -> bool:
    """Is a prediction's proven error larger than what is known without any data?"""
    spread = float(model.kernel_.signal_variance) ** 0.5
    return certificate.mean_error is not None and float(max(certificate.mean_error)) > spread


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    asked = [name for name in ("reference_rank", "tol", "delta") if getattr(arguments, name) is not None]
    asked += ["exact_solve"] if arguments.exact_solve else []
    if asked and not arguments.train:
        option = asked[0].replace("_", "-")
        raise InvalidInputError(f"--{option} reads the training rows again; give them with --train FILE")
    if arguments.exact_solve and (arguments.tol is None or not arguments.data):
        raise InvalidInputError("--exact-solve needs --tol and DATA, the rows whose predictions to certify")


def _inputs(model: GPRegressor, files: TableFiles) -> ArrayLike:
    from certgp.estimators.naming import named_rows

    table = files.read(input_columns(model, files))
    return named_rows(table.values, table.names) if model_columns(model) else table.values


def _certificate(
    model: GPRegressor, X: ArrayLike | None, train: TableFiles | None, arguments: argparse.Namespace, console: Console
) -> Certificate:
    from certgp.estimators.low_rank import LowRankRegressor

    if not isinstance(model, LowRankRegressor):
        return model.certify(X)
    if train is None:
        return model.certify(X)
    return model.certify(
        X,
        rows=_training_rows(model, train),
        reference_rank=arguments.reference_rank or (None if arguments.tol else 4 * model.rank_),
        tol=arguments.tol,
        delta=arguments.delta,
        exact_solve=_asking(arguments.yes, console) if arguments.exact_solve else False,
    )


def _training_rows(model: LowRankRegressor, train: TableFiles) -> tuple[ArrayLike, ArrayLike]:
    target = getattr(model, "target_name_", None) or "y"
    if target not in train.names:
        raise DataFileError(f"the files of --train have no column {target!r}, the target the model was fitted on")
    return _inputs(model, train), train.read([target]).values[:, 0]


def _asking(yes: bool, console: Console) -> Callable[[CostEstimate], bool]:
    """A function that shows the cost and asks; without a terminal it needs --yes."""

    def confirm(cost: CostEstimate) -> bool:
        console.notice(f"note: {cost}")
        if yes:
            return True
        if not sys.stdin.isatty():
            raise InvalidInputError("--exact-solve asks before it starts and there is no terminal; add --yes")
        print("start? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return confirm
