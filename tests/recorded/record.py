"""Fit every recorded case again: ``python tests/recorded/record.py`` compares, ``--write`` makes the record anew.

``--certificates`` records anew what certificates say, where a bound was changed on purpose: predictions, rank curves
and files must be as they were.
"""

from __future__ import annotations

import argparse
import sys
import time

from cases import (
    CASES,
    CHANGED,
    MODELS,
    differences,
    fitted,
    plain,
    predictions,
    read_record,
    rows,
    statements,
    write_record,
)


def record(name: str, write_model: bool) -> dict[str, object]:
    _, n, columns = CASES[name]
    model = fitted(name)
    said = {"predictions": predictions(model, columns)}
    if write_model:
        options = {"include_training_data": True} if "exact" in name else {}
        model.save(MODELS / f"{name}.model", **options)
    return plain(said | statements(model, columns, rows(n, columns)))


def _certificates(said: dict[str, object]) -> dict[str, object]:
    return {what: statement for what, statement in said.items() if what.startswith("certificate")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("names", nargs="*", default=[])
    arguments = parser.parse_args()
    known = {} if arguments.write else read_record()
    found, bad = {}, 0
    MODELS.mkdir(exist_ok=True)
    for name in arguments.names or [name for name in CASES if arguments.write or name not in CHANGED]:
        started = time.perf_counter()
        found[name] = record(name, arguments.write)
        kept = _certificates(found[name]) if arguments.certificates else {}
        expected = {} if arguments.write else known[name] | kept
        gaps = [] if arguments.write else list(differences(found[name], expected, name, arguments.tolerance))
        if gaps and arguments.certificates:  # another fit: its certificates are not those of the recorded one
            del found[name]
        bad += bool(gaps)
        print(
            f"{'DIFFERS' if gaps else 'ok     '} {name} ({time.perf_counter() - started:.1f} s)",
            *gaps,
            sep="\n    ",
            flush=True,
        )
    if arguments.write:
        write_record(found)
    elif arguments.certificates:
        write_record({name: known[name] | _certificates(found.get(name, {})) for name in known})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
