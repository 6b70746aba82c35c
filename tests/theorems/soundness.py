"""Soundness on many random problems: the count, the violations (there must be none) and the smallest slack per theorem.

python tests/theorems/soundness.py --problems 20000
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import chain

import torch
from local_statements import local_statements
from small_problems import draw_outputs, statements


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started, problems, checked, broken = time.process_time(), 0, 0, []
    worst: dict[str, tuple[float, int]] = {}
    try:
        for seed in range(options.first_seed, options.first_seed + options.problems):
            found = [chain(statements(problem), local_statements(problem)) for problem in draw_outputs(seed)]
            for statement in chain.from_iterable(found):
                checked += 1
                if not statement.slack >= 0.0:
                    broken.append((seed, statement))
                before = worst.get(statement.theorem, (float("inf"), -1))
                worst[statement.theorem] = min(before, (statement.slack, seed))
            problems += 1
            if problems % 1000 == 0:
                print(f"{problems} problems, {len(broken)} violations", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    print(f"{problems} problems, {checked} statements, {len(broken)} violations")
    print(f"{time.process_time() - started:.0f} s of one core")
    for theorem, (slack, seed) in sorted(worst.items()):
        print(f"  {theorem:12s} smallest slack {slack:.2e} of the true value (seed {seed})")
    for seed, statement in broken[:20]:
        print(f"VIOLATED seed {seed}: {statement}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
