"""Values of command-line options, checked while they are parsed so that nothing long starts with a bad one."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from certgp.cli.output import Console
from certgp.errors import InvalidInputError

if TYPE_CHECKING:  # the class exists for type checkers only
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DATA_HELP = (
    "CSV, TSV (also compressed), Parquet, Arrow, .npz (X, y) or .npy file; several files, a folder or a quoted glob "
    "form one table"
)
WEIGHTS_HELP = (
    "column of weights: the noise variance of a row is that of the model divided by its weight; 0 leaves it out"
)
DROP_HELP = "column to leave out; give it again, or put commas between names, for several"


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a bad command in one line; the usage is one ``--help`` away."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        if message.startswith("unrecognized arguments: ") and " -" not in message:
            message += " (an option takes one value; give it again for another, as in --drop a --drop b)"
        raise InvalidInputError(f"{message}; see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse in the name of the command what it does not know; the error says which help and option is meant."""
        found, rest = super().parse_known_args(args, namespace)
        if rest and " " in self.prog:  # of a command
            meant = difflib.get_close_matches(
                rest[0].partition("=")[0], re.findall(r"--[\w-]+", self.format_usage()), n=1, cutoff=0.7
            )
            likely = f" (did you mean {meant[0]}?)" if meant and rest[0].startswith("--") else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{likely}")
        return found, rest


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    examples: str,
    run: Callable[[argparse.Namespace, Console], int | None],
) -> argparse.ArgumentParser:
    """A command with what all commands have: examples in its help, ``--json`` and the function that runs it, which
    returns an exit code where it is not 0.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print one machine-readable JSON object")
    parser.set_defaults(run=run)
    return parser


def add_bad_rows_option(parser: argparse.ArgumentParser, left_out: str = "") -> None:
    """What to do with rows that miss a number."""
    parser.add_argument(
        "--on-bad-rows",
        choices=("error", "skip"),
        default="error",
        help="rows that miss a number, lines of another length, files that cannot be read: refuse them, or leave them "
        f"out and count them{left_out} (default: error)",
    )


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How rows are read that are passed over more than once."""
    add_bad_rows_option(parser)
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=size,
        default=2**30,
        help="memory for decoded rows, such as 500M or 4G; more rows go to a scratch file (default: 1G)",
    )
    parser.add_argument(
        "--scratch", metavar="DIR", type=Path, help="folder for that file (default: the system's for temporary files)"
    )


def column_names(given: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Columns named by an option that may be given again, or take several with commas between them; a column's own
    name may hold a comma.
    """
    split = ([each] if each in names else [name.strip() for name in each.split(",")] for each in given)
    return tuple(name for found in split for name in found)


def refuse_overwriting(out: Path, inputs: list[Path]) -> None:
    """An output that is also an input would destroy it."""
    if out.exists() and any(path.exists() and out.samefile(path) for path in inputs):
        raise InvalidInputError(f"--out {out} is one of the input files; choose another name")


def positive_int(text: str) -> int:
    """A whole number of at least 1."""
    return _whole_number(text, least=1)


def seed(text: str) -> int:
    """A whole number that can seed a generator."""
    return _whole_number(text, least=0)


def coverage(text: str) -> float:
    """A probability strictly between 0 and 1."""
    value = _number(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must lie strictly between 0 and 1, found {text!r}")
    return value


def positive_number(text: str) -> float:
    """A positive finite number."""
    value = _number(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive and finite, found {text!r}")
    return value


def rank(text: str) -> int | str:
    """A whole number of at least 1, or auto."""
    return text if text == "auto" else positive_int(text)


def fraction(text: str) -> float:
    """A share of the rows: 0 for none, and always less than all."""
    value = _number(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1, found {text!r}")
    return value


def size(text: str) -> int:
    """A number of bytes, or of kilo-, mega-, giga- or terabytes (K, M, G, T)."""
    units = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    unit = units.get(text[-1:].upper(), 1)
    value = _number(text if unit == 1 else text[:-1])
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a size such as 500M or 4G, found {text!r}")
    return int(value * unit)


def _whole_number(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value < 2**32:  # the range of a NumPy seed; a larger rank would not fit any machine
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least} (and below 2^32), found {text!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, found {text!r}") from None
