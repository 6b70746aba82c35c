"""certgp certify: what is proven about a saved model."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_command, add_reading_options, coverage, positive_int, positive_number
from certgp.cli.columns import columns_for, named_for
from certgp.cli.output import Console
from certgp.cli.training_data import read_rows, split_rows
from certgp.errors import DataFileError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.arguments import Commands
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.guarantees import Certificate, CostEstimate

ABOVE_MAX_ERROR = 3  # exit code
_EXAMPLES = """\
  certgp certify price.model                                      the certificate saved with the model
  certgp certify price.model new.csv                              bounds on every prediction at new.csv (Fourier models,
                                                                  which --method auto may choose, need --train)
  certgp certify price.model new.csv --train train.csv --tol 0.1  sharper ones, through a reference on the training rows
  certgp certify price.model new.csv --train train.csv --tol 0.1 --max-error 1 || echo 'not proven within 1'
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
        help="double the reference until the KL half-width per row is at most T or, with DATA, the means of the exact "
        "GP are known to +-T; the model's own distance to them may be larger, and is then shown to be",
    )
    parser.add_argument(
        "--max-error",
        metavar="E",
        type=positive_number,
        help=f"with DATA: exit with code {ABOVE_MAX_ERROR} unless every prediction is proven to lie within E of the "
        "exact GP's, in the units of the target",
    )
    parser.add_argument("--delta", metavar="P", type=coverage, help="allow a statistical statement that fails with P")
    parser.add_argument(
        "--exact-solve",
        action="store_true",
        help="where the reference is too weak for --tol, solve the exact system; asks first, showing the cost",
    )
    add_reading_options(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask before --exact-solve")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Check, read, certify, print, judge."""
    _check(arguments)
    console.status("starting")
    from certgp.data.skipped import skipping
    from certgp.data.tables import open_table
    from certgp.estimators import load

    files = open_table(arguments.data, skipping(arguments.on_bad_rows)) if arguments.data else None
    train = open_table(arguments.train, skipping(arguments.on_bad_rows)) if arguments.train else None
    model = load(arguments.model)
    X = None
    if files is not None:
        X = named_for(model, read_rows(files, columns_for(model, files, console).inputs, None, None, arguments))
    console.status("certifying")
    started = time.perf_counter()
    certificate = _certificate(model, X, train, arguments, console)
    fields: dict[str, object] = {"command": "certify", "model": str(arguments.model)}
    fields |= certificate.to_dict() | {"seconds": time.perf_counter() - started}
    console.result(fields, str(certificate))
    return _judged(certificate, arguments.max_error, console)


def _judged(certificate: Certificate, most: float | None, console: Console) -> int:
    """The exit code, and a line that says why it is not 0."""
    if most is None or certificate.mean_error is None or certificate.mean_error_lower is None:
        return 0
    above = int((certificate.mean_error > most).sum())
    surely = int((certificate.mean_error_lower > most).sum())
    if not above:
        return 0
    console.notice(
        f"above --max-error {most:g}: {above} of {len(certificate.mean_error)} prediction(s) are not proven to lie "
        f"within it, of which {surely} are proven to lie outside"
        + ("" if surely == above else "; --train FILE with a small --tol may prove more")
    )
    return ABOVE_MAX_ERROR


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    asked = [name for name in ("reference_rank", "tol", "delta") if getattr(arguments, name) is not None]
    asked += ["exact_solve"] if arguments.exact_solve else []
    if asked and not arguments.train:
        option = asked[0].replace("_", "-")
        raise InvalidInputError(f"--{option} reads the training rows again; give them with --train FILE")
    if arguments.exact_solve and (arguments.tol is None or not arguments.data):
        raise InvalidInputError("--exact-solve needs --tol and DATA, the rows whose predictions to certify")
    if arguments.max_error is not None and not arguments.data:
        raise InvalidInputError("--max-error needs DATA, the rows whose predictions to certify")


def _certificate(
    model: GPRegressor, X: Rows | None, train: TableFiles | None, arguments: argparse.Namespace, console: Console
) -> Certificate:
    from certgp.checks import check_reference_rank

    if train is None:
        return model.certify(X)
    rows = _training_rows(model, train, arguments, console)
    if arguments.reference_rank is not None:
        check_reference_rank("--reference-rank", arguments.reference_rank, rows.n_rows)
    return model.certify(
        X,
        rows=rows,
        reference_rank=arguments.reference_rank or (None if arguments.tol else 4 * model.rank_),
        tol=arguments.tol,
        delta=arguments.delta,
        exact_solve=_asking(arguments.yes, console) if arguments.exact_solve else False,
    )


def _training_rows(model: GPRegressor, train: TableFiles, arguments: argparse.Namespace, console: Console) -> Rows:
    """The rows the model learned from; those that 'fit' held out for its test are left out again."""
    import numpy as np

    from certgp.data import PickedRows

    columns = columns_for(model, train, console)
    if columns.target is None:
        known = model.target_name_ or "y"
        raise DataFileError(f"the files of --train have no column {known!r}, the target the model was fitted on")
    weights = None if model.table_ is None else model.table_.weights
    rows = named_for(model, read_rows(train, columns.inputs, columns.target, weights, arguments))
    given = rows.weights(slice(None))
    learned = _rows_of_the_fit(model, np.ones(rows.n_rows, dtype=bool) if given is None else given != 0.0)
    if len(learned) == rows.n_rows:
        return rows
    console.notice(f"note: the {rows.n_rows - len(learned)} row(s) that the fit held out for its test are left out")
    return PickedRows(rows, learned)


def _rows_of_the_fit(model: GPRegressor, present: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Which of some rows the model learned from: all, or those of the split that ``fit --test-fraction`` made; those of
    weight zero, not ``present``, were left out.
    """
    n, learned, table = len(present), model.n_rows_, model.table_
    if int(present.sum()) == learned:
        return split_rows(n, 0.0, 0)[0]
    if table is not None and table.test_fraction and n == table.n_rows:
        rows, _ = split_rows(n, table.test_fraction, table.seed)
        if int(present[rows].sum()) == learned:
            return rows
    held_out = (
        f" of {table.n_rows}, with --test-fraction {table.test_fraction:g}" if table and table.test_fraction else ""
    )
    raise DataFileError(
        f"the files of --train have {n} row(s) but the model learned from {learned}{held_out}; give the file(s) that "
        "were given to 'certgp fit'"
    )


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
