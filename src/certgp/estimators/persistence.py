"""Fitted estimators as model files, and back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from certgp.data.tables import FittedTable
from certgp.errors import InvalidInputError, ModelFileError
from certgp.estimators.base import ESTIMATORS, GPRegressor
from certgp.gp.description import select_part
from certgp.kernels import Kernel, kernel_from_description
from certgp.methods import check_registered, find_registered
from certgp.models.description import build_model, describe_model, share_model, store_once, use_one_model
from certgp.models.file import read_model_file, write_model_file
from certgp.tabular.encoding import Encoding
from certgp.training import History, Iteration, Trial
from certgp.version import __version__

if TYPE_CHECKING:
    from certgp.models import FittedModel

Values = dict[str, Any]
_FITTED = (
    "noise_variance_",
    "noise_scale_",
    "rank_",
    "n_iter_",
    "converged_",
    "stop_reason_",
    "n_features_in_",
)
_CHOICE = ("method_", "choice_")  # where several methods were compared
_NOT_SAVED = ("callbacks", "engine", "checkpoint")  # objects of a session, not of a model


def save(estimator: GPRegressor, path: Path, include_training_data: bool) -> None:
    """Write a fitted estimator; what ``load`` would not know is refused."""
    if estimator.needs_training_data and not include_training_data:
        raise InvalidInputError(
            "an exact or local GP cannot predict without its training rows, and model files hold none by default; "
            "call save(path, include_training_data=True) to write them, or fit a low-rank model"
        )
    if estimator.outputs_ is None:
        write_model_file(path, *_describe(estimator, estimator.models[0]))
        return
    pairs = zip(estimator.outputs_, estimator.models, strict=True)
    described = [_describe(part, model) for part, model in pairs]
    for _, own in described:
        own["encoding"] = None  # all have that of the whole
    tensors, aliases = store_once([part for part, _ in described])
    values = _describe_parameters(estimator) | {
        "encoding": _describe_encoding(estimator),
        "target_name": estimator.target_name_,
        "table": None if estimator.table_ is None else asdict(estimator.table_),
        "outputs": [own for _, own in described],
        "aliases": aliases,
        "one_model": share_model(estimator.models),
    }
    write_model_file(path, tensors, values)


def _describe_parameters(estimator: GPRegressor) -> Values:
    """What made an estimator, whether or not it has several outputs."""
    parameters = estimator.get_params(deep=False).items()
    return {
        "estimator": check_registered(type(estimator), ESTIMATORS),
        "parameters": {k: _to_json(v) for k, v in parameters if _is_saved(k, v)},
    }


def _describe(estimator: GPRegressor, model: FittedModel) -> tuple[dict[str, Tensor], Values]:
    """Tensors and values of a fitted estimator of one output."""
    tensors, values = describe_model(model)
    attributes = vars(estimator)
    names = attributes.get("feature_names_in_")
    values |= _describe_parameters(estimator) | {
        "fitted": {name: attributes[name] for name in _FITTED},
        "feature_names": None if names is None else [str(name) for name in names],
        "target_name": estimator.target_name_,
        "table": None if estimator.table_ is None else asdict(estimator.table_),
        "encoding": _describe_encoding(estimator),
        "choice": {name: attributes[name] for name in _CHOICE if name in attributes},
        "trials": [asdict(trial) for trial in estimator.trials_],
        "history": [asdict(iteration) for iteration in estimator.history_.iterations],
    }
    return tensors, values


def _describe_encoding(estimator: GPRegressor) -> Values | None:
    return None if estimator.encoding_ is None else estimator.encoding_.describe()


def load(path: str | Path, network: nn.Module | None = None) -> Any:
    """Read a fitted estimator from a file that ``save`` wrote; one that learned from a table with words, dates or gaps
    comes back as a ``TableGP``.

    A deep model with a network of your own keeps its weights in the file but not its code: build the same module again
    and pass it as ``network``; it is copied and the saved weights are put into the copy. Likewise an estimator, feature
    map, transform or kernel of your own must have been defined before: import the module that defines it first. Those
    in the modules that packages declare under the entry point group ``certgp.methods`` are found by themselves.
    """
    from certgp.estimators.table_gp import TableGP

    found = load_estimator(path, network)
    return found if found.encoding_ is None else TableGP.of(found)


def load_estimator(path: str | Path, network: nn.Module | None = None) -> Any:
    """The same without the table: an estimator that takes the numbers its columns became (``encoding_``)."""
    path = Path(path)
    tensors, values, header = read_model_file(path)
    try:
        return _build_outputs(tensors, values, network) if "outputs" in values else _build(tensors, values, network)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{path} was written by certgp {header.get('library_version')} and lacks what certgp {__version__} "
            f"needs ({error!r}); load it with that version, or fit again"
        ) from error


def _build_outputs(tensors: dict[str, Tensor], values: Values, network: nn.Module | None) -> GPRegressor:
    """An estimator of several outputs."""
    everything = tensors | {name: tensors[first] for name, first in values["aliases"].items()}
    parts = [_build(select_part(everything, f"{j}."), own, network) for j, own in enumerate(values["outputs"])]
    if values["one_model"]:
        use_one_model([part.models[0] for part in parts])
    estimator = _unfitted(values, network)
    for name in ("n_features_in_", "feature_names_in_"):
        if name in vars(parts[0]):
            estimator.__dict__[name] = vars(parts[0])[name]
    _restore_table(estimator, values)
    return estimator.hold_outputs(parts)


def _unfitted(values: Values, network: nn.Module | None) -> GPRegressor:
    cls = find_registered(values["estimator"], ESTIMATORS, "estimator")
    parameters = {k: _revive(v) for k, v in values["parameters"].items()}
    return cls(**parameters | _take_network(values["parameters"], network))


def _build(tensors: dict[str, Any], values: Values, network: nn.Module | None) -> GPRegressor:
    estimator = _unfitted(values, network)
    estimator.hold(build_model(tensors, values, network))
    known = {name: values["fitted"][name] for name in _FITTED}  # files of certgp 0.2 hold the evidence too
    for name, value in (known | values["choice"]).items():
        setattr(estimator, name, value)
    if values["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(values["feature_names"], dtype=object)
    _restore_table(estimator, values)
    estimator.trials_ = tuple(Trial(**trial) for trial in values["trials"])
    estimator.history_ = History(tuple(Iteration(**record) for record in values["history"]))
    return estimator


def _restore_table(estimator: GPRegressor, values: Values) -> None:
    """The table behind the fit; files of certgp 0.2 know nothing of it for several outputs, and no encoding."""
    estimator.target_name_ = values.get("target_name")
    table, encoding = values.get("table"), values.get("encoding")
    if table is not None:
        left_out = tuple((name, why) for name, why in table.get("left_out", ()))
        estimator.table_ = FittedTable(**table | {"positions": tuple(table["positions"]), "left_out": left_out})
    if encoding is not None:
        estimator.encoding_ = Encoding.from_description(encoding)


def _is_saved(name: str, value: object) -> bool:
    """Is this parameter part of the model? A seed is; a generator, which has moved on since, is not."""
    if name == "random_state":
        return isinstance(value, (int, np.integer))
    return name not in _NOT_SAVED


def _take_network(parameters: Values, network: nn.Module | None) -> Values:
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


def _to_json(value: Any) -> Any:
    """A parameter as JSON: kernels by name and numbers, arrays and frames as lists."""
    if isinstance(value, Kernel):
        return value.describe()
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
        return kernel_from_description(value)
    return value
