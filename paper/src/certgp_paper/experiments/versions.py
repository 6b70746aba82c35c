"""Which version of the code makes a cell: a hash of the definitions that its result depends on.

A cell depends on the functions and classes that compute it and on those they use, inside certgp and certgp_paper: a
change of ``ExactGP`` leaves the version of ``MercerGP`` as it was. Comments, docstrings, annotations of arguments and
the words of errors do not count. Neither does code that looks at a finished result (bounds, files, pictures, reports,
commands: ``_LATER``), nor what no cell asks for (``NOT_ASKED_FOR``). Settings are part of the cell itself.

What is found by a name at run time is not seen; whoever asks for a version names it (``code.py``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

import certgp
import certgp_paper

_PACKAGES = {
    "certgp": Path(str(certgp.__file__)).parent,
    "certgp_paper": Path(str(certgp_paper.__file__)).parent,
}
# what comes after the result or beside it: modules, single definitions and single members of classes, left out wherever
# the library itself uses them
_LATER = (
    "certgp.cli",
    "certgp.plots",
    "certgp.guarantees",
    "certgp.errors:ExtrapolationWarning",
    "certgp.errors:warn_user",
    "certgp.estimators.base:GPRegressor._certify",
    "certgp.estimators.base:GPRegressor.certify",
    "certgp.estimators.base:GPRegressor.distribution",
    "certgp.estimators.base:GPRegressor.partial_fit",
    "certgp.estimators.base:GPRegressor.predict_interval",
    "certgp.estimators.base:GPRegressor.predict_quantiles",
    "certgp.estimators.base:GPRegressor.rank_curve",
    "certgp.estimators.base:GPRegressor.sample_y",
    "certgp.estimators.base:GPRegressor.save",
    "certgp.estimators.certifying",
    "certgp.estimators.effects",
    "certgp.estimators.fingerprint",
    "certgp.estimators.held_out:explain_certificate",
    "certgp.estimators.notebook",
    "certgp.estimators.persistence",
    "certgp.estimators.report_words",
    "certgp.estimators.reporting",
    "certgp.kernels.base:Kernel.__repr__",
    "certgp.methods:registered_name",
    "certgp.gp.description",
    "certgp.models.description",
    "certgp.models.file",
    "certgp.models.fitted:_extend",
    "certgp.models.fitted:FittedModel.sample",
    "certgp.models.format2",
    "certgp.report",
    "certgp.training.progress",
    "certgp.version",
    "certgp_paper.claims",
    "certgp_paper.commands",
    "certgp_paper.figures",
    "certgp_paper.page",
    "certgp_paper.published",
    "certgp_paper.experiments.cells",
    "certgp_paper.experiments.comparison",
    "certgp_paper.experiments.experiment",
    "certgp_paper.experiments.linear_rows",
    "certgp_paper.experiments.results",
    "certgp_paper.datasets.download",
    "certgp_paper.datasets.fetch",
)
# what a fit does only where it is asked to and no cell asks: ``warp="auto"`` and ``likelihood="student"``
NOT_ASKED_FOR = (
    "certgp.estimators.warping:_decide",
    "certgp.training.student:choose_student",
    "certgp.training.student:settle_weights",
)


Definition = tuple[str, str]  # module and name; the name "" stands for statements that define none


@cache
def code_version(roots: tuple[str, ...], alone: tuple[str, ...] = ()) -> str:
    """Twelve digits that change where the code of these roots, or of what they use, computes something else.

    A root is ``module`` or ``module:name``. Of what is in ``alone``, such as a function that chooses among methods, its
    own text counts and not what it uses.
    """
    digest = sha256()
    behind = {*definitions_behind(roots), *(found for root in alone for found in _root(root))}
    for module, name in sorted(behind):
        text = "\n".join(map(ast.unparse, _module(module).statements(name)))
        digest.update(f"{module}:{name}\n{text}\n".encode())
    return digest.hexdigest()[:12]


@cache
def definitions_behind(roots: tuple[str, ...]) -> tuple[Definition, ...]:
    """The definitions themselves and all that they use, sorted."""
    waiting = [found for root in roots for found in _root(root)]
    behind: set[Definition] = set()
    while waiting:
        definition = waiting.pop()
        if definition not in behind:
            behind.add(definition)
            waiting += [used for used in _used_by(definition) if not _is_left_out(used, definition[0])]
    return tuple(sorted(behind))


def _root(root: str) -> Iterator[Definition]:
    module, _, name = root.partition(":")
    found = list(_resolve(module, name)) if name else _all_of(module)
    if not found or _file_of(module) is None:
        raise ValueError(f"{root} is no definition of {' or '.join(_PACKAGES)}")
    yield from found


def _all_of(module: str) -> list[Definition]:
    return [(module, name) for name in ("", *_module(module).definitions)]


def _is_left_out(used: Definition, user: str) -> bool:
    """Experiments may measure bounds themselves; then these are part of the result."""
    module, name = used
    if module.startswith("certgp.guarantees") and user.startswith(("certgp_paper.", "certgp.guarantees")):
        return False
    if f"{module}:{name}" in NOT_ASKED_FOR:
        return True
    return any(f"{module}:{name}" == later or f"{module}.".startswith(f"{later}.") for later in _LATER)


def _used_by(definition: Definition) -> Iterator[Definition]:
    """What the statements of a definition name, and what its module does when it is imported."""
    module, name = definition
    yield module, ""
    for node in (node for statement in _module(module).statements(name) for node in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id != name:
            yield from _resolve(module, node.id)


@cache
def _resolve(module: str, name: str) -> tuple[Definition, ...]:
    """The definition that a name stands for in a module; none where it is a variable or belongs to others."""
    content = _module(module)
    if name in content.definitions:
        return ((module, name),)
    if name not in content.imports:
        return ()
    source, wanted = content.imports[name]
    if _file_of(source) is None:
        return ()
    if not wanted:
        return tuple(_all_of(source))
    if _file_of(f"{source}.{wanted}") is not None:
        return tuple(_all_of(f"{source}.{wanted}"))
    return _resolve(source, wanted)


# ---------------------------------------------------------------------------------------------- source text


@dataclass
class _Module:
    """Top-level definitions by name, all imports by the name they give, and the other statements."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # module, name in it or ""
    others: list[ast.stmt] = field(default_factory=list)

    def statements(self, name: str) -> Sequence[ast.stmt]:
        """Those that define a name."""
        return self.definitions[name] if name else self.others


