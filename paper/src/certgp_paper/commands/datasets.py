"""certgp datasets: the benchmark data sets, which of them are here, and how to get the others."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command
from certgp.cli.output import Console, table
from certgp.errors import CertgpError, DataFileError, InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp_paper.datasets.fetch import Fetched
    from certgp_paper.datasets.registry import LocalDataset

_LIST_EXAMPLES = """\
  certgp datasets list
  certgp datasets list --json
  CERTGP_DATA=/mnt/data certgp datasets list      data sets in another directory
"""
_WHERE_EXAMPLES = """\
  certgp datasets where                           the data directory
  certgp datasets where bike                      the file of one data set, whether or not it is there
  certgp fit "$(certgp datasets where bike)" --out bike.model
"""
_FETCH_EXAMPLES = """\
  certgp datasets fetch bike protein
  certgp datasets fetch --all
  certgp datasets fetch sarcos --accept-changed   take files whose checksum is another than expected
"""
_SECONDS_BETWEEN_UPDATES = 0.1


def add_parser(commands: Commands) -> None:
    """Declare the command and its three actions."""
    parser = commands.add_parser(
        "datasets",
        help="list, find and fetch the benchmark data sets",
        description="List, find and fetch the benchmark data sets.",
        epilog=f"examples:\n{_LIST_EXAMPLES}{_WHERE_EXAMPLES}{_FETCH_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_command(actions, "list", "which data sets are known, and which are here", _LIST_EXAMPLES, run_list)
    where = add_command(actions, "where", "where a data set is or would be", _WHERE_EXAMPLES, run_where)
    where.add_argument("name", nargs="?", metavar="NAME", help="a data set; without it, the data directory")
    fetch = add_command(actions, "fetch", "download and prepare data sets", _FETCH_EXAMPLES, run_fetch)
    fetch.add_argument("names", nargs="*", metavar="NAME", help="data sets, as 'certgp datasets list' names them")
    fetch.add_argument("--all", action="store_true", help="all that are not here yet")
    fetch.add_argument(
        "--accept-changed", action="store_true", help="take files whose checksum is another than expected"
    )


def run_list(arguments: argparse.Namespace, console: Console) -> None:
    """Every known data set and the state of its file, from headers alone."""
    from certgp_paper.datasets.registry import data_directory, dataset_names, local_dataset

    sets = [local_dataset(name, damaged_as_missing=True) for name in dataset_names()]
    fields = {"command": "datasets list", "directory": str(data_directory()), "datasets": [_fields(s) for s in sets]}
    header = ("name", "here", "rows", "columns", "paper", "license", "source", "how the file here differs")
    rows = [_row(local) for local in sets]
    here = sum(local.shape is not None for local in sets)
    console.result(
        fields,
        f"{data_directory()}: {here} of {len(sets)} data sets\n{table(header, rows, texts=(0, 1, 4, 5, 6, 7))}\n\n"
        "rows and columns are those of the file here; where there is none, those that 'certgp datasets fetch' makes",
    )


def _row(local: LocalDataset) -> tuple[str, ...]:
    info = local.info
    n_rows, n_columns = local.shape or (info.n_rows, info.n_columns)
    return (
        info.name,
        "no" if local.shape is None else "yes",
        f"{n_rows:,}",
        str(n_columns),
        f"{info.n_rows:,} x {info.n_columns}" if info.in_paper else "not in it",
        info.license,
        info.page.split("/")[2],
        local.difference,
    )


def _fields(local: LocalDataset) -> dict[str, object]:
    info = local.info
    n_rows, n_columns = local.shape or (None, None)
    return {
        "name": info.name,
        "title": info.title,
        "present": local.shape is not None,
        "path": str(local.path),
        "n_rows": n_rows,
        "n_columns": n_columns,
        "in_paper": info.in_paper,
        "source_rows": info.n_rows,
        "source_columns": info.n_columns,
        "difference": local.difference,
        "license": info.license,
        "page": info.page,
        "files": [{"url": file.url, "sha256": file.sha256} for file in info.files],
        "inferred": info.inferred,
        "unverified": list(info.unverified),
    }


def run_where(arguments: argparse.Namespace, console: Console) -> None:
    """The path of a data set or of the data directory, for people and for scripts."""
    from certgp_paper.datasets.registry import data_directory, dataset_path

    path = data_directory() if arguments.name is None else dataset_path(arguments.name)
    fields = {"command": "datasets where", "name": arguments.name, "path": str(path), "present": path.exists()}
    if arguments.name is not None and not path.exists():
        console.notice(f"note: it is not there; get it with: certgp datasets fetch {arguments.name}")
    console.result(fields, str(path))


def run_fetch(arguments: argparse.Namespace, console: Console) -> None:
    """Fetch one by one; one that fails does not keep the others from being fetched."""
    fetched, failed = [], []
    names = _names(arguments)
    for name in names:
        try:
            fetched.append(_fetch(name, arguments.accept_changed, console))
        except (CertgpError, OSError) as error:
            if len(names) == 1:
                raise
            failed.append(f"{name}: {error}")
    if fetched:
        fields = [
            {
                "name": item.name,
                "path": str(item.path),
                "n_rows": item.n_rows,
                "n_columns": item.n_columns,
                "was_there": item.was_there,
                "difference": item.difference,
            }
            for item in fetched
        ]
        console.result({"command": "datasets fetch", "datasets": fields, "failed": failed}, _fetched_text(fetched))
    if failed:
        raise DataFileError(f"{len(failed)} of {len(names)} could not be fetched: {'; '.join(failed)}")


def _names(arguments: argparse.Namespace) -> list[str]:
    from certgp_paper.datasets.registry import dataset_info, dataset_names

    if bool(arguments.names) == arguments.all:
        raise InvalidInputError("name the data sets to fetch, or all of them with --all (not both)")
    names = list(dict.fromkeys(arguments.names)) or dataset_names()
    for name in names:
        dataset_info(name)  # an unknown one is refused before a long download
    return names


def _fetch(name: str, accept_changed: bool, console: Console) -> Fetched:
    from certgp_paper.datasets.fetch import fetch_dataset

    last = 0.0

    def progress(file: str, done: int, total: int | None) -> None:
        nonlocal last
        if done == total:
            console.status(f"preparing {name}")
        elif time.monotonic() - last >= _SECONDS_BETWEEN_UPDATES:
            last = time.monotonic()
            of = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
            console.status(f"fetching {name}: {file}, {done / 1e6:.1f}{of}")

    console.status(f"fetching {name}")
    return fetch_dataset(name, progress, accept_changed=accept_changed)


def _fetched_text(fetched: list[Fetched]) -> str:
    rows = [
        (
            item.name,
            "was here" if item.was_there else "fetched",
            f"{item.n_rows:,}",
            str(item.n_columns),
            str(item.path),
            item.difference,
        )
        for item in fetched
    ]
    text = table(("name", "", "rows", "columns", "file", "how it differs"), rows, texts=(0, 1, 4, 5))
    if any(item.was_there and item.difference for item in fetched):
        text += "\n\nfiles that were here are kept as they are; move one away to fetch the version described above"
    return text
