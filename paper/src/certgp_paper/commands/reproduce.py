"""certgp reproduce: the paper's tables and figures, computed again and set beside the paper's numbers."""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command
from certgp.cli.output import Console, table
from certgp.errors import DataFileError, InvalidInputError
from certgp.json_values import finite
from certgp_paper.experiments.catalogue import experiment, experiment_names

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp_paper.experiments.cells import Cell, Finished
    from certgp_paper.experiments.confirm import Confirmation
    from certgp_paper.experiments.experiment import Experiment, Row
    from certgp_paper.experiments.store import CellStore

_ALL = "all"
_SAMPLE = 5  # cells of a method that --confirm computes again
_PRINTED = 60  # rows on the screen; the files hold all
# columns that give way on a narrow terminal, by the end of their names, in this order
_SPARE_COLUMNS = (
    "note",
    "metric",
    "projection",
    "cpu_seconds",
    "_sd",
    "_difference",
    "_equal_or_better",
    "paper_seconds",
    "rows",
    "rounding",
    "eta",
    "chain_gap",
    "kl_train",
    "kl_quantile",
    "markov_ratio",
    "eigenvalue_least",
    "eigenvalue_largest",
    "test",
    "distance",
)
_EXAMPLES = """\
  certgp reproduce figure2
  certgp reproduce all --quick                          a small version of everything, in a few minutes
  certgp reproduce table-nlpd --only data=elevators rank=6,10 split=0
  certgp reproduce table-nlpd --show                    what is finished so far, without computing anything
  certgp reproduce all --outdated                       which finished cells other code than today's has made
  certgp reproduce table-nlpd --renew --only data=elevators rank=6    compute those again
  certgp reproduce table-nlpd --confirm 5               compute five of each method again: do the others still stand?

Finished cells are kept in DIR, a line each in a .jsonl file: a run that was interrupted goes on where it was.
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "compute a table or figure of the paper and set it beside the paper's numbers"
    parser = add_command(commands, "reproduce", summary, _EXAMPLES, run)
    names = experiment_names()
    parser.add_argument("name", choices=[*names, _ALL], metavar="NAME", help=f"{', '.join(names)} or {_ALL}")
    parser.add_argument(
        "--quick", action="store_true", help="a small version, written to DIR/quick: fewer rows, splits, iterations"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("certgp-results"),
        help="directory for results and finished cells (default: certgp-results)",
    )
    parser.add_argument(
        "--only",
        metavar="KEY=VALUE",
        nargs="+",
        default=[],
        help="compute (with --show: show) only cells with these settings",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--show", action="store_true", help="show what is finished; compute nothing")
    mode.add_argument("--write", action="store_true", help="write the results of what is finished; compute nothing")
    mode.add_argument(
        "--outdated",
        action="store_true",
        help="list finished cells whose code has changed since, by the version that made them; compute nothing",
    )
    mode.add_argument("--renew", action="store_true", help="compute also those finished cells again that are outdated")
    mode.add_argument(
        "--confirm",
        metavar="K",
        type=int,
        nargs="?",
        const=_SAMPLE,
        help="of each method's outdated cells compute K again, drawn at random; where their scores moved by less than "
        f"a margin on average, the others count as those of today's code (default: {_SAMPLE})",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Compute what is missing, write JSON, CSV and a figure, print the rows."""
    names = experiment_names() if arguments.name == _ALL else [arguments.name]
    if arguments.outdated:
        _list_outdated(names, arguments, console)
        return
    if not arguments.show:
        _make_folder(arguments.out)
    if arguments.confirm is not None:
        _confirm(names, arguments, console)
        return
    console.status("starting")
    fields, texts = [], []
    for name in names:
        found = experiment(name)
        finished, total = _finished(found, arguments, console)
        rows, done = found.rows(finished), len(finished)
        files = [] if arguments.show else _write(found, rows, finished, arguments)
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


