"""Fitted models as named tensors plus plain values, and back. Nothing here runs code that a file brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from certgp.data import Standardiser
from certgp.data.warp import Warp
from certgp.gp import GaussianProcess, LowRankProcess
from certgp.gp.description import build_process, describe_process
from certgp.guarantees import Certificate
from certgp.guarantees.subject import name_kernel_inputs
from certgp.models.fitted import FittedModel

Tensors = dict[str, Tensor]
Values = dict[str, Any]
_WARP = ("power", "mean", "scale", "lower", "upper")


def describe_model(model: FittedModel) -> tuple[Tensors, Values]:
    """Tensors and JSON-able values that rebuild a fitted model."""
    tensors, process = describe_process(model.process)
    standardiser = model.standardiser
    tensors["standardiser.x_mean"] = torch.from_numpy(standardiser.x_mean.copy())
    tensors["standardiser.x_scale"] = torch.from_numpy(standardiser.x_scale.copy())
    tensors["standardiser.ignored"] = torch.from_numpy(standardiser.ignored.copy())
    if standardiser.warp is not None:
        for name in _WARP:
            tensors[f"standardiser.warp.{name}"] = torch.from_numpy(vars(standardiser.warp)[name].copy())
    tensors["range.lower"], tensors["range.upper"] = torch.from_numpy(model.lower), torch.from_numpy(model.upper)
    values = {
        "y_mean": standardiser.y_mean,
        "y_scale": standardiser.y_scale,
        "targets": None if model.targets is None else list(model.targets),
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
        _saved_warp(tensors),
    )
    process = build_process(tensors, values["process"], network)
    return FittedModel(
        process,
        standardiser,
        tensors["range.lower"].numpy(),
        tensors["range.upper"].numpy(),
        values["in_float64"],
        _saved_certificate(values["certificate"], process),
        targets=None if values.get("targets") is None else (values["targets"][0], values["targets"][1]),
    )


def _saved_warp(tensors: Tensors) -> Warp | None:
    """The warp in a file; older ones have none."""
    if "standardiser.warp.power" not in tensors:
        return None
    return Warp(**{name: tensors[f"standardiser.warp.{name}"].numpy() for name in _WARP})


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
