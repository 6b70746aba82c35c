"""Fitted estimators as named tensors plus plain values, and back. Nothing here runs code that a file brings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certgp.data import Standardiser
from certgp.errors import ModelFileError
from certgp.estimators.base import GPRegressor
from certgp.estimators.exact import ExactGP
from certgp.estimators.fourier import FourierGP
from certgp.estimators.low_rank import LowRankRegressor
from certgp.estimators.mercer import MercerGP
from certgp.estimators.sparse import SparseGP
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import SpectralDesign
from certgp.gp import ExactProcess, GaussianProcess, LowRankModel, LowRankProcess, Statistics
from certgp.guarantees import Certificate
from certgp.kernels import Kernel, kernel_from_name
from certgp.training import History, Iteration
from certgp.transforms import Clip, Identity, Projection, Transform

ESTIMATORS: dict[str, type[GPRegressor]] = {cls.__name__: cls for cls in (MercerGP, FourierGP, SparseGP, ExactGP)}
Tensors = dict[str, Tensor]
Values = dict[str, Any]
_FITTED = (
    "noise_variance_",
    "rank_",
    "n_iter_",
    "converged_",
    "stop_reason_",
    "n_features_in_",
    "log_marginal_likelihood_",
)
_NOT_SAVED = ("callbacks", "engine", "random_state")  # objects of a session, not of a model


def dump_estimator(estimator: GPRegressor) -> tuple[Tensors, Values]:
    """Tensors and JSON-able values that rebuild a fitted estimator."""
    tensors, process = _dump_process(estimator._process)
    standardiser = estimator._standardiser
    tensors["standardiser.x_mean"] = torch.from_numpy(standardiser.x_mean.copy())
    tensors["standardiser.x_scale"] = torch.from_numpy(standardiser.x_scale.copy())
    tensors["standardiser.ignored"] = torch.from_numpy(standardiser.ignored.copy())
    names = getattr(estimator, "feature_names_in_", None)
    values = {
        "estimator": type(estimator).__name__,
        "parameters": {k: _plain(v) for k, v in estimator.get_params(deep=False).items() if k not in _NOT_SAVED},
        "fitted": {name: getattr(estimator, name) for name in _FITTED},
        "feature_names": None if names is None else [str(name) for name in names],
        "target_name": getattr(estimator, "target_name_", None),
        "history": [asdict(iteration) for iteration in estimator.history_.iterations],
        "y_mean": standardiser.y_mean,
        "y_scale": standardiser.y_scale,
        "process": process,
        "certificate": _dump_certificate(estimator),
    }
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}, values


def build_estimator(tensors: Tensors, values: Values) -> GPRegressor:
    """The estimator that ``dump_estimator`` described."""
    if values["estimator"] not in ESTIMATORS:
        raise ModelFileError(f"the file holds a {values['estimator']!r}, which this version of certgp does not know")
    parameters = {k: _revive(v) for k, v in values["parameters"].items()}
    estimator = ESTIMATORS[values["estimator"]](**parameters)
    estimator._standardiser = Standardiser(
        tensors["standardiser.x_mean"].numpy(),
        tensors["standardiser.x_scale"].numpy(),
        values["y_mean"],
        values["y_scale"],
        tensors["standardiser.ignored"].numpy(),
    )
    estimator._process = _build_process(tensors, values["process"])
    for name, value in values["fitted"].items():
        setattr(estimator, name, value)
    if values["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(values["feature_names"], dtype=object)
    if values["target_name"] is not None:
        estimator.target_name_ = values["target_name"]
    if isinstance(estimator, LowRankRegressor) and values.get("certificate") is not None:
        estimator._certificate = Certificate.from_dict(values["certificate"])
    estimator.history_ = History(tuple(Iteration(**record) for record in values["history"]))
    estimator.kernel_ = estimator._kernel_in_user_units()
    return estimator


def _dump_certificate(estimator: GPRegressor) -> Values | None:
    known = estimator._certificate if isinstance(estimator, LowRankRegressor) else None
    return None if known is None else known.to_dict()


def _dump_process(process: GaussianProcess) -> tuple[Tensors, Values]:
    values: Values = {"signal_variance": process.signal_variance, "noise_variance": process.noise_variance}
    if isinstance(process, ExactProcess):
        tensors = {"rows.X": process.X, "rows.y": process.y, "length_scale": process.kernel.length_scale}
        return tensors, values | {"kind": "exact", "kernel": process.kernel.name}
    if not isinstance(process, LowRankProcess):
        raise ModelFileError(f"a {type(process).__name__} cannot be saved")
    stats, model = process.statistics, process.model
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {"statistics.A": stats.A, "statistics.b": stats.b}
    return tensors, values | {
        "kind": "lowrank",
        "variance": process.variance_kind,
        "yty": stats.yty,
        "n": stats.n,
        "transform": _dump_transform(model.transform),
        "features": _dump_features(model.features),
    }


def _build_process(tensors: Tensors, values: Values) -> GaussianProcess:
    signal, noise = values["signal_variance"], values["noise_variance"]
    if values["kind"] == "exact":
        kernel = kernel_from_name(values["kernel"])(tensors["length_scale"], signal)
        return ExactProcess(kernel, tensors["rows.X"], tensors["rows.y"], noise)
    state = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    model = LowRankModel(_build_transform(state, values["transform"]), _build_features(state, values["features"]))
    model.load_state_dict(state)
    stats = Statistics(tensors["statistics.A"], tensors["statistics.b"], values["yty"], values["n"])
    return LowRankProcess(model.requires_grad_(False), stats, signal, noise, values["variance"])


def _dump_transform(transform: Transform) -> Values:
    return {"kind": type(transform).__name__, "dimension": transform.dimension}


def _build_transform(state: Tensors, values: Values) -> Transform:
    if values["kind"] == "Projection":
        return Projection(state["transform.directions"], state["transform.mean"], state["transform.covariance"])
    if values["kind"] == "Clip":
        return Clip(state["transform.lower"], state["transform.upper"])
    return Identity(values["dimension"])


def _dump_features(features: FeatureMap) -> Values:
    values: Values = {"kind": type(features).__name__, "kernel": features.kernel_family.name}
    if isinstance(features, MercerMap):
        values["index_set"] = features.index_set
    if isinstance(features, FourierMap):
        values["learns_frequencies"] = features.learns_frequencies
    if isinstance(features, NystromMap):
        values["jitter"] = features.jitter
    return values


def _build_features(state: Tensors, values: Values) -> FeatureMap:
    kernel = kernel_from_name(values["kernel"])(state["features.log_length_scale"].exp())
    if values["kind"] == "MercerMap":
        mercer = MercerMap(kernel, state["features.log_input_scale"].exp(), 1, values["index_set"])
        mercer.set_indices(state["features.indices"].numpy())
        return mercer
    if values["kind"] == "FourierMap":
        design = SpectralDesign(state["features.frequencies"], state["features.amplitudes"].square())
        return FourierMap(kernel, design, learn_frequencies=values["learns_frequencies"])
    return NystromMap(kernel, state["features.inducing_points"], jitter=values["jitter"])


def _plain(value: Any) -> Any:
    """A parameter as JSON: kernels by name and numbers, arrays and frames as lists."""
    if isinstance(value, Kernel):
        scales = value.length_scale.detach().tolist()
        return {"kernel": value.name, "length_scale": scales, "signal_variance": float(value.signal_variance.detach())}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return np.asarray(value, dtype=np.float64).tolist()


def _revive(value: Any) -> Any:
    if isinstance(value, dict) and "kernel" in value:
        return kernel_from_name(value["kernel"])(value["length_scale"], value["signal_variance"])
    return value
