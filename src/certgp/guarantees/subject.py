"""What is certified: a fitted low-rank process, its units, and the means to read rows again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.data import RowSource, Standardiser
from certgp.engines import Engine
from certgp.gp import GaussianProcess, LowRankProcess
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.reference import Problem
from certgp.transforms import Network, Transform

_WARPED = (
    "the exact GP meant here has the same power transform w(x) of the inputs (warp_) in front of its kernel: it is a "
    "GP on w(x)"
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted low-rank process in standardised units, and the standardiser that leads back to the user's."""

    process: LowRankProcess
    standardiser: Standardiser
    engine: Engine
    new_generator: Callable[[], np.random.Generator]

    @property
    def unit(self) -> float:
        """One standardised unit of y in the user's units."""
        return self.standardiser.y_scale

    def tensor(self, X: NDArray[np.floating]) -> Tensor:
        """Rows (n, D) in the user's units, standardised."""
        return torch.from_numpy(self.standardiser.inputs(X))

    def problem(self, source: RowSource) -> Problem:
        """The process on its rows."""
        process = self.process
        mean_weight = process.statistics.kernel_trace / process.n_rows  # where the kernel's diagonal is one
        return Problem(process.model, process.signal_variance, process.noise_variance, source, self.engine, mean_weight)

    def in_user_units(self, certificate: Certificate) -> Certificate:
        """The statement about the training rows in the units of y, which says where the exact GP's kernel acts."""
        evidence = certificate.log_evidence
        if evidence is not None:
            shift = certificate.n_rows * math.log(self.unit)
            evidence = Interval(evidence.lower - shift, evidence.upper - shift)
        transform = self.process.model.transform
        where, assumptions = name_kernel_inputs(transform), certificate.assumptions
        if where is not None:
            kind = type(transform).__name__.lower()
            assumptions = (
                *assumptions,
                f"the exact GP meant here has the same {kind} g(x) in front of its kernel: it is a GP on g(x)",
            )
        return replace(certificate, log_evidence=evidence, kernel_inputs=where, assumptions=assumptions)


def name_kernel_inputs(transform: Transform) -> str | None:
    """What the kernel of the exact GP acts on, in words; None where that is the inputs themselves."""
    return None if transform.keeps_coordinates else f"the outputs g(x) of its {type(transform).__name__.lower()}"


def note_warped_inputs(standardiser: Standardiser, certificate: Certificate) -> Certificate:
    """Say that the kernel acts behind a power transform of the inputs, where there is one."""
    if standardiser.warp is None or _WARPED in certificate.assumptions:
        return certificate
    inner = certificate.kernel_inputs
    where = "the warped inputs w(x)" if inner is None else f"{inner} behind warped inputs w(x)"
    return replace(certificate, kernel_inputs=where, assumptions=(*certificate.assumptions, _WARPED))


def refusal_of_mixtures(what: str, process: GaussianProcess) -> str:
    """Why a mixture of processes cannot be asked for this."""
    count = len(process.members)
    if all(isinstance(member.transform, Network) for member in process.members):
        return (
            f"{what} speaks of one GP on one embedding, and this model is a mixture of {count} networks, each with a "
            "GP of its own; fit with members=1"
        )
    return (
        f"{what} speaks of one GP, and this model is a mixture of the predictions of {count} models, each near an "
        "exact GP of its own; fit with combine=False"
    )
