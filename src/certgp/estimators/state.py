"""Fitted estimators as named tensors plus plain values, and back. Nothing here runs code that a file brings."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from certgp.data import Standardiser
from certgp.data.tables import FittedTable
from certgp.errors import ModelFileError
from certgp.estimators.auto import AutoGP
from certgp.estimators.base import GPRegressor
from certgp.estimators.deep_fourier import DeepFourierGP
from certgp.estimators.deep_mercer import DeepMercerGP
from certgp.estimators.exact import ExactGP
from certgp.estimators.fourier import FourierGP
from certgp.estimators.low_rank import LowRankRegressor
from certgp.estimators.mercer import MercerGP
from certgp.estimators.sparse import SparseGP
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap
from certgp.features.spectral import SpectralDesign
from certgp.gp import ExactProcess, GaussianProcess, LowRankModel, LowRankProcess, MixtureProcess, Statistics
from certgp.guarantees import Certificate
from certgp.kernels import Kernel, kernel_from_name
from certgp.training import History, Iteration, Trial
from certgp.transforms import Clip, Identity, Network, Projection, TanhNetwork, Transform

ESTIMATORS: dict[str, type[GPRegressor]] = {
    cls.__name__: cls for cls in (AutoGP, MercerGP, FourierGP, SparseGP, ExactGP, DeepMercerGP, DeepFourierGP)
}
Tensors = dict[str, Tensor]
Values = dict[str, Any]
_FITTED = (
    "noise_variance_",
    "noise_scale_",
    "rank_",
    "n_iter_",
    "converged_",
    "stop_reason_",
    "n_features_in_",
    "log_marginal_likelihood_",
)
_CHOICE = ("method_", "choice_")  # of AutoGP
_NOT_SAVED = ("callbacks", "engine", "checkpoint")  # objects of a session, not of a model


def dump_estimator(estimator: GPRegressor) -> tuple[Tensors, Values]:
    """Tensors and JSON-able values that rebuild a fitted estimator."""
    tensors, process = _dump_process(estimator._process)
    standardiser = estimator._standardiser
    tensors["standardiser.x_mean"] = torch.from_numpy(standardiser.x_mean.copy())
    tensors["standardiser.x_scale"] = torch.from_numpy(standardiser.x_scale.copy())
    tensors["standardiser.ignored"] = torch.from_numpy(standardiser.ignored.copy())
    tensors["range.lower"], tensors["range.upper"] = map(torch.from_numpy, estimator._range)
    names = getattr(estimator, "feature_names_in_", None)
    values = {
        "estimator": type(estimator).__name__,
        "parameters": {k: _plain(v) for k, v in estimator.get_params(deep=False).items() if _is_saved(k, v)},
        "fitted": {name: getattr(estimator, name) for name in _FITTED},
        "feature_names": None if names is None else [str(name) for name in names],
        "target_name": getattr(estimator, "target_name_", None),
        "table": _dump_table(estimator),
        "choice": {name: getattr(estimator, name) for name in _CHOICE if hasattr(estimator, name)},
        "trials": [asdict(trial) for trial in getattr(estimator, "trials_", ())],
        "history": [asdict(iteration) for iteration in estimator.history_.iterations],
        "y_mean": standardiser.y_mean,
        "y_scale": standardiser.y_scale,
        "process": process,
        "certificate": _dump_certificate(estimator),
    }
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}, values


def build_estimator(tensors: Tensors, values: Values, network: nn.Module | None = None) -> GPRegressor:
    """The estimator that ``dump_estimator`` described; a network of the user's own must be given back."""
    if values["estimator"] not in ESTIMATORS:
        raise ModelFileError(f"the file holds a {values['estimator']!r}, which this version of certgp does not know")
    parameters = {k: _revive(v) for k, v in values["parameters"].items()}
    parameters |= _given_network(values["parameters"], network)
    estimator = ESTIMATORS[values["estimator"]](**parameters)
    estimator._standardiser = Standardiser(
        tensors["standardiser.x_mean"].numpy(),
        tensors["standardiser.x_scale"].numpy(),
        values["y_mean"],
        values["y_scale"],
        tensors["standardiser.ignored"].numpy(),
    )
    estimator._process = _build_process(tensors, values["process"], network)
    estimator._range = (tensors["range.lower"].numpy(), tensors["range.upper"].numpy())
    estimator._box_in()
    for name, value in values["fitted"].items():
        setattr(estimator, name, value)
    if values["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(values["feature_names"], dtype=object)
    for name, value in values["choice"].items():
        setattr(estimator, name, value)
    if isinstance(estimator, LowRankRegressor):
        estimator.trials_ = tuple(Trial(**trial) for trial in values["trials"])
    if values["target_name"] is not None:
        estimator.target_name_ = values["target_name"]
    if values.get("table") is not None:
        estimator.table_ = FittedTable(**values["table"] | {"positions": tuple(values["table"]["positions"])})
    if isinstance(estimator, LowRankRegressor) and values.get("certificate") is not None:
        estimator._certificate = Certificate.from_dict(values["certificate"])
    estimator.history_ = History(tuple(Iteration(**record) for record in values["history"]))
    estimator.kernel_ = estimator._kernel_in_user_units()
    return estimator


def _is_saved(name: str, value: object) -> bool:
    """Is this parameter part of the model? A seed is; a generator, which has moved on since, is not."""
    if name == "random_state":
        return isinstance(value, (int, np.integer))
    return name not in _NOT_SAVED


def _dump_table(estimator: GPRegressor) -> Values | None:
    table = getattr(estimator, "table_", None)
    return None if table is None else asdict(table)


def _dump_certificate(estimator: GPRegressor) -> Values | None:
    known = estimator._certificate if isinstance(estimator, LowRankRegressor) else None
    return None if known is None else known.to_dict()


def _dump_process(process: GaussianProcess) -> tuple[Tensors, Values]:
    names = ("signal_variance", "noise_variance", "noise_scale")
    values: Values = {name: getattr(process, name) for name in names}
    if isinstance(process, ExactProcess):
        tensors = {"rows.X": process.X, "rows.y": process.y, "length_scale": process.kernel.length_scale}
        return tensors, values | {"kind": "exact", "kernel": process.kernel.name}
    if isinstance(process, MixtureProcess):
        dumped = [_dump_process(member) for member in process.members]
        named = {f"{i}.{name}": tensor for i, (part, _) in enumerate(dumped) for name, tensor in part.items()}
        return named, {"kind": "mixture", "members": [described for _, described in dumped]}
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


def _build_process(tensors: Tensors, values: Values, network: nn.Module | None) -> GaussianProcess:
    if values["kind"] == "mixture":
        parts = [_part(tensors, f"{i}.") for i in range(len(values["members"]))]
        pairs = zip(parts, values["members"], strict=True)
        return MixtureProcess([_build_process(part, described, network) for part, described in pairs])
    process = _build_single(tensors, values, network)
    process.noise_scale = values["noise_scale"]
    return process


def _build_single(tensors: Tensors, values: Values, network: nn.Module | None) -> GaussianProcess:
    signal, noise = values["signal_variance"], values["noise_variance"]
    if values["kind"] == "exact":
        kernel = kernel_from_name(values["kernel"])(tensors["length_scale"], signal)
        return ExactProcess(kernel, tensors["rows.X"], tensors["rows.y"], noise)
    state = _part(tensors, "model.")
    transform = _build_transform(state, values["transform"], network)
    model = LowRankModel(transform, _build_features(state, values["features"])).eval()
    model.load_state_dict(state)
    stats = Statistics(tensors["statistics.A"], tensors["statistics.b"], values["yty"], values["n"])
    return LowRankProcess(model.requires_grad_(False), stats, signal, noise, values["variance"])


def _part(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _dump_transform(transform: Transform) -> Values:
    values: Values = {"kind": type(transform).__name__, "dimension": transform.dimension}
    if isinstance(transform, Network):
        module = transform.module
        values["widths"] = list(module.widths) if isinstance(module, TanhNetwork) else None
    return values


def _build_transform(state: Tensors, values: Values, network: nn.Module | None) -> Transform:
    if values["kind"] == "Projection":
        return Projection(state["transform.directions"], state["transform.mean"], state["transform.covariance"])
    if values["kind"] == "Clip":
        return Clip(state["transform.lower"], state["transform.upper"])
    if values["kind"] == "Network":
        return _build_network(state, values, network)
    return Identity(values["dimension"])


def _build_network(state: Tensors, values: Values, network: nn.Module | None) -> Network:
    """The network with the weights of the file; a user's own is copied, so that the one given stays as it is."""
    weights = _part(state, "transform.module.")
    if values["widths"] is not None:
        module: nn.Module = TanhNetwork(values["widths"], torch.Generator())
    else:
        module = copy.deepcopy(network) if network is not None else nn.Identity()
    module = module.to(next(iter(weights.values())).dtype)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(
            f"network does not have the weights of the one that was saved ({error}); build it as it was at fit"
        ) from error
    return Network(module, values["dimension"])


def _given_network(parameters: Values, network: nn.Module | None) -> Values:
    """The parameter ``network``: files hold weights, never code, so a user's module comes back from the user."""
    described = parameters.get("network")
    if described is None and network is not None:
        raise ModelFileError("the file holds no network of your own; call load(path) without network")
    if described is None:
        return {}
    if network is None:
        raise ModelFileError(
            f"the file holds the weights of a {described['module']} but not its code; build that module again and call "
            "load(path, network=module)"
        )
    return {"network": network}


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
    if isinstance(value, nn.Module):
        return {"module": type(value).__name__}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, (int, str)) for item in value):
        return list(value)  # widths of layers stay whole numbers, names stay names
    return np.asarray(value, dtype=np.float64).tolist()


def _revive(value: Any) -> Any:
    if isinstance(value, dict) and "kernel" in value:
        return kernel_from_name(value["kernel"])(value["length_scale"], value["signal_variance"])
    return value