@cache
def _module(module: str) -> _Module:
    path = _file_of(module)
    if path is None:
        raise ValueError(f"{module} is no module of {' or '.join(_PACKAGES)}")
    tree = ast.parse(path.read_bytes())
    found = _Module()
    for node in ast.walk(tree):  # before imports for type checkers go: packages hand names on by them
        if isinstance(node, ast.Import):
            found.imports |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    for statement in _Essential().visit(tree).body:
        if isinstance(statement, ast.ClassDef):
            statement.body = _without_later(statement, module)
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = list(_defined_names(statement))
            for name in names:
                found.definitions.setdefault(name, []).append(statement)
            found.others += [] if names or isinstance(statement, ast.Pass) else [statement]
    return found


def _without_later(statement: ast.ClassDef, module: str) -> list[ast.stmt]:
    """The body of a class without members that look at a finished result."""

    def is_later(member: ast.stmt) -> bool:
        return isinstance(member, ast.FunctionDef) and f"{module}:{statement.name}.{member.name}" in _LATER

    return [member for member in statement.body if not is_later(member)] or [ast.Pass()]


def _defined_names(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def _file_of(module: str) -> Path | None:
    """The file of a module of the two packages; None for all others."""
    package, *parts = module.split(".")
    if package not in _PACKAGES:
        return None
    place = _PACKAGES[package].joinpath(*parts)
    files = (place / "__init__.py", place.parent / f"{place.name}.py")
    return next((file for file in files if file.is_file()), None)


class _Essential(ast.NodeTransformer):
    """Takes away docstrings, imports for type checkers, annotations of functions and the words of errors."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = _without_texts(node.body)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        return ast.Raise(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse
        return self.generic_visit(node)


def _without_texts(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements that are more than a text; a body is never empty."""
    kept = [line for line in body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
    return kept or [ast.Pass()]
