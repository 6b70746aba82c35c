"""List what a wheel holds, and refuse what does not belong into certgp: the paper's experiments, baselines, data sets.

python scripts/inspect_wheel.py dist/certgp-0.2.0-py3-none-any.whl
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

NOT_OURS = re.compile(
    r"(^|/)(certgp_paper|experiments?|baselines?|paper|published|results|datasets?|preparation|tests?|benchmarks?)(/|\.py$)"
    r"|(^|/)(catalogue|data/registry|download|fetch|reproduce)\.py$"
)
NEEDED = (
    "certgp/__init__.py",
    "certgp/py.typed",
    "certgp/cli/main.py",
    "certgp/data/rain.csv",
    "certgp/data/rain.txt",
    "certgp/report/page.css",
    "certgp/report/page.js",
    "certgp/serving/page.js",
)


def complaints(names: list[str]) -> list[str]:
    """Sentences about the files of a wheel."""
    misplaced = [f"{name} belongs to certgp-paper or to the source tree" for name in names if NOT_OURS.search(name)]
    foreign = [f"{name} is outside certgp" for name in names if not re.match(r"certgp(-[^/]*\.dist-info)?/", name)]
    return misplaced + foreign + [f"{name} is missing" for name in NEEDED if name not in names]


def main(paths: list[str]) -> int:
    """Exit code 1 if a wheel holds what it should not, or there is not exactly one."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        print(f"expected one wheel, found {paths}; run scripts/release.sh build first", file=sys.stderr)
        return 1
    with zipfile.ZipFile(paths[0]) as wheel:
        sizes = {entry.filename: entry.file_size for entry in wheel.infolist() if not entry.is_dir()}
    for name, size in sorted(sizes.items()):
        print(f"{size:9,}  {name}")
    print(f"{sum(sizes.values()):9,}  bytes in {len(sizes)} files")
    found = complaints(list(sizes))
    print("".join(f"error: {text}\n" for text in found), end="", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
