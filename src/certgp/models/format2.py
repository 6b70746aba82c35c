"""Model files of format 2, written until certgp 0.1, in the form of the present one."""

from __future__ import annotations

from typing import Any

from torch import Tensor

Values = dict[str, Any]


def upgrade(values: Values, tensors: dict[str, Tensor]) -> Values:
    """The values of a file of format 2 as format 3 has them."""
    dtype = values["parameters"].get("dtype", "float64")
    return {
        "table": None,
        "certificate": None,
        **values,
        "in_float64": dtype != "float32",
        "process": _upgrade_process(values["process"], tensors),
    }


def _upgrade_process(process: Values, tensors: dict[str, Tensor]) -> Values:
    """Kernels had length-scales and a signal variance alone, and a constant diagonal."""
    if process["kind"] == "mixture":
        return process | {"members": [_upgrade_process(member, tensors) for member in process["members"]]}
    if process["kind"] == "exact":
        scales, signal = tensors["length_scale"].tolist(), process["signal_variance"]
        kernel = {"kernel": process["kernel"], "length_scale": scales, "signal_variance": signal}
        return process | {"kernel": kernel}
    return process | {"kernel_trace": float(process["n"])}
