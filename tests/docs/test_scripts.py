"""The checks of scripts/ notice what they are there for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
WHEEL = [
    "certgp/__init__.py",
    "certgp/py.typed",
    "certgp/cli/main.py",
    "certgp/data/rain.csv",
    "certgp/data/rain.txt",
    "certgp/report/page.css",
    "certgp/report/page.js",
    "certgp/serving/page.js",
    "certgp-0.2.0.dist-info/METADATA",
]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_of_the_library_alone_is_accepted() -> None:
    rooms = [
        f"certgp/{name}.py" for name in ("data/rows", "training/recipes/sparse", "guarantees/reference", "plots/style")
    ]
    assert script("inspect_wheel").complaints([*WHEEL, *rooms]) == []


@pytest.mark.parametrize(
    "name",
    [
        "certgp/experiments/figure1.py",
        "certgp/experiments/published/tables.csv",
        "certgp/baselines/svigp.py",
        "certgp/data/registry.py",
        "certgp/data/preparation/bike.py",
        "certgp_paper/__init__.py",
        "tests/test_something.py",
    ],
)
def test_what_belongs_to_the_paper_is_refused(name: str) -> None:
    assert any(name in complaint for complaint in script("inspect_wheel").complaints([*WHEEL, name]))


def test_a_wheel_without_its_types_is_refused() -> None:
    assert script("inspect_wheel").complaints(WHEEL[:1] + WHEEL[2:]) == ["certgp/py.typed is missing"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.md", "one \ntwo\n", "1 line(s) end with blanks, the first is line 1"),
        ("a.md", "one", "must end with one newline"),
        ("a.md", "one\n\n", "must end with one newline"),
        ("a.py", "x = 1\n<<<<<<< HEAD\n", "line 2 is a merge mark"),
        ("a.yml", "a: [1\n", "cannot be parsed"),
        ("a.toml", "a = \n", "cannot be parsed"),
        ("a.json", "{\n", "cannot be parsed"),
        ("a.txt", "x" * 600_000 + "\n", "do not commit large files"),
    ],
)
def test_an_untidy_file_is_noticed(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert any(complaint in problem for problem in script("check_files").problems(tmp_path / name))


def test_a_tidy_file_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("a: 1\n")
    assert list(script("check_files").problems(tmp_path / "a.yml")) == []