def _make_folder(out: Path) -> None:
    """Hours of computing must not end at a folder that cannot be written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        if out.exists() and not out.is_dir():
            raise InvalidInputError(f"--out {out} is a file; give the name of a directory") from error
        reason = error.strerror or str(error)
        raise InvalidInputError(f"--out {out} cannot be made or written to ({reason}); give another one") from error


def _finished(found: Experiment, arguments: argparse.Namespace, console: Console) -> tuple[Sequence[Finished], int]:
    """All finished cells, after computing the wanted ones; of how many.

    With ``--show``, those of the wanted cells; otherwise those of all, which is what the files hold.
    """
    from certgp_paper.experiments.store import CellStore

    cells = found.cells(arguments.quick)
    store = CellStore(arguments.out)
    wanted = _wanted(cells, arguments, console)
    if arguments.show:
        cells = wanted
    elif not arguments.write:
        try:
            _compute(found, _with_data(wanted, store, arguments, console), store, console, arguments.renew)
        except KeyboardInterrupt:
            console.notice(f"{len(store.finished(cells))} of {len(cells)} cells are kept; the same command goes on")
            raise
    return store.finished(cells), len(cells)


def _list_outdated(names: Sequence[str], arguments: argparse.Namespace, console: Console) -> None:
    """How many finished cells of each experiment are out of date, and by which versions they were made."""
    from certgp_paper.experiments.code import outdated_cells
    from certgp_paper.experiments.store import CellStore
    from certgp_paper.experiments.trace import count_makers

    store, fields, texts = CellStore(arguments.out), [], []
    for name in names:
        found = experiment(name)
        finished = store.finished(_wanted(found.cells(arguments.quick), arguments, console))
        old = outdated_cells(finished, found.compute)
        keys = {cell.key for cell in old}
        makers = count_makers([each for each in finished if each.cell.key in keys])
        fields.append({"name": name, "finished": len(finished), "outdated": [dict(cell.settings) for cell in old]})
        seconds = sum(each.seconds for each in finished if each.cell.key in keys)
        again = f", which took {seconds / 3600:.1f} hours" if old else ""
        held = sum("confirmed" in each.made_by and each.cell.key not in keys for each in finished)
        others = f"; {held} of the others are confirmed by cells computed again" if held else ""
        lines = [f"{name}: {len(old)} of {len(finished)} finished cells are out of date{again}{others}"]
        lines += [f"  {count:5d}  {maker}" for maker, count in makers.items()]
        texts.append("\n".join(lines))
    console.result({"command": "reproduce", "outdated": fields}, "\n".join(texts))


def _confirm(names: Sequence[str], arguments: argparse.Namespace, console: Console) -> None:
    """Compute a sample of each group of outdated cells again, and say of each group whether it is confirmed."""
    from certgp_paper.experiments.confirm import FEWEST
    from certgp_paper.experiments.store import CellStore

    if arguments.confirm < FEWEST:
        raise InvalidInputError(f"--confirm {arguments.confirm} is too few to judge a method by; use {FEWEST} or more")
    store, fields, texts = CellStore(arguments.out), [], []
    for found in _with_score(names, arguments, console):
        groups = _confirm_groups(found, store, arguments, console)
        confirmed = sum(group.is_confirmed for group in groups)
        texts.append(f"{found.name}: {confirmed} of {len(groups)} groups with outdated cells are confirmed")
        texts += [f"  {group.text()}" for group in groups]
        told = [{"what": group.what, "confirmed": group.is_confirmed, **group.mark} for group in groups]
        fields.append({"name": found.name, "groups": finite(told)})
    console.result({"command": "reproduce", "confirm": fields}, "\n".join(texts))


def _confirm_groups(
    found: Experiment, store: CellStore, arguments: argparse.Namespace, console: Console
) -> list[Confirmation]:
    from certgp_paper.experiments.confirm import confirm_groups

    def renew(drawn: Sequence[Cell]) -> None:
        _compute(found, drawn, store, console, renew=True)

    def at_hand(cell: Cell) -> bool:
        return not _lacks_data(cell)

    cells = found.cells(arguments.quick)
    groups = []
    for group in confirm_groups(found, _wanted(cells, arguments, console), store, arguments.confirm, renew, at_hand):
        console.notice(f"{found.name}: {group.text()}")
        groups.append(group)
    finished = store.finished(cells)
    _write(found, found.rows(finished), finished, arguments)
    return groups


def _with_score(names: Sequence[str], arguments: argparse.Namespace, console: Console) -> Iterator[Experiment]:
    """Experiments whose cells have a single figure to compare; of all experiments, the others are left out."""
    for name in names:
        found = experiment(name)
        if found.score:
            yield found
        elif arguments.name != _ALL:
            raise InvalidInputError(f"the cells of {name} have no single figure to compare; use --renew")
        else:
            console.notice(f"note: {name} is left out: its cells have no single figure to compare; use --renew")


def _compute(found: Experiment, cells: Sequence[Cell], store: CellStore, console: Console, renew: bool = False) -> None:
    from certgp_paper.experiments.store import compute_cells

    def announce(cell: Cell, number: int, total: int) -> None:
        console.status(f"{found.name} {number}/{total}: {cell}")

    def failed(cell: Cell, error: Exception) -> None:
        console.notice(f"warning: {found.name}: the cell {cell} failed and is left out: {error}")

    for _ in compute_cells(cells, found.compute, store, announce, failed, renew):
        pass


def _with_data(
    cells: Sequence[Cell], store: CellStore, arguments: argparse.Namespace, console: Console
) -> Sequence[Cell]:
    """Cells whose data set is at hand, or that are finished; the others are left out, and said to be.

    Where that leaves nothing of what was asked for, the missing file is an error.
    """
    from certgp_paper.datasets import missing_dataset

    missing = [cell for cell in cells if _lacks_data(cell) and (arguments.renew or store.load(cell) is None)]
    reasons = {name: missing_dataset(name) for name in dict.fromkeys(str(cell.settings["data"]) for cell in missing)}
    if missing and len(missing) == len(cells) and arguments.name != _ALL:
        raise DataFileError("; ".join(reasons.values()))
    for name, reason in reasons.items():
        console.notice(f"note: {name} is left out: {reason}")
    left_out = {cell.key for cell in missing}
    return [cell for cell in cells if cell.key not in left_out]


def _lacks_data(cell: Cell) -> bool:
    from certgp_paper.datasets import dataset_path

    return "data" in cell.settings and not dataset_path(str(cell.settings["data"])).exists()


def _wanted(cells: Sequence[Cell], arguments: argparse.Namespace, console: Console) -> Sequence[Cell]:
    """The cells that ``--only`` asks for; of all experiments, some need not have any."""
    from certgp_paper.experiments.cells import select_cells

    try:
        return select_cells(cells, arguments.only)
    except InvalidInputError as error:
        if arguments.name != _ALL:
            raise
        console.notice(f"note: {error}")
        return []


def _write(
    found: Experiment, rows: Sequence[Row], finished: Sequence[Finished], arguments: argparse.Namespace
) -> list[Path]:
    """NAME.json, NAME.csv and NAME.png; nothing where there are no rows yet.

    Those of the quick version say what they are and have a folder of their own, so that they never replace others.
    """
    if not rows:
        return []
    from certgp.data.tables import replacing
    from certgp_paper.experiments.code import outdated_cells
    from certgp_paper.experiments.trace import describe_confirmations, describe_makers, describe_moves
    from certgp_paper.figures import save_drawing

    quick = arguments.quick
    out: Path = arguments.out / "quick" if quick else arguments.out
    out.mkdir(exist_ok=True)
    title = f"{found.title} (quick version: nothing to compare with the paper)" if quick else found.title
    files = [out / f"{found.name}.json", out / f"{found.name}.csv"]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with replacing(files[0]) as temporary:
        content = {
            "title": title,
            "made_by": describe_makers(finished),
            "confirmed": describe_confirmations(finished),
            "moved": describe_moves(finished),
            "up_to_date": len(finished) - len(outdated_cells(finished, found.compute)),
            "rows": finite(list(rows)),
        }
        text = json.dumps(content, indent=1, allow_nan=False)
        temporary.write_text(text + "\n")
    with replacing(files[1]) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return [*files, save_drawing(found.name, rows, out, quick)]


def _text(found: Experiment, rows: Sequence[Row], done: int, total: int, files: Sequence[Path]) -> str:
    head = f"{found.name}: {found.title} ({done} of {total} cells finished)"
    if not rows:
        return head
    scores = [row for row in rows if row.get("kind", "scores") == "scores"]  # points and curves are for the figure
    body = _fitted_table(scores[:_PRINTED])
    if len(rows) > len(scores[:_PRINTED]):
        body += f"\n  and {len(rows) - len(scores[:_PRINTED])} more rows in {found.name}.csv"
    return f"{head}\n{body}" + (f"\n\nfiles: {', '.join(map(str, files))}" if files else "")


def _fitted_table(rows: Sequence[Row]) -> str:
    """As many columns as the terminal has room for, important ones first; the CSV file has all."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if any(row.get(key) for row in rows)]
    spare = [key for ending in _SPARE_COLUMNS for key in reversed(columns) if key.endswith(ending)]
    while True:
        text = table(columns, [[_shown(row.get(column)) for column in columns] for row in rows])
        if not spare or max(map(len, text.splitlines())) <= shutil.get_terminal_size((120, 24)).columns:
            return text
        columns = [key for key in columns if key != spare[0]]
        spare = [key for key in spare if key != spare[0]]


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
