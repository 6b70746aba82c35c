"""Fitted models: a process with its units and its range, and the file that holds one."""

from certgp.models.fitted import FittedModel
from certgp.models.outputs import FittedOutputs

__all__ = ["FittedModel", "FittedOutputs"]
