"""Fitted models: a process with its units and its range, and the file that holds one."""

from certgp.models.fitted import FittedModel

__all__ = ["FittedModel"]
