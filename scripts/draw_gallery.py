"""Draw the pictures of docs/gallery/ anew, each by the code of its own page, into docs/figures/gallery/.

python scripts/draw_gallery.py [PAGE...]
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
PICTURES = GALLERY.parent / "figures" / "gallery"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def draw(page: Path) -> list[Path]:
    """Run the blocks of a page in an empty directory and keep the pictures that they save."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, str(page), "exec"), namespace)
        found = sorted(Path(folder).glob("*.png"))
        os.chdir(GALLERY)
        return [Path(shutil.copy(picture, PICTURES / picture.name)) for picture in found]


def main(names: list[str]) -> None:
    """All pages, or those that are named."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for page in [Path(name).resolve() for name in names] or sorted(GALLERY.glob("*.md")):
        for picture in draw(page):
            print(f"{picture.relative_to(GALLERY.parents[1])}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
