"""Fitted models for programs without certgp: mean and standard deviation as an ONNX graph (``certgp[onnx]``)."""

from certgp.export.model import to_onnx

__all__ = ["to_onnx"]
