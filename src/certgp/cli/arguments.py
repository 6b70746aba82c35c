"""Values of command-line options, checked while they are parsed so that nothing long starts with a bad one."""

from __future__ import annotations

import argparse
from typing import NoReturn

from certgp.errors import InvalidInputError

DATA_HELP = "CSV, Parquet, .npz (X, y) or .npy file; several files or a quoted glob form one table"


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a bad command in one line; the usage is one ``--help`` away."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        raise InvalidInputError(f"{message}; see '{self.prog} --help'")


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


def fraction(text: str) -> float:
    """A share of the rows: 0 for none, and always less than all."""
    value = _number(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1, found {text!r}")
    return value


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
