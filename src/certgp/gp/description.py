"""Fitted processes as named tensors plus plain values, and back. Nothing here runs code that a file brings."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from certgp.data import Chunk
from certgp.errors import ModelFileError
from certgp.features.base import FEATURE_MAPS, build_features
from certgp.gp.conjugate_gradients import ExactSolution
from certgp.gp.exact import ExactProcess
from certgp.gp.full_scale import FullScaleProcess, WhitenedStatistics
from certgp.gp.iterative import IterativeProcess
from certgp.gp.local import LocalProcess
from certgp.gp.mixture import MixtureProcess
from certgp.gp.model import LowRankModel
from certgp.gp.noise import NoiseGain, NoiseModel
from certgp.gp.process import GaussianProcess, LowRankProcess
from certgp.gp.statistics import Statistics
from certgp.gp.student import StudentNoise
from certgp.kernels import kernel_from_description
from certgp.methods import check_registered
from certgp.transforms.base import TRANSFORMS, build_transform, describe_transform

Tensors = dict[str, Tensor]
Values = dict[str, Any]


def describe_process(process: GaussianProcess) -> tuple[Tensors, Values]:
    """Tensors and values of one process, or of all members of a mixture."""
    values: Values = {
        "signal_variance": process.signal_variance,
        "noise_variance": process.noise_variance,
        "noise_scale": process.noise_scale,
    }
    if isinstance(process, MixtureProcess):
        described = [describe_process(member) for member in process.members]
        # copies: members may hold the same rows, and a file must not be told that two names share memory
        named = {
            f"{i}.{name}": tensor.clone() for i, (part, _) in enumerate(described) for name, tensor in part.items()
        }
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
