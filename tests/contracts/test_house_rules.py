"""Rules that no linter knows: shallow inheritance, no foreign privates, no questions about our own types."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "src" / "certgp", ROOT / "paper" / "src" / "certgp_paper")
MOST_LINES = 400
DEEPEST = 2  # an abstract class of ours, and the final ones that derive from it
MAPS = {"MercerMap", "FourierMap", "NystromMap", "ResidualMap"}

# file -> names that may be looked for on objects that are not ours, and why
FOREIGN = {
    "certgp/engines/local.py": ({"register_at_fork"}, "a function of os that some systems do not have"),
    "certgp/estimators/validation.py": ({"fold", "shape"}, "engines and rows that users bring"),
    "certgp/training/recipes/deep_member.py": ({"reset_parameters"}, "a convention of torch's layers"),
    "certgp_paper/datasets/download.py": ({"reason"}, "errors of urllib, of which some have one"),
}
# file -> private names of other packages, and why
BORROWED = {
    "certgp/errors.py": ({"_getframe"}, "sys has no public way to find the caller's line"),
    "certgp/cli/arguments.py": ({"_SubParsersAction"}, "the type of what argparse returns has no other name"),
    "certgp/cli/completion.py": (
        {"_SubParsersAction", "_actions", "_choices_actions"},
        "argparse has no public way to list what was declared",
    ),
    "certgp/estimators/sklearn_callbacks.py": (
        {"_init_callback_context"},
        "what scikit-learn documents for estimators that support its callbacks",
    ),
    "certgp/training/mini_batch/steps.py": ({"_foreach_lerp_"}, "torch offers updates of many tensors only so"),
}


@dataclass(frozen=True)
class Source:
    """A file of source code."""

    name: str  # from the package on
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    def foreign_names(self) -> Iterator[str]:
        """What it imports from other packages."""
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("certgp"):
                yield from (alias.asname or alias.name for alias in node.names)


@cache
def sources() -> tuple[Source, ...]:
    return tuple(
        Source(str(path.relative_to(folder.parent)), path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in sorted(folder.rglob("*.py"))
    )


# -------------------- inheritance


class Families:
    """The classes of some files, and which of them derive from which."""

    def __init__(self, files: tuple[Source, ...]) -> None:
        self.known = {(file.name, cls.name): cls for file in files for cls in file.classes}
        self.foreign = {file.name: set(file.foreign_names()) for file in files}

    def bases(self, key: tuple[str, str]) -> list[tuple[str, str]]:
        """Those of its bases that are ours: of the same file, or else of any that has a class of this name."""
        found = []
        for base in self.known[key].bases:
            name = ast.unparse(base).partition("[")[0]  # nn.Module and the like are no names of ours
            here = (key[0], name)
            if name in self.foreign[key[0]]:
                continue
            found += [here] if here in self.known else [other for other in self.known if other[1] == name][:1]
        return found

    def line(self, key: tuple[str, str]) -> list[list[tuple[str, str]]]:
        """Every way from a class up to one without bases of ours."""
        return [[key, *rest] for base in self.bases(key) for rest in self.line(base)] or [[key]]

    def ancestors(self, key: tuple[str, str]) -> set[tuple[str, str]]:
        return {each for way in self.line(key) for each in way}

    def methods(self, key: tuple[str, str]) -> set[str]:
        defined = {node.name for node in self.known[key].body if isinstance(node, ast.FunctionDef)}
        return {name for name in defined if not name.startswith("__")}


def too_deep(files: tuple[Source, ...]) -> Iterator[str]:
    families = Families(files)
    for key in families.known:
        for way in families.line(key):
            if len(way) > DEEPEST:
                yield f"{key[0]}: " + " < ".join(name for _, name in way)


def overridden_twice(files: tuple[Source, ...]) -> Iterator[str]:
    families = Families(files)
    for key in families.known:
        for method in families.methods(key):
            owners = sorted(name for file, name in families.ancestors(key) if method in families.methods((file, name)))
            if len(owners) > 2:
                yield f"{key[0]}: {method} is defined by {', '.join(owners)}"


# -------------------- objects that are looked into


def asks_for_attributes(files: tuple[Source, ...]) -> Iterator[str]:
    for file in files:
        allowed = FOREIGN.get(file.name, (set(), ""))[0]
        for node in file.nodes:
            asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1
            if asks and node.func.id in ("hasattr", "getattr", "setattr", "delattr"):
                name = node.args[1]
                literal = name.value if isinstance(name, ast.Constant) else None
                if literal not in allowed and (literal is not None or node.func.id == "hasattr"):
                    yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


def looks_at_privates(files: tuple[Source, ...]) -> Iterator[str]:
    for file in files:
        own = set(defined_names(file)) | BORROWED.get(file.name, (set(), ""))[0]
        for node in file.nodes:
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.endswith("__"):
                continue
            if ast.unparse(node.value).partition("(")[0] not in ("self", "cls", "super") and node.attr not in own:
                yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


def defined_names(file: Source) -> Iterator[str]:
    """Methods, fields and attributes of self that a file defines."""
    for node in file.nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id
                    elif isinstance(part, ast.Attribute) and ast.unparse(part.value) == "self":
                        yield part.attr


def asks_which_map(files: tuple[Source, ...]) -> Iterator[str]:
    for file in files:
        if file.name.startswith("certgp/features/"):
            continue
        for node in file.nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass", "type"):
                named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                named |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                if named & MAPS:
                    yield f"{file.name}:{node.lineno}: {ast.unparse(node)}"


def too_long(files: tuple[Source, ...]) -> Iterator[str]:
    for file in files:
        lines = len(file.text.splitlines())
        if lines > MOST_LINES:
            yield f"{file.name}: {lines} lines"


# -------------------- the rules, and files that break them

Rule = Callable[[tuple[Source, ...]], Iterator[str]]
RULES: dict[Rule, str] = {
    too_deep: "derive a final class directly from an abstract one, and share by composition",
    overridden_twice: "a method is defined once and overridden once",
    asks_for_attributes: "our own objects say what they can do; objects of others are listed in FOREIGN with a reason",
    looks_at_privates: "use a public member of that class, or make it one",
    asks_which_map: "put the difference on the map (features/base.py) instead of asking for its class",
    too_long: "divide the file",
}
BROKEN: dict[Rule, str] = {
    too_deep: "class A: ...\nclass B(A): ...\nclass C(nn.Module, B[int]): ...",
    overridden_twice: "class A:\n def f(self): ...\nclass M:\n def f(self): ...\nclass B(M, A):\n def f(self): ...",
    asks_for_attributes: "size = getattr(model, 'rank', None)",
    looks_at_privates: "rank = model.process._rank",
    asks_which_map: "good = isinstance(model.features, (features.MercerMap, FourierMap))",
    too_long: "\n" * (MOST_LINES + 1),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_its_rules(rule):
    broken = list(rule(sources()))
    assert not broken, f"{RULES[rule]}:\n" + "\n".join(broken)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_file_that_breaks_a_rule_is_found(rule):
    assert len(list(rule((Source("certgp/gp/new.py", BROKEN[rule]),)))) == 1


def test_what_is_allowed_is_not_taken_for_broken():
    text = (
        "class A:\n"
        "    def __init__(self):\n        super().__init__()\n        self._x, self.y = 1, 2\n"
        "    def same(self, other):\n        return self._x == other._x\n"
        "class B(A): ...\n"
        "values = [getattr(A(), name) for name in ('y',)]\n"
    )
    assert not [found for rule in RULES for found in rule((Source("certgp/gp/new.py", text),))]


@pytest.mark.parametrize("exceptions", [FOREIGN, BORROWED])
def test_exceptions_are_still_needed(exceptions):
    texts = {file.name: file.text for file in sources()}
    for name, (words, reason) in exceptions.items():
        assert reason
        assert all(word in texts[name] for word in words), f"{name} does not use {words} any more; drop the exception"


def test_all_rooms_are_searched():
    names = {file.name for file in sources()}
    assert {"certgp/estimators/base.py", "certgp/features/mercer.py", "certgp_paper/training/joint.py"} <= names
