"""certgp reproduce: the paper's tables and figures, computed again and set beside the paper's numbers."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command
from certgp.cli.output import Console, finite, table
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.experiments.cells import Cell
    from certgp.experiments.experiment import Experiment, Row

_ALL = "all"
# drawings of an experiment's rows, by its name: modules of certgp.report.paper with a function draw(rows)
_DRAWINGS = {
    "figure1": "figure1",
    "figure2": "figure2",
    "curves": "curves",
    "ranks": "ranks",
    "table-nlpd": "linear_table",
    "table-rmse": "linear_table",
    "table-deep": "deep_table",
    "sensitivity": "sensitivity",
    "electric": "electric",
}
_COLOURS = 128  # line drawings need no more, and version control keeps every PNG
_PRINTED = 60  # rows on the screen; the files hold all
_EXAMPLES = """\
  certgp reproduce figure2
  certgp reproduce all --quick                          a small version of everything, in a few minutes
  certgp reproduce table-nlpd --only data=elevators rank=6,10 split=0
  certgp reproduce table-nlpd --show                    what is finished so far, without computing anything

Finished cells are kept in DIR/cells: a run that was interrupted goes on where it was.
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "compute a table or figure of the paper and set it beside the paper's numbers"
    parser = add_command(commands, "reproduce", summary, _EXAMPLES, run)
    parser.add_argument("name", choices=[*_DRAWINGS, _ALL], metavar="NAME", help=f"{', '.join(_DRAWINGS)} or {_ALL}")
    parser.add_argument("--quick", action="store_true", help="a small version: fewer rows, splits and iterations")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("certgp-results"),
        help="directory for results and finished cells (default: certgp-results)",
    )
    parser.add_argument(
        "--only", metavar="KEY=VALUE", nargs="+", default=[], help="compute only cells with these settings"
    )
    parser.add_argument("--show", action="store_true", help="show what is finished; compute nothing")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Compute what is missing, write JSON, CSV and a figure, print the rows."""
    out: Path = arguments.out
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; give the name of a directory")
    console.status("starting")
    from certgp.experiments.catalogue import experiment

    names = list(_DRAWINGS) if arguments.name == _ALL else [arguments.name]
    out.mkdir(parents=True, exist_ok=True)
    fields, texts = [], []
    for name in names:
        found = experiment(name)
        rows, done, total = _rows(found, arguments, console)
        files = _write(found, rows, out, console)
        fields.append(
            {
                "name": name,
                "cells": total,
                "finished": done,
                "rows": list(rows),
                "files": [str(file) for file in files],
            }
        )
        texts.append(_text(found, rows, done, total, files))
    console.result({"command": "reproduce", "experiments": fields}, "\n\n".join(texts))


def _rows(found: Experiment, arguments: argparse.Namespace, console: Console) -> tuple[Sequence[Row], int, int]:
    """The rows of all finished cells, after computing the wanted ones; how many cells are finished, of how many."""
    from certgp.experiments.cells import CellStore, chosen, computed

    def announce(cell: Cell, number: int, total: int) -> None:
        settings = " ".join(f"{key}={value}" for key, value in cell.settings.items())
        console.status(f"{found.name} {number}/{total}: {settings}")

    cells = found.cells(arguments.quick)
    store = CellStore(arguments.out / "cells")
    if not arguments.show:
        for _ in computed(chosen(cells, arguments.only), found.compute, store, announce):
            pass
    finished = store.finished(cells)
    return found.rows(finished), len(finished), len(cells)


def _write(found: Experiment, rows: Sequence[Row], out: Path, console: Console) -> list[Path]:
    """NAME.json, NAME.csv and, with matplotlib, NAME.png; nothing where there are no rows yet."""
    if not rows:
        return []
    from certgp.data.tables import replacing

    files = [out / f"{found.name}.json", out / f"{found.name}.csv"]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with replacing(files[0]) as temporary:
        text = json.dumps({"title": found.title, "rows": finite(list(rows))}, indent=1, allow_nan=False)
        temporary.write_text(text + "\n")
    with replacing(files[1]) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    try:
        draw = import_module(f"certgp.report.paper.{_DRAWINGS[found.name]}").draw
        from certgp.report.style import save_figure
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        console.notice("note: no figures without matplotlib; get it with: pip install 'certgp[plots]'")
        return files
    save_figure(draw(rows), out / f"{found.name}.png", colours=_COLOURS)
    return [*files, out / f"{found.name}.png"]


def _text(found: Experiment, rows: Sequence[Row], done: int, total: int, files: Sequence[Path]) -> str:
    head = f"{found.name}: {found.title} ({done} of {total} cells finished)"
    if not rows:
        return head
    columns = list(dict.fromkeys(key for row in rows for key in row))
    body = table(columns, [[_shown(row.get(column)) for column in columns] for row in rows[:_PRINTED]])
    if len(rows) > _PRINTED:
        body += f"\n  and {len(rows) - _PRINTED} more rows in {found.name}.csv"
    return f"{head}\n{body}\n\nfiles: {', '.join(map(str, files))}"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
