"""Names for groups of processes that code tells apart."""

from __future__ import annotations

from certgp.gp.exact import ExactProcess
from certgp.gp.full_scale import FullScaleProcess
from certgp.gp.iterative import IterativeProcess
from certgp.gp.local import LocalProcess
from certgp.gp.process import LowRankProcess

HoldsRows = (
    ExactProcess | FullScaleProcess | IterativeProcess | LocalProcess
)  # predict from the training rows themselves
SingleProcess = LowRankProcess | HoldsRows  # no mixture
