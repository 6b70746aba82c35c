"""Fitted models as named tensors plus plain values, and back. Nothing here runs code that a file brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from certgp.data import Chunk, Standardiser
from certgp.errors import ModelFileError
from certgp.features.base import FEATURE_MAPS, build_features
from certgp.gp import (
    ExactProcess,
    FullScaleProcess,
    GaussianProcess,
    IterativeProcess,
    LocalProcess,
    LowRankModel,
    LowRankProcess,
    MixtureProcess,
    NoiseGain,
    NoiseModel,
    Statistics,
)
from certgp.gp.conjugate_gradients import ExactSolution
from certgp.gp.full_scale import WhitenedStatistics
from certgp.gp.student import StudentNoise
from certgp.guarantees import Certificate
from certgp.guarantees.subject import name_kernel_inputs
from certgp.kernels import kernel_from_description
from certgp.methods import check_registered
from certgp.models.fitted import FittedModel
from certgp.transforms.base import TRANSFORMS, build_transform, describe_transform

Tensors = dict[str, Tensor]
Values = dict[str, Any]


def describe_model(model: FittedModel) -> tuple[Tensors, Values]:
    """Tensors and JSON-able values that rebuild a fitted model."""
    tensors, process = describe_process(model.process)
    standardiser = model.standardiser
    tensors["standardiser.x_mean"] = torch.from_numpy(standardiser.x_mean.copy())
    tensors["standardiser.x_scale"] = torch.from_numpy(standardiser.x_scale.copy())
    tensors["standardiser.ignored"] = torch.from_numpy(standardiser.ignored.copy())
    tensors["range.lower"], tensors["range.upper"] = torch.from_numpy(model.lower), torch.from_numpy(model.upper)
    values = {
        "y_mean": standardiser.y_mean,
        "y_scale": standardiser.y_scale,
        "process": process,
        "in_float64": model.in_float64,
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
    }
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}, values


def build_model(tensors: Tensors, values: Values, network: nn.Module | None = None) -> FittedModel:
    """The model that ``describe_model`` described; a network of the user's own must be given back."""
    standardiser = Standardiser(
        tensors["standardiser.x_mean"].numpy(),
        tensors["standardiser.x_scale"].numpy(),
        values["y_mean"],
        values["y_scale"],
        tensors["standardiser.ignored"].numpy(),
    )
    process = build_process(tensors, values["process"], network)
    return FittedModel(
        process,
        standardiser,
        tensors["range.lower"].numpy(),
        tensors["range.upper"].numpy(),
        values["in_float64"],
        _saved_certificate(values["certificate"], process),
    )


def _saved_certificate(described: Values | None, process: GaussianProcess) -> Certificate | None:
    """The certificate in a file. Before 0.2 it did not name a projection or a network, and behind winsorised inputs it
    spoke of a GP on these: that one is left out.
    """
    if described is None:
        return None
    certificate = Certificate.from_dict(described)
    if "kernel_inputs" in described or not isinstance(process, LowRankProcess):
        return certificate
    transform = process.model.transform
    return None if transform.returns_outliers else replace(certificate, kernel_inputs=name_kernel_inputs(transform))


def describe_process(process: GaussianProcess) -> tuple[Tensors, Values]:
    """Tensors and values of one process, or of all members of a mixture."""
    values: Values = {
        "signal_variance": process.signal_variance,
        "noise_variance": process.noise_variance,
        "noise_scale": process.noise_scale,
    }
    if isinstance(process, MixtureProcess):
        described = [describe_process(member) for member in process.members]
        named = {f"{i}.{name}": tensor for i, (part, _) in enumerate(described) for name, tensor in part.items()}
        return named, {
            "kind": "mixture",
            "members": [own for _, own in described],
            "weights": process.shares.tolist(),
        }
    tensors, values = _describe_single(process, values)
    if process.noise_model is not None:
        noise, values["noise_model"] = process.noise_model.describe()
        tensors |= {f"noise.{name}": tensor for name, tensor in noise.items()}
    if process.noise_gain is not None:
        values["noise_gain"] = asdict(process.noise_gain)
    return tensors, values


