"""Options about tables: how texts are written, and what to do with columns that are not numbers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from certgp.cli.arguments import column_names, positive_int

if TYPE_CHECKING:
    from certgp.data.tables import TableFiles
    from certgp.tabular.encoding import TableOptions
    from certgp.tabular.parsing import TextFormat

_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


def add_text_options(parser: argparse.ArgumentParser, default: str = "that of the file's ending, and .") -> None:
    """How columns and numbers are written in text files."""
    parser.add_argument(
        "--sep",
        metavar="C",
        type=_separator,
        help=f"what separates the columns of text files, such as ';' or tab (default of this and --decimal: {default})",
    )
    parser.add_argument("--decimal", metavar="C", choices=(".", ","), help="decimal mark of text files: . or ,")


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """What to do with columns that are not numbers."""
    add_text_options(parser)
    parser.add_argument(
        "--missing",
        choices=("refuse", "impute"),
        help="gaps among the inputs: refuse them, or fill them in, with a column that says where (default: refuse)",
    )
    parser.add_argument(
        "--categories",
        metavar="COL",
        action="append",
        default=[],
        help="column of numbers that are names, such as codes; give it again, or put commas, for several",
    )
    parser.add_argument(
        "--keep", metavar="COL", action="append", default=[], help="column to use although it looks like an identifier"
    )
    parser.add_argument(
        "--max-levels",
        metavar="N",
        type=positive_int,
        default=10,
        help="a category of up to N levels becomes a column of 0 and 1 for each, one of more the mean target of each "
        "level (default: 10)",
    )
    parser.set_defaults(log_target=False, group=None, time_split=None)


def add_hold_out_options(parser: argparse.ArgumentParser) -> None:
    """What is learned, and which rows are held out."""
    parser.add_argument(
        "--log-target",
        action="store_true",
        help="learn log(target): for positive targets with a long tail; scores and predictions are in its own units",
    )
    parser.add_argument(
        "--group",
        metavar="COL",
        help="hold out whole groups, such as customers, so that scores are about new ones; not used as an input",
    )
    parser.add_argument(
        "--time-split",
        metavar="COL",
        help="hold out the latest rows by this column, so that scores are about the future",
    )


def given_format(arguments: argparse.Namespace, fitted: TextFormat | None = None) -> TextFormat:
    """How texts are written: as the options say, or else as those of the fit."""
    from certgp.tabular.parsing import TextFormat

    known = TextFormat() if fitted is None else fitted
    return TextFormat(arguments.sep or known.sep, arguments.decimal or known.decimal)


def options_of(arguments: argparse.Namespace, files: TableFiles) -> TableOptions:
    """What the user says of the columns."""
    from certgp.errors import InvalidInputError
    from certgp.tabular.encoding import TableOptions

    categories, keep = column_names(arguments.categories, files.names), kept_columns(arguments, files)
    files.require(categories)
    if arguments.max_levels < 2:
        raise InvalidInputError("--max-levels must be at least 2: a category of one level says nothing")
    return TableOptions(
        arguments.missing or "refuse",
        arguments.log_target,
        categories,
        keep,
        arguments.max_levels,
        arguments.seed,
    )


def kept_columns(arguments: argparse.Namespace, files: TableFiles) -> tuple[str, ...]:
    """Columns to use although they look like identifiers."""
    keep = column_names(arguments.keep, files.names)
    files.require(keep)
    return keep


def asks_for_encoding(arguments: argparse.Namespace) -> bool:
    """Do the options say that the table is more than numbers?"""
    given = vars(arguments)
    names = ("log_target", "categories", "group", "time_split", "sep", "decimal")
    return arguments.missing == "impute" or any(given[name] for name in names)


def _separator(text: str) -> str:
    found = _SEPARATORS.get(text.lower(), text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, or tab, found {text!r}")
    return found
