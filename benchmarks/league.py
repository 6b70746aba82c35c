"""The league: certgp and its peers on every data set, scored alike, in one resumable command.

    make peers                                                    # the peers' environments under .peers/, once
    python benchmarks/league.py run                               # all cells that are missing, split 0 first
    python benchmarks/league.py run --splits 0 --data yacht --contestants LightGBM LocalGP
    python benchmarks/league.py status
    python benchmarks/league.py page                              # docs/league.md and its pictures

A cell is a contestant on a split of a data set: a process of its own on one thread, whose fit sees no test targets.
Finished cells are lines of benchmarks/results/league.jsonl; a run that was stopped goes on after them. ``--renew``
plays again what other code made than today's, ``--retry`` what failed or did not finish, ``--jobs 2`` two at a time,
for as many idle cores. Data: ``CERTGP_DATA``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

from certgp.errors import DataFileError
from certgp_paper.experiments.cells import Finished
from certgp_paper.experiments.store import CellStore
from league.contestants import CONTESTANTS, FIRST
from league.data import DATA, SPLITS, Rows, load_rows
from league.page import write_page
from league.play import FAMILY, FINISHED, cell_of, cell_version, made_by, play
from league.table import Key, Table, read_table
from league.versions import outdated
from peers.contestants import Contestant, missing_environments

HERE = Path(__file__).resolve().parent
Given, Found = TypeVar("Given"), TypeVar("Found")


def main() -> None:
    options = parse_options()
    {"run": run, "status": status, "page": page}[options.command](options)


def run(options: argparse.Namespace) -> None:
    """Play what is missing, ``--jobs`` cells at a time."""
    store = CellStore(options.results)
    refuse_what_is_missing(options)
    rows_of = lru_cache(maxsize=len(DATA))(load_rows)  # of one split

    def play_one(cell: tuple[str, Contestant, int]) -> tuple[Finished, str]:
        data, contestant, split = cell
        started, code = time.perf_counter(), made_by(contestant, data, split)
        with tempfile.TemporaryDirectory() as folder:
            result = play(contestant, rows_of(data, split), split, Path(folder), options.environments)
        played = cell_of(data, contestant.name, split)
        return Finished(played, result, time.perf_counter() - started, code), line_of(played.settings, result)

    missing = (cell for cell in wanted(options) if is_missing(store, *cell, options, rows_of))
    for finished, line in in_turns(play_one, missing, options.jobs):
        store.save(finished)
        print(line, flush=True)
    store.compact(FAMILY)


def in_turns(work: Callable[[Given], Found], given: Iterable[Given], jobs: int) -> Iterator[Found]:
    """What comes of each, as soon as it is there, with so many under way at a time; the next is asked for only then."""
    waiting = iter(given)
    with ThreadPoolExecutor(jobs) as pool:
        under_way = {pool.submit(work, each) for each in islice(waiting, jobs)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            under_way |= {pool.submit(work, each) for each in islice(waiting, len(done))}
            yield from (each.result() for each in done)


def is_missing(
    store: CellStore,
    data: str,
    contestant: Contestant,
    split: int,
    options: argparse.Namespace,
    rows_of: Callable[[str, int], Rows],
) -> bool:
    """Is this cell to be played? Those on more rows than a contestant can take are not; the page says so."""
    kept = store.load(cell_of(data, contestant.name, split))
    if kept is not None and not is_to_be_played_again(kept, contestant, options):
        return False
    return contestant.most_rows is None or len(rows_of(data, split).y) <= contestant.most_rows


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, Contestant, int]]:
    """In an order that makes an unfinished run say most: split by split, so that each completes a standing of all, and
    on each first those that matter most or cost next to nothing, on all data sets.
    """
    names = [name for name in dict.fromkeys((*FIRST, *CONTESTANTS)) if name in options.contestants]
    for split, name, data in product(options.splits, names, options.data):
        yield data, CONTESTANTS[name], split


def is_to_be_played_again(kept: Finished, contestant: Contestant, options: argparse.Namespace) -> bool:
    if options.retry and kept.result["status"] != FINISHED:
        return True
    settings = kept.cell.settings
    now = cell_version(contestant, str(settings["data"]), int(settings["split"]))
    return options.renew and kept.made_by.get("version") != now


def line_of(settings, result: dict[str, object]) -> str:
    words = f"{settings['data']:14s} {settings['contestant']:22s} split {settings['split']}"
    if result["status"] != FINISHED:
        return f"{words}  {result['status']}: {result.get('reason', result.get('limit'))}"
    scores = "  ".join(f"{name} {result[name]:.4f}" for name in ("nlpd", "crps", "rmse", "coverage95"))
    return f"{words}  {scores}  {result['cpu_seconds']:.1f} CPU s  {result['peak_megabytes']:.0f} MB"


def status(options: argparse.Namespace) -> None:
    """How many splits of each data set each contestant has, and how many of them other code made than today's."""
    table = read_table(options.results)
    old = outdated(table)
    print(f"{'':22s}" + "".join(f"{data[:11]:>12s}" for data in DATA))
    for name in CONTESTANTS:
        print(f"{name:22s}" + "".join(f"{_counts(table, old, data, name):>12s}" for data in DATA))
    print(f"{len(table.cells)} cells; -n: n of them are outdated, {len(old)} in all; --renew plays these again")


def _counts(table: Table, old: set[Key], data: str, name: str) -> str:
    splits = table.splits(data, name)
    number = sum((data, name, split) in old for split in splits)
    return f"{len(splits)} -{number}" if number else f"{len(splits)}"


def page(options: argparse.Namespace) -> None:
    """Write the page and its pictures."""
    write_page(read_table(options.results), options.out)


def refuse_what_is_missing(options: argparse.Namespace) -> None:
    """End before hours of work, not after them."""
    missing = missing_environments([CONTESTANTS[name] for name in options.contestants], options.environments)
    if missing:
        sys.exit(f"no environment for {', '.join(missing)} in {options.environments}; run `make peers`")
    try:
        for data in options.data:
            load_rows(data, 0)
    except DataFileError as error:
        sys.exit(str(error))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "status", "page"])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA, metavar="NAME", help=", ".join(DATA))
    parser.add_argument(
        "--contestants",
        nargs="+",
        default=list(CONTESTANTS),
        choices=CONTESTANTS,
        metavar="NAME",
        help=", ".join(CONTESTANTS),
    )
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(SPLITS)), metavar="NUMBER")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="the folder of league.jsonl")
    parser.add_argument("--environments", type=Path, default=HERE.parent / ".peers", help="where `make peers` put them")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs", help="the folder of league.md")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, each on one thread (default 1)")
    parser.add_argument("--renew", action="store_true", help="play again what other code made than today's")
    parser.add_argument("--retry", action="store_true", help="play again what failed or did not finish")
    return parser.parse_args()


if __name__ == "__main__":
    main()
