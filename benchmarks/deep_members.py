"""Members side by side against one after the other, in turns within one run, so that both see the same machine.

    python benchmarks/deep_members.py --data elevators --members 3 --rounds 3 --json

A callback that does nothing makes the members follow each other, on one thread and on as many as side by side has
processes. ``ratio`` is the median of seconds side by side / seconds in turn by the clock; the first fit side by side
also starts the processes, and is given apart (``cold_seconds``).
"""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median

import numpy as np
import torch

import certgp
from cells import time_fit
from certgp_paper.datasets.splits import standardised_split

MODELS = {"deep-fourier": certgp.DeepFourierGP, "deep-mercer": certgp.DeepMercerGP}


def fit(way: str, options, X, y) -> tuple[dict[str, float], np.ndarray]:
    """Seconds of a fit and some of its predictions."""
    torch.set_num_threads(1 if way == "one_thread" else options.threads)
    callbacks = None if way == "side_by_side" else [lambda _: None]
    model = MODELS[options.model](members=options.members, random_state=0, callbacks=callbacks)
    if options.epochs:
        model.set_params(max_iter=options.epochs)
    seconds = time_fit(lambda: model.fit(X, y))
    print(way, {name: round(value, 1) for name, value in seconds.items()}, file=sys.stderr, flush=True)
    return seconds, model.predict(X[:1000])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="elevators")
    parser.add_argument("--model", choices=list(MODELS), default="deep-fourier")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="instead of the default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    X, _, y, _ = standardised_split(options.data, 0)
    cold, expected = fit("side_by_side", options, X, y)
    seconds: dict[str, list[float]] = {"side_by_side": [], "one_thread": [], "all_threads": []}
    for _ in range(options.rounds):
        for way, values in seconds.items():
            spent, predictions = fit(way, options, X, y)
            values.append(spent["seconds"])
            if way != "all_threads" and not np.array_equal(predictions, expected):
                sys.exit(f"{way} predicts otherwise than the first fit")
    pairs = {way: zip(seconds["side_by_side"], values, strict=True) for way, values in seconds.items()}
    ratios = {way: median(a / b for a, b in each) for way, each in pairs.items() if way != "side_by_side"}
    result = vars(options) | {"cold_seconds": cold["seconds"], "seconds": seconds, "ratio": ratios}
    print(json.dumps(result, indent=1) if options.json else f"side by side takes {ratios} of the time")


if __name__ == "__main__":
    main()
