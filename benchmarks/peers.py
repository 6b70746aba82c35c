"""certgp against its peers on the same rows at the same rank: seconds, objective, NLPD, and the time to be as good.

    make peers                  # builds the peers' environments under .peers/, once
    python benchmarks/peers.py --data elevators protein --rank 100 --repeat 3 --plot peers.png --json > peers.json

Every fit is a process of its own with the same number of threads; peers and models of certgp take turns, so that a
change of the machine's mood hits both. Splits and standardisation are those of accuracy.py. The clock counts training
alone: imports and evaluations are excluded, the choice of inducing points and the compilation of graphs are not.
``gpflow-sgpr:100`` gives a peer another budget than its default, ``mercer:400`` a model another ``max_iter``. Deep
models (``--models deep-fourier deep-mercer``) keep their own rank, and ``--rank`` is then that of the peers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

import certgp
from certgp.errors import DataFileError
from certgp.plots.style import save_figure
from certgp_paper.datasets import load_dataset
from certgp_paper.datasets.splits import standardised_split
from peers.comparison import Run, plain, races, summarise_races, summarise_runs
from peers.contestants import MODELS, PEERS, Contestant, interleave, missing_environments, parse_contestant
from peers.picture import plot_runs
from peers.protocol import Point

HERE = Path(__file__).resolve().parent


class RunFailedError(RuntimeError):
    """A runner ended without a result."""


def main() -> None:
    options = parse_options()
    refuse_what_is_missing(options)
    runs, failures = [], []
    for outcome in outcomes(options):
        (runs if isinstance(outcome, Run) else failures).append(outcome)
        report(outcome.line if isinstance(outcome, Run) else outcome)
    all_races = list(races(runs))
    summary = {"final": summarise_runs(runs), "races": summarise_races(all_races)}
    for line in table(summary):
        report(line)
    if options.json:
        everything = {"setting": setting(options), "runs": runs, "races": all_races, "summary": summary}
        print(json.dumps(plain(everything | {"failures": failures}), indent=1), flush=True)
    if options.plot and runs:
        save_figure(plot_runs(runs), options.plot)
    sys.exit(1 if failures else 0)


def outcomes(options: argparse.Namespace) -> Iterator[Run | str]:
    """Each run, or what went wrong, as it comes: data, splits, rounds and contestants in turn."""
    order = interleave(options.peers, options.models)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        for data, split in product(options.data, range(options.splits)):
            np.savez(rows, **dict(zip(("X", "X_test", "y", "y_test"), standardised_split(data, split), strict=True)))
            for number, contestant in product(range(options.repeat), order):
                try:
                    trace, about = fit(contestant, rows, split, options)
                except RunFailedError as error:
                    yield f"{data} split {split} round {number} {contestant.name} failed:\n{error}"
                else:
                    yield Run(data, options.rank, split, number, contestant.name, contestant.is_peer, trace, about)


def fit(
    contestant: Contestant, rows: Path, split: int, options: argparse.Namespace
) -> tuple[tuple[Point, ...], dict[str, object]]:
    """One fit in a process of its own: its trace, and what the runner says about itself."""
    out = rows.with_suffix(".json")
    settings = {"rows": rows, "out": out, "rank": options.rank, "seed": split, "threads": options.threads}
    settings |= {"time-limit": options.time_limit, "budget": contestant.budget, "variant": contestant.variant}
    words = [f"--{name}={value}" for name, value in settings.items() if value is not None]
    done = subprocess.run(
        [contestant.python(options.environments), "-m", contestant.module, *words],
        env=contestant.variables(options.threads),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RunFailedError("\n".join(done.stderr.splitlines()[-8:]))
    result = json.loads(out.read_text())
    return tuple(Point(**point) for point in result["trace"]), result["about"]


def table(summary: dict[str, list[dict[str, object]]]) -> Iterator[str]:
    """Final scores, then races: medians over splits and rounds."""
    columns = {"nlpd": (9, 4), "rmse": (9, 4), "objective_per_row": (18, 4), "seconds": (9, 1), "cpu_seconds": (12, 1)}
    yield f"\n{'data':14s} {'method':24s}" + "".join(f"{name:>{width}s}" for name, (width, _) in columns.items())
    for row in summary["final"]:
        numbers = (number(row[name], *shape) for name, shape in columns.items())
        yield f"{row['data']!s:14s} {row['contestant']!s:24s}" + "".join(numbers)
    yield f"\n{'data':14s} {'as good as':24s} at NLPD   after   is            after  of its time"
    for row in summary["races"]:
        peer = f"{row['peer']!s:24s}{number(row['target'], 8, 4)}{number(row['peer_seconds'], 8, 1)}"
        model = f"{row['model']!s:12s}{number(row['seconds'], 7, 1)}{number(row['fraction'], 13, 3)}"
        yield f"{row['data']!s:14s} {peer}   {model} ({row['reached']} of {row['races']})"


def number(value: object, width: int, digits: int) -> str:
    return f"{'-':>{width}s}" if value is None else f"{value:{width}.{digits}f}"


def setting(options: argparse.Namespace) -> dict[str, object]:
    """What a reader needs to judge the seconds."""
    contestants = {c.name: {"budget": c.budget, "unit": c.unit} for c in (*options.peers, *options.models)}
    return {
        **{name: getattr(options, name) for name in ("data", "rank", "splits", "repeat", "threads", "time_limit")},
        "contestants": contestants,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
    }


def refuse_what_is_missing(options: argparse.Namespace) -> None:
    """End before hours of work, not after them."""
    missing = missing_environments([*options.peers, *options.models], options.environments)
    if missing:
        where = f"no environment for {' and '.join(missing)} in {options.environments}"
        sys.exit(f"{where}: run `make peers` first, or leave these peers out with --peers")
    absent = [model.variant for model in options.models if not hasattr(certgp, model.variant)]
    if absent:
        sys.exit(f"this version of certgp has no {' and no '.join(absent)}: leave it out of --models")
    try:
        for data in options.data:
            load_dataset(data)
    except DataFileError as error:
        sys.exit(str(error))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, help="rounds on each split; all give the same fits")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), metavar="NAME[:BUDGET]", help=", ".join(PEERS))
    parser.add_argument(
        "--models",
        nargs="*",
        default=["mercer", "sparse", "fourier"],
        metavar="NAME[:MAX_ITER]",
        help=", ".join(MODELS),
    )
    parser.add_argument("--time-limit", type=float, default=math.inf, help="seconds of training that end any fit")
    parser.add_argument("--environments", type=Path, default=HERE.parent / ".peers", help="where `make peers` put them")
    parser.add_argument("--plot", type=Path, help="write NLPD against seconds to this file")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    options = parser.parse_args()
    try:
        options.peers = [parse_contestant(text, PEERS) for text in options.peers]
        options.models = [parse_contestant(text, MODELS) for text in options.models]
    except ValueError as error:
        parser.error(str(error))
    return options


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
