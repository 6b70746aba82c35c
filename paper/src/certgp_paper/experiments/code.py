"""The code behind each cell: what of the two packages its result depends on, and whether that has changed since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from certgp_paper.experiments.cells import Cell, Finished, Settings, Values
from certgp_paper.experiments.versions import code_version

Compute = Callable[[Settings], Values]

_HERE = "certgp_paper.experiments"
_KERNELS = ("certgp.kernels.gaussian", "certgp.kernels.matern")  # found by their names at run time
_SCORED = (*_KERNELS, "certgp.estimators.scores", "certgp_paper.datasets.splits:standardised_split")
_LINEAR = {
    "SGPR": "certgp.estimators:SparseGP",
    "FGP": "certgp.estimators:FourierGP",
    "MGP": "certgp.estimators:MercerGP",
}
_LINEAR_PROTOCOLS = {"paper": "fit_as_in_paper", "released": "fit_as_released"}
_DEEP = {
    "SVIGP": f"{_HERE}.deep_methods:_svigp",
    "SGPR": f"{_HERE}.deep_methods:_sgpr",
    "DKL": f"{_HERE}.deep_methods:_dkl",
    "RFEDGP": f"{_HERE}.deep_methods:_rfedgp",
    "DMGP": "certgp.estimators:DeepMercerGP",
    "DFGP": "certgp.estimators:DeepFourierGP",
    "DNN+S": "certgp_paper.baselines.two_step:NetworkRegressor",
    "DNN+M": "certgp_paper.baselines.two_step:TwoStepGP",
    "DNN+F": "certgp_paper.baselines.two_step:TwoStepGP",
}
_CURVES = {"exact from 1": f"{_HERE}.curve_starts:compute_far_cell"}  # by features; all others:
_CURVE = f"{_HERE}.curve_cells:compute_curve_cell"


def cell_version(cell: Cell, compute: Compute) -> str | None:
    """The present version of the code that makes a cell; None where it is not part of the two packages."""
    if not compute.__module__.startswith(("certgp.", "certgp_paper.")):
        return None
    by_method = {"table-linear": _linear_version, "table-deep": _deep_version, "curves": _curve_version}.get(
        cell.family
    )
    found = None if by_method is None else by_method(cell.settings)
    return found or code_version((f"{compute.__module__}:{compute.__name__}", *_KERNELS))


def is_outdated(finished: Finished, compute: Compute) -> bool:
    """Was it made by other code than that of today, or code not recorded, and not confirmed for that of today?"""
    version = cell_version(finished.cell, compute)
    known = (finished.made_by.get("version"), finished.made_by.get("confirmed", {}).get("version"))
    return version is not None and version not in known


def outdated_cells(cells: Sequence[Finished], compute: Compute) -> list[Cell]:
    """Those that the present code would make anew."""
    return [finished.cell for finished in cells if is_outdated(finished, compute)]


def _linear_version(settings: Settings) -> str | None:
    variant, method = str(settings["variant"]), str(settings["method"])
    module = f"{_HERE}.linear_table"
    if variant in _LINEAR_PROTOCOLS:
        protocol = f"certgp_paper.training.paper_protocol:{_LINEAR_PROTOCOLS[variant]}"
        return code_version((protocol, *_SCORED), (f"{module}:compute_cell",))
    return code_version((_LINEAR[method], *_SCORED), (f"{module}:compute_cell", f"{module}:_train_estimator"))


def _curve_version(settings: Settings) -> str:
    return code_version((_CURVES.get(str(settings["features"]), _CURVE), *_KERNELS))


def _deep_version(settings: Settings) -> str | None:
    """By method and, for the paper's recipe, what builds it."""
    method = str(settings["method"]).removesuffix("+")
    if method not in _DEEP:
        return None
    by_recipe = settings.get("variant") == "paper"
    builders = ("deep_methods:build_as_in_paper",) if by_recipe else ("deep_methods:build_at", "deep_methods:_network")
    dispatch = ("deep_cells:compute", "deep_cells:_training_rows", *builders)
    return code_version(
        (_DEEP[method], f"{_HERE}.deep_effort:Effort", *_SCORED), tuple(f"{_HERE}.{name}" for name in dispatch)
    )
