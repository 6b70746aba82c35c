"""A fitted estimator as an ONNX graph: X (rows, columns) -> mean, std, all in float64 and in the user's units."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

import certgp.export.operations  # noqa: F401  (declares what can be recorded)
from certgp.data.tables import replacing
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.estimators import GPRegressor
from certgp.estimators.held_out import modelled_target
from certgp.estimators.table_gp import TableGP
from certgp.export.recorder import Graph, Recorded, record
from certgp.gp import GaussianProcess, LowRankProcess
from certgp.models import FittedModel
from certgp.version import __version__

_OPSET, _IR_VERSION = 18, 9
_AGREEMENT = 1e-6  # relative, as promised
_CHECKED_ROWS = 64
_SHOWN = 20  # columns in a message


def to_onnx(model: GPRegressor, path: str | Path, *, include_noise: bool = True) -> None:
    """Write mean and standard deviation of a fitted model as an ONNX graph for any number of rows.

    The graph takes X (rows, D), float64, in the units and order of the fit, and gives ``mean`` and ``std`` (rows,), or
    (rows, q) of several outputs: those of ``predict(X, return_std=True)``, whose speed and numbers need no certgp then.
    It is run beside ``predict`` on rows from the training range before it is written.

    Parameters
    ----------
    model : whose prediction is features and products: MercerGP, FourierGP, SparseGP, their deep relatives, or an AutoGP
        that chose one of them. Exact and local GPs predict from the training rows and are refused; so is a TableGP:
        give its ``fitted``, and the graph what its ``encode`` makes of a frame
    path : .onnx file to write
    include_noise : standard deviations of new observations, or (False) of the function behind them
    """
    made = make_graph(model, include_noise)
    _compare(model, made, include_noise)
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(made.SerializeToString())


def make_graph(model: GPRegressor, include_noise: bool = True) -> ModelProto:
    """The graph, not yet compared with ``predict``."""
    _refuse_table(model)
    for each in model.models:
        _refuse_rows(each.process)
    graph, columns = Graph(), model.n_features_in_
    example = torch.from_numpy(0.5 * (model.models[0].lower + model.models[0].upper))[None]
    with torch.no_grad():
        found = [_moments(each, Recorded(graph, "X", example), include_noise) for each in model.models]
    several = model.outputs_ is not None
    outputs = [_join(graph, list(each), several) for each in zip(*found, strict=True)]
    for part, name in zip(outputs, ("mean", "std"), strict=True):
        graph.nodes.append(helper.make_node("Identity", [part.name], [name]))
    shape: list[Any] = ["rows", len(model.models)] if several else ["rows"]
    whole = helper.make_graph(
        graph.nodes,
        "certgp",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", columns])],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name in ("mean", "std")],
        graph.constants,
    )
    made = helper.make_model(whole, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    made.producer_name, made.producer_version = "certgp", __version__
    described = {"columns": ", ".join(model.column_names), "target": modelled_target(model)}
    helper.set_model_props(made, described)
    onnx.checker.check_model(made)
    return made


def _refuse_table(model: GPRegressor | TableGP) -> None:
    """A graph takes numbers and knows no categories and dates."""
    if not isinstance(model, TableGP):
        return
    names = model.encoding_.names
    told = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise InvalidInputError(
        f"the model takes a table ({', '.join(model.encoding_.inputs[:_SHOWN])}) and a graph takes numbers, the "
        f"{len(names)} that its columns become: {told}. Export the part that takes these, "
        "to_onnx(model.fitted, path) (certgp export --encoded), and give the graph what model.encode(frame) returns"
        + (f"; it predicts {modelled_target(model.fitted)}" if model.encoding_.log_target else "")
    )


def _refuse_rows(process: GaussianProcess) -> None:
    for member in process.members:
        if not isinstance(member, LowRankProcess):
            raise InvalidInputError(
                f"this model predicts from the training rows themselves ({type(member).__name__}), which is no graph "
                "of features and products; fit MercerGP, FourierGP, SparseGP or a deep model (--method mercer, "
                "fourier, sparse, deep-mercer, deep-fourier) and export that"
            )


def _moments(model: FittedModel, X: Recorded, include_noise: bool) -> tuple[Any, Any]:
    """Mean and standard deviation (rows,) by the model's own code: of a mixture E = sum w m and
    Var = sum w (v + (m - E)^2).
    """
    units, process = model.standardiser, model.process
    standard: Any = units.tensor(X)  # type: ignore[arg-type]  # acts as a tensor
    means, variances = [], []
    for member in process.members:
        mean, variance, noise = member.observations(standard) if include_noise else (*member.moments(standard), None)
        means.append(mean)
        variances.append(variance if noise is None else variance + noise.variance)
    shares = [float(share) for share in process.shares]
    centre: Any = sum(w * m for w, m in zip(shares, means, strict=True))
    spread: list[Any] = [(m - centre).square() for m in means] if len(means) > 1 else [0.0]
    total: Any = sum(w * (v + s) for w, v, s in zip(shares, variances, spread, strict=True))
    return units.y_mean + units.y_scale * centre, units.y_scale * total.sqrt()


def _join(graph: Graph, parts: Sequence[Any], several: bool) -> Any:
    """(rows,) of one output, (rows, q) of several."""
    return record("stack", (list(parts),), {}).mT if several else parts[0]


def _compare(model: GPRegressor, made: ModelProto, include_noise: bool) -> None:
    """Refuse a graph that does not say what ``predict`` says."""
    first = model.models[0]
    X = np.random.default_rng(0).uniform(first.lower, first.upper, size=(_CHECKED_ROWS, model.n_features_in_))
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["mean", "std"], {"X": X})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        rows = X if not model.column_names else _named(model, X)
        known = model.predict(rows, return_std=True, include_noise=include_noise)
    scale = float(np.max(np.abs(known[1])))
    worst = max(_distance(np.asarray(a), np.asarray(b), scale) for a, b in zip(found, known, strict=True))
    if not worst <= _AGREEMENT:
        raise InvalidInputError(
            f"the graph differs from predict by {worst:.1e} of its numbers, more than {_AGREEMENT:g}; a network in "
            "float32 does that: give one in float64"
        )


def _distance(a: NDArray[np.float64], b: NDArray[np.float64], scale: float) -> float:
    """The largest difference, relative to the number or to the predictive standard deviations, whichever is larger."""
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(b), scale)))


def _named(model: GPRegressor, X: NDArray[np.float64]) -> Any:
    from certgp.data import ArrayRows

    return ArrayRows(X, None, model.column_names)
