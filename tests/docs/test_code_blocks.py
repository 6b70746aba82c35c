"""Every Python block of the README and the docs runs, and prints what the text block after it says."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *GALLERY]
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    line: int
    code: str
    expected: str | None  # the text block that follows


def python_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    fences = list(FENCE.finditer(text))
    blocks = []
    for fence, following in zip(fences, [*fences[1:], None], strict=False):
        if fence[1] == "python":
            shown = following[2] if following is not None and following[1] == "text" else None
            blocks.append(Block(text.count("\n", 0, fence.start()) + 2, fence[2], shown))
    return blocks


def same_text(printed: str, shown: str) -> bool:
    """Equal words, and equal numbers as far as a fit repeats itself on another machine.

    Ordinary numbers agree to 10 %; the tiny distances of a certificate move with the last digits of the optimum, so
    they agree within a factor of three.
    """
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return False
    pairs = [(float(a), float(b)) for a, b in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)]
    tiny = 0.02
    return all(a == pytest.approx(b, rel=0.1) or (0 < a < tiny and b / 3 < a < 3 * b) for a, b in pairs)


@pytest.mark.usefixtures("kernels_of_their_own")
@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        if block.expected is not None:
            assert same_text(printed.getvalue(), block.expected), (
                f"{page.name}:{block.line} printed\n{printed.getvalue()}"
            )


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_a_page_of_the_gallery_shows_the_picture_it_draws(page: Path) -> None:
    [drawn] = re.findall(r'savefig\("(\w+\.png)"', page.read_text())
    picture = ROOT / "docs" / "figures" / "gallery" / drawn
    assert f"](../figures/gallery/{drawn})" in page.read_text()
    assert f"figures/gallery/{drawn}" in (ROOT / "docs" / "gallery.md").read_text()
    assert 5_000 < picture.stat().st_size < 150_000


def test_a_wrong_output_would_be_noticed() -> None:
    assert same_text("mean 1.00\n", "mean 1.01")
    assert not same_text("mean 1.00\n", "mean 1.20")
    assert not same_text("mean 1.00\n", "median 1.00")


def test_links_between_pages_lead_somewhere() -> None:
    for page in LINKING:
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
