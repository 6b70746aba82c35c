"""certgp report: one page about a saved model."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import DATA_HELP, add_command, add_reading_options, column_names, refuse_overwriting
from certgp.cli.encoded_data import find_rows_of_fit
from certgp.cli.fitted_rows import training_rows
from certgp.cli.new_rows import ModelFacts, read_new
from certgp.cli.output import Console, aligned
from certgp.cli.table_options import add_text_options
from certgp.cli.training_data import split_rows
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.tabular.reading import CheckedTable

ENDINGS = (".html", ".htm")
_EXAMPLES = """\
  certgp report price.model train.csv --out report.html                  judged by the rows that the fit held out
  certgp report price.model new.csv --train train.csv --out report.html  judged by other rows
  certgp report both.model train.csv --outputs price --out report.html   one of several targets
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "write one page about a model: scores, calibration, inputs, what is proven, which rank"
    parser = add_command(commands, "report", summary, _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help=f"rows with the target that the model has not learned from, or the table of the fit: {DATA_HELP}",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help=".html file to write")
    parser.add_argument(
        "--train",
        nargs="+",
        metavar="FILE",
        help="the table of the fit, where DATA is another: simple models learn from it and predictions are certified",
    )
    parser.add_argument("--title", help="title of the page")
    parser.add_argument(
        "--outputs",
        metavar="COL",
        action="append",
        help="of a model of several targets, those to report on; give it again, or put commas (default: all)",
    )
    add_text_options(parser, "those of the fit")
    add_reading_options(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, read, gather, write."""
    console.status("starting")
    from certgp.data.tables import check_writable

    check_writable(arguments.out, endings=ENDINGS)
    facts = ModelFacts.read(arguments.model)
    _check_outputs(facts, arguments)
    files = facts.open(arguments.data, arguments)
    train = facts.open(arguments.train, arguments) if arguments.train else None
    refuse_overwriting(arguments.out, [arguments.model, *files.files])
    checked = facts.check(files, arguments)
    from certgp.estimators.persistence import load_estimator  # torch: all that is cheap has been checked

    model = load_estimator(arguments.model)
    started = time.perf_counter()
    held_out, learned = _rows(model, files, train, checked, arguments, console)
    console.status("writing the report")
    chosen = _chosen(facts, arguments)
    page = model.report(held_out, path=arguments.out, rows=learned, title=arguments.title, outputs=chosen)
    size = len(page.html.encode()) / 1e3
    fields = {
        "command": "report",
        "model": str(arguments.model),
        "out": str(arguments.out),
        "n_rows": held_out.n_rows,
        "kilobytes": size,
        "seconds": time.perf_counter() - started,
    }
    text = aligned(
        [
            ("judged by", f"{held_out.n_rows:,} rows"),
            ("saved", f"{arguments.out} ({size:.0f} KB, open it in a browser)"),
        ]
    )
    console.result(fields, text)


def _check_outputs(facts: ModelFacts, arguments: argparse.Namespace) -> None:
    """Refuse what can be seen from the model file alone."""
    if facts.outputs > 1 and facts.encoding is None:
        raise InvalidInputError(
            f"{arguments.model} has {facts.outputs} outputs without names, which no table can hold; write its report "
            "in Python: certgp.load(...).report(X, y)"
        )
    if arguments.outputs and facts.outputs == 1:
        raise InvalidInputError(f"--outputs is for models of several targets, and {arguments.model} has one")
    known = () if facts.encoding is None else facts.encoding.targets
    for name in _chosen(facts, arguments) or ():
        if name not in known:
            raise InvalidInputError(f"--outputs names {name!r}, and the targets of the model are {', '.join(known)}")


def _chosen(facts: ModelFacts, arguments: argparse.Namespace) -> tuple[str, ...] | None:
    """The outputs that were asked for; None where none are named."""
    known = () if facts.encoding is None else facts.encoding.targets
    return column_names(arguments.outputs, known) if arguments.outputs else None


def _rows(
    model: GPRegressor,
    files: TableFiles,
    train: TableFiles | None,
    checked: CheckedTable | None,
    arguments: argparse.Namespace,
    console: Console,
) -> tuple[Rows, Rows | None]:
    """Rows to judge by, and those the model learned from where they are known: the table of the fit holds both."""
    from certgp.data import PickedRows

    if model.encoding_ is not None and train is None and set(model.encoding_.targets) <= set(files.names):
        found = find_rows_of_fit(model, files, arguments)
        if found is not None:
            learned, held_out = found
            return learned if held_out is None else held_out, learned
    rows = read_new(model, files, checked, arguments, console, with_target=True)
    if train is not None:
        return rows, training_rows(model, train, arguments, console)
    table = model.table_
    if table is not None and model.encoding_ is None and rows.n_rows == table.n_rows:
        learned = training_rows(model, files, arguments, console)
        if not table.test_fraction:
            return rows, learned  # the page says that these are no new rows
        return PickedRows(rows, split_rows(rows.n_rows, table.test_fraction, table.seed)[1]), learned
    return rows, None