def _describe_single(process: GaussianProcess, values: Values) -> tuple[Tensors, Values]:
    if isinstance(process, ExactProcess):
        return _describe_rows(process.rows), values | {"kind": "exact", "kernel": process.kernel.describe()}
    if isinstance(process, LocalProcess):
        return _describe_local(process, values)
    if isinstance(process, IterativeProcess):
        return _describe_iterative(process, values)
    if isinstance(process, FullScaleProcess):
        return _describe_full_scale(process, values)
    if not isinstance(process, LowRankProcess):
        raise ModelFileError(f"a {type(process).__name__} cannot be saved")
    stats, model = process.statistics, process.model
    check_registered(type(model.features), FEATURE_MAPS)
    check_registered(type(model.transform), TRANSFORMS)
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {"statistics.A": stats.A, "statistics.b": stats.b}
    return tensors, values | {
        "kind": "lowrank",
        "variance": process.variance_kind,
        "yty": stats.yty,
        "n": stats.n,
        "kernel_trace": stats.kernel_trace,
        "log_weights": stats.log_weights,
        "transform": describe_transform(model.transform),
        "features": model.features.describe(),
    }


def _describe_rows(rows: Chunk) -> Tensors:
    tensors = {"rows.X": rows.X, "rows.y": rows.y}
    return tensors if rows.weight is None else tensors | {"rows.weight": rows.weight}


def _describe_local(process: LocalProcess, values: Values) -> tuple[Tensors, Values]:
    transform = process.transform
    check_registered(type(transform), TRANSFORMS)
    tensors = {f"transform.{name}": tensor for name, tensor in transform.state_dict().items()}
    tensors |= _describe_rows(process.rows)
    return tensors, values | {
        "kind": "local",
        "kernel": process.kernel.describe(),
        "transform": describe_transform(transform),
        "neighbours": process.neighbours,
        "train_neighbours": process.train_neighbours,
        "log_evidence": process.known_log_evidence,
    }


def _build_local(tensors: Tensors, values: Values, network: nn.Module | None) -> LocalProcess:
    transform = build_transform(values["transform"], select_part(tensors, "transform."), network)
    return LocalProcess(
        transform,
        kernel_from_description(values["kernel"]),
        tensors["rows.X"],
        tensors["rows.y"],
        values["noise_variance"],
        values["neighbours"],
        values["train_neighbours"],
        values["log_evidence"],
        tensors.get("rows.weight"),
    )


def _describe_full_scale(process: FullScaleProcess, values: Values) -> tuple[Tensors, Values]:
    tensors, local = _describe_local(process.local, values)
    check_registered(type(process.features), FEATURE_MAPS)
    tensors |= {f"features.{name}": tensor for name, tensor in process.features.state_dict().items()}
    known = process.known
    return tensors | {"statistics.A": known.statistics.A, "statistics.b": known.statistics.b}, values | {
        "kind": "full_scale",
        "local": local,
        "features": process.features.describe(),
        "yty": known.statistics.yty,
        "log_determinant": known.log_determinant,
    }


def _build_full_scale(tensors: Tensors, values: Values, network: nn.Module | None) -> FullScaleProcess:
    local = _build_local(tensors, values["local"], network)
    features = build_features(values["features"], select_part(tensors, "features."))
    n = local.n_rows
    stats = Statistics(tensors["statistics.A"], tensors["statistics.b"], values["yty"], n, float(n))
    return FullScaleProcess(local, features, WhitenedStatistics(stats, values["log_determinant"]))


def _describe_iterative(process: IterativeProcess, values: Values) -> tuple[Tensors, Values]:
    solution = process.solution
    tensors, local = _describe_local(process.local, values)
    return tensors | {"solution.weights": solution.weights}, values | {
        "kind": "iterative",
        "local": local,
        "tolerance": process.tolerance,
        "log_determinant": process.log_determinant,
        "solution": {
            name: value
            for name, value in asdict(replace(solution, weights=torch.empty(0))).items()
            if name != "weights"
        },
    }


