"""What every text file must have: no trailing blanks, a final newline, no merge marks, a sensible size, valid syntax.

python scripts/check_files.py FILE...        prints what is wrong and exits with 1
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

LARGEST = 500_000  # bytes
PARSERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".yml": yaml.safe_load,
    ".yaml": yaml.safe_load,
    ".cff": yaml.safe_load,
}


def problems(path: Path) -> Iterator[str]:
    """Sentences about one file."""
    if path.stat().st_size > LARGEST:
        yield f"has more than {LARGEST:,} bytes; do not commit large files"
    text = path.read_bytes().decode("utf-8")
    lines = text.split("\n")
    blanks = [i for i, line in enumerate(lines, 1) if line != line.rstrip()]
    if blanks:
        yield f"{len(blanks)} line(s) end with blanks, the first is line {blanks[0]}"
    yield from (f"line {i} is a merge mark" for i, line in enumerate(lines, 1) if re.match(r"(<{7}|>{7})( |$)", line))
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield "must end with one newline"
    if path.suffix in PARSERS:
        try:
            PARSERS[path.suffix](text)
        except (ValueError, yaml.YAMLError) as error:
            yield f"cannot be parsed: {error}"


def main(names: list[str]) -> int:
    """Exit code 1 if any file has a problem."""
    found = [f"{name}: {problem}" for name in names for problem in problems(Path(name))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
