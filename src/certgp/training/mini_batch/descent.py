"""Two ways of descending the evidence of a network and the GP on its outputs in small steps.

``Running`` is this library's: see ``evidence``. ``SemiStochastic`` is the semi-stochastic asynchronous gradient descent
of M. Al-Shedivat, A. G. Wilson, Y. Saatchi, Z. Hu and E. P. Xing, "Learning scalable deep kernels with recurrent
structure", JMLR 18 (2017), section 4, by which the paper trains DMGP and DFGP. With theta the hyper-parameters of the
kernel and the noise, and w the weights of the network, an epoch is

    theta <- theta - rate dL/dtheta          on all rows
    for every batch:  w <- w - rate dL/dw    on the batch, with the kernel matrix of all rows as it was before the epoch

There the matrix is K (N, N). Here it is sf2 Phi Phi', known through A = Phi'Phi (r, r) and b = Phi'y (r,), so what the
batches share for an epoch are the cotangents G_A = dL/dA and G_b = dL/db. They are stale, not biased: if the weights
stopped, the next epoch's would be exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor


class Descent(ABC):
    """What a step on one chunk changes."""

    follows: ClassVar[bool]  # do the statistics of all rows follow the steps, or stay until the next refresh?
    moves_head: ClassVar[bool]  # do length-scales and variances move with every step, or with all rows alone?

    @abstractmethod
    def bound_noise_ratio(self, log_signal: Tensor, log_noise: Tensor, low: float, high: float) -> None:
        """Keep log (noise variance / signal variance) between ``low`` and ``high``, in place."""


class Running(Descent):
    """Statistics follow the steps, and every step moves the network and its head."""

    follows: ClassVar[bool] = True
    moves_head: ClassVar[bool] = True

    def bound_noise_ratio(self, log_signal: Tensor, log_noise: Tensor, low: float, high: float) -> None:
        log_noise.clamp_(log_signal + low, log_signal + high)


class SemiStochastic(Descent):
    """Statistics stay for an epoch, and the head moves with all rows alone."""

    follows: ClassVar[bool] = False
    moves_head: ClassVar[bool] = False

    def bound_noise_ratio(self, log_signal: Tensor, log_noise: Tensor, low: float, high: float) -> None:
        """The signal variance gives way. Where f is nearly linear it grows without end, and few and small steps would
        not bring a noise back that follows it.
        """
        log_signal.clamp_(log_noise - high, log_noise - low)