def _build_iterative(tensors: Tensors, values: Values, network: nn.Module | None) -> IterativeProcess:
    solution = ExactSolution(weights=tensors["solution.weights"], **values["solution"])
    local = _build_local(tensors, values["local"], network)
    return IterativeProcess(local, solution, values["tolerance"], values["log_determinant"])


def build_process(tensors: Tensors, values: Values, network: nn.Module | None) -> GaussianProcess:
    """The process that ``describe_process`` described."""
    if values["kind"] == "mixture":
        parts = [select_part(tensors, f"{i}.") for i in range(len(values["members"]))]
        pairs = zip(parts, values["members"], strict=True)
        weights = np.array(values["weights"]) if "weights" in values else None  # equal in files of before
        return MixtureProcess([build_process(part, described, network) for part, described in pairs], weights)
    process = _build_single(tensors, values, network)
    process.noise_scale = values["noise_scale"]
    if "noise_model" in values:  # not in files written before 0.2 was released
        process.noise_model = _build_noise(select_part(tensors, "noise."), values["noise_model"])
    if "noise_gain" in values:
        process.noise_gain = NoiseGain(**values["noise_gain"])
    return process


def _build_noise(tensors: Tensors, values: Values) -> NoiseModel | StudentNoise:
    if values.get("kind") == "student":
        return StudentNoise(values["degrees_of_freedom"], values["scale"])
    return NoiseModel.build(tensors, values)


def _build_single(tensors: Tensors, values: Values, network: nn.Module | None) -> GaussianProcess:
    signal, noise = values["signal_variance"], values["noise_variance"]
    if values["kind"] == "exact":
        kernel = kernel_from_description(values["kernel"])
        return ExactProcess(kernel, tensors["rows.X"], tensors["rows.y"], noise, tensors.get("rows.weight"))
    if values["kind"] == "local":
        return _build_local(tensors, values, network)
    if values["kind"] == "full_scale":
        return _build_full_scale(tensors, values, network)
    if values["kind"] == "iterative":
        return _build_iterative(tensors, values, network)
    transform = build_transform(values["transform"], select_part(tensors, "model.transform."), network)
    features = build_features(values["features"], select_part(tensors, "model.features."))
    A, b = tensors["statistics.A"], tensors["statistics.b"]
    stats = Statistics(A, b, values["yty"], values["n"], values["kernel_trace"], values.get("log_weights", 0.0))
    model = LowRankModel(transform, features).eval().requires_grad_(False)
    return LowRankProcess(model, stats, signal, noise, values["variance"])


def select_part(tensors: Tensors, prefix: str) -> Tensors:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def store_once(parts: Sequence[Tensors]) -> tuple[Tensors, dict[str, str]]:
    """The tensors of several outputs, by number and name, those that are the same memory once, and by which name the
    others are found.
    """
    stored: Tensors = {}
    aliases: dict[str, str] = {}
    names: dict[tuple[int, torch.Size], str] = {}
    for j, tensors in enumerate(parts):
        for name, tensor in tensors.items():
            key, full = (tensor.data_ptr(), tensor.shape), f"{j}.{name}"
            if tensor.numel() and key in names:
                aliases[full] = names[key]
            else:
                names[key], stored[full] = full, tensor
    return stored, aliases


def share_model(models: Sequence[FittedModel]) -> bool:
    """Do the outputs have the same features?"""
    processes = [model.process for model in models]
    first = processes[0]
    return isinstance(first, LowRankProcess) and all(
        isinstance(each, LowRankProcess) and each.model is first.model for each in processes
    )


def use_one_model(models: Sequence[FittedModel]) -> None:
    """Let outputs that were saved with the same features have one copy of them again."""
    processes = [model.process for model in models if isinstance(model.process, LowRankProcess)]
    for process in processes:
        process.model = processes[0].model
