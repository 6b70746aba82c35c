"""What a command prints: results on stdout, everything else on stderr, and a moving line only where someone watches."""

from __future__ import annotations

import codecs
import json
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TextIO

from certgp.cli.display import Display
from certgp.cli.words import in_cli_words
from certgp.errors import CertgpWarning
from certgp.json_values import finite

if TYPE_CHECKING:
    from certgp.data.tables import TableFiles
    from certgp.estimators.scores import Scores
    from certgp.training import Iteration

_NAME = re.compile(r"  \S.*?  +(?=\S)")  # what ``aligned`` and ``table`` begin a line with
_LEAST_WIDTH = 30  # in which to break lines


class Console:
    """The two streams of one command. Streams are looked up at each use, so that a redirected one is honoured."""

    def __init__(self, as_json: bool = False) -> None:
        self._as_json = as_json
        self._display = Display()

    def result(self, fields: Mapping[str, object], text: str) -> None:
        """The outcome of the command: one JSON object, or text for people."""
        self.status("")
        if not self._as_json and sys.stdout.isatty():
            text = in_width(text, shutil.get_terminal_size().columns)
        print(json.dumps(finite(fields), allow_nan=False) if self._as_json else text, flush=True)

    def copy(self, text: IO[bytes]) -> None:
        """The outcome as text for another program."""
        self.status("")
        shutil.copyfileobj(codecs.getreader("utf-8")(text), sys.stdout)
        sys.stdout.flush()

    def notice(self, text: str) -> None:
        """One line on stderr, whatever its text was before."""
        self.status("")
        print(one_line(text), file=sys.stderr, flush=True)

    def problems(self, found: Sequence[str]) -> None:
        """All that is wrong with a table on stderr: one line, or a list of lines."""
        if len(found) == 1:
            self.notice(f"error: {found[0]}")
            return
        self.notice(f"error: the table has {len(found)} problems; correct them all:")
        for problem in found:
            self.notice(f"- {problem}")

    def status(self, text: str, figures: str = "", share: float | None = None) -> None:
        """Replace the moving line, with a bar where the ``share`` of the work that is done is known; it exists on a
        terminal only, and an empty text removes it.
        """
        if text:
            self._display.show(text, figures, share)
        else:
            self._display.clear()

    def expect(self, seconds: float) -> None:
        """Tell how long the fit will take at most, so that progress can say what is left."""
        self._display.expect(seconds)

    def iteration(self, record: Iteration) -> None:
        """Progress of a fit; a training callback."""
        self._display.show_iteration(record)

    def stopping(self) -> None:
        """The user asked the fit to end."""
        self._display.stopping()

    @contextmanager
    def warnings_as_lines(self) -> Iterator[None]:
        """certgp's warnings as one line each, said once; those of other packages keep Python's form."""
        said: set[str] = set()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, CertgpWarning):
                self.notice(warnings.formatwarning(message, category, filename, lineno, line))
            elif str(message) not in said:
                said.add(str(message))
                self.notice(f"warning: {in_cli_words(str(message))}")

        with warnings.catch_warnings():
            warnings.simplefilter("always", CertgpWarning)
            warnings.showwarning = show
            yield


def one_line(text: str) -> str:
    """Any text as a single line."""
    return " ".join(text.split())


def in_width(text: str, width: int) -> str:
    """Lines broken between words where they are too long, a value below its beginning; commands stay whole, so that
    they can be copied.
    """
    return "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    name = _NAME.match(line)
    begin = name.end() if name else 0
    if len(line) <= width or line.startswith("certgp ", begin) or width - begin < _LEAST_WIDTH:
        return line
    if not line.strip("- "):
        return line[:width]
    words = line[begin:]
    return line[:begin] + textwrap.fill(words, width - begin, break_long_words=False, break_on_hyphens=False).replace(
        "\n", "\n" + " " * begin
    )


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[int] = (0,)) -> str:
    """A small table: the columns of text (by default the first) to the left, numbers to the right."""
    widths = [max(len(line[j]) for line in (header, *rows)) for j in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("  " + _table_line(line, widths, texts) for line in lines)


def score_rows(scores: Scores) -> list[tuple[str, str]]:
    """Scores in words, the same after a fit and after a prediction; names for ``aligned``."""
    return [
        ("RMSE", f"{scores.rmse:.5g}"),
        ("NLPD", f"{scores.nlpd:.4f} (mean negative log predictive density; lower is better)"),
        (
            "coverage",
            f"{100 * scores.coverage:.1f} % of the rows lie in their {100 * scores.nominal_coverage:.4g} % interval",
        ),
    ]


def skipped_fields(files: TableFiles) -> dict[str, object] | None:
    """For machines: what reading left out; None where bad rows are errors."""
    skipped = files.skipped
    if skipped is None:
        return None
    return {"n_rows": skipped.n_rows, "rows": dict(skipped.rows), "files": dict(skipped.files)}


def _table_line(cells: Sequence[str], widths: Sequence[int], texts: Collection[int]) -> str:
    padded = (
        cell.ljust(width) if j in texts else cell.rjust(width)
        for j, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
