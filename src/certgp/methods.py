"""The table of methods: what ``certgp``, the command line, AutoGP and model files know of estimators.

Nothing here imports torch. Packages add methods of their own through the entry point group ``certgp.methods``: the name
is that of the command line, the value the estimator's class, as in ``hat = "my_package.hat:HatGP"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from certgp.errors import InvalidInputError, ModelFileError, warn_user

GROUP = "certgp.methods"
T = TypeVar("T")


@dataclass(frozen=True)
class Method:
    """An estimator by the name that users type."""

    name: str  # on the command line
    path: str  # module:class
    default_rank: int | None = 100  # None: the method has no rank
    kernel: str | None = None  # the only kernel it takes, if there is only one
    other_kernels: str = ""  # what to use with another kernel
    holds_rows: bool = False  # does a fitted model, and so its file, hold the training rows?

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.path.partition(":")[2]

    def load(self) -> Any:
        """The estimator's class; refuses one that cannot be imported."""
        module, _, name = self.path.partition(":")
        try:
            return getattr(import_module(module), name)
        except Exception as error:  # of whatever a package does when it is imported
            raise InvalidInputError(
                f"the method {self.name!r} ({self.path}) does not work ({type(error).__name__}: {error}); update or "
                "remove the package that declares it"
            ) from error


BUILT_IN = (
    Method("auto", "certgp.estimators.auto:AutoGP"),
    Method("mercer", "certgp.estimators.mercer:MercerGP", 100, "gaussian", "fourier, sparse or exact"),
    Method("fourier", "certgp.estimators.fourier:FourierGP"),
    Method("sparse", "certgp.estimators.sparse:SparseGP"),
    Method("exact", "certgp.estimators.exact:ExactGP", None, holds_rows=True),
    Method("local", "certgp.estimators.local:LocalGP", None, holds_rows=True),
    Method("deep-mercer", "certgp.estimators.deep_mercer:DeepMercerGP", 15, "gaussian", "deep-fourier"),
    Method("deep-fourier", "certgp.estimators.deep_fourier:DeepFourierGP", 40),
)


@dataclass(frozen=True)
class Contestant:
    """A method in AutoGP's race, with the options that set it apart from others of the same class."""

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    can_be_certified: bool = True
    finds_rank: bool = False  # is it of use where a rank is to be proven?
    most_rank: int | None = None  # it gains nothing from more features
    probe_iterations: int = 30  # in a probe on a subsample
    least_rows: int = 0
    least_unnamed_rows: int = 0  # where the candidates are not chosen by name
    most_rows: int | None = None
    is_seeded: bool = False  # does it go to the finals without a probe?
    keeps_gaining: bool = False  # from ever more rows, as models that hold them do


_FEW_ROWS = 2_000  # up to which the exact GP takes part instead of its approximations
# the first stands where rows are too few to compare
CONTESTANTS = (
    Contestant("exact", "exact", {"solver": "dense"}, most_rows=_FEW_ROWS),
    Contestant("exact-matern", "exact", {"solver": "dense", "kernel": "matern32"}, most_rows=_FEW_ROWS),
    Contestant(
        "exact-sum", "exact", {"solver": "dense", "kernel": "matern52 + matern12"}, most_rows=_FEW_ROWS, is_seeded=True
    ),
    Contestant("local", "local", probe_iterations=70, is_seeded=True, keeps_gaining=True),
    Contestant("mercer", "mercer", finds_rank=True),
    Contestant(
        "mercer-marginal", "mercer", {"objective": "marginal", "variance": "lowrank"}, least_unnamed_rows=_FEW_ROWS + 1
    ),
    Contestant("sparse", "sparse", finds_rank=True, least_unnamed_rows=_FEW_ROWS + 1),
    Contestant("fourier", "fourier", finds_rank=True, least_unnamed_rows=_FEW_ROWS + 1),
    Contestant("fourier-learned", "fourier", {"learn_frequencies": True}, can_be_certified=False),
    Contestant(
        "deep-fourier",
        "deep-fourier",
        can_be_certified=False,
        most_rank=40,
        probe_iterations=8,
        least_rows=_FEW_ROWS + 1,
    ),
)


@cache
def methods() -> dict[str, Method]:
    """All methods by name: those of certgp, and those that installed packages add."""
    found = {method.name: method for method in BUILT_IN}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, Method(point.name, point.value))
    return found


def load_all() -> None:
    """Import every method's class, so that files that name one can be read; one that fails is named and left out."""
    for method in methods().values():
        try:
            method.load()
        except InvalidInputError as error:
            warn_user(str(error))


def registered_name(cls: type) -> str:
    """The name under which files know a class: short inside certgp, with its module outside."""
    return cls.__name__ if cls.__module__.split(".")[0] == "certgp" else f"{cls.__module__}.{cls.__qualname__}"


def find_registered(name: str, registry: Mapping[str, T], what: str) -> T:
    """The class that a file names: defined already, or in a package that declares its methods."""
    if name not in registry:
        load_all()
    if name not in registry:
        raise ModelFileError(
            f"the file holds the {what} {name!r}, which is not known here; import the module that defines it before "
            "load()"
        )
    return registry[name]


def check_registered(cls: type, registry: Mapping[str, type]) -> str:
    """The name of a class in a registry; refuses one that ``load`` would not find under it."""
    name = registered_name(cls)
    if "<locals>" in name or registry.get(name) is not cls:
        raise ModelFileError(
            f"{cls.__qualname__} is defined inside a function or was defined again since, so load() could not find it; "
            "define it at the top level of a module"
        )
    return name
