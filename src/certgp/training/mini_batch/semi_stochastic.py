"""Semi-stochastic asynchronous gradient descent of a network and the GP on its outputs.  [Al-Shedivat et al. 2017]

M. Al-Shedivat, A. G. Wilson, Y. Saatchi, Z. Hu and E. P. Xing, "Learning scalable deep kernels with recurrent
structure", JMLR 18 (2017), section 4. The paper trains DMGP and DFGP so. With theta the hyper-parameters of the kernel
and the noise, and w the weights of the network, an epoch is

    theta <- theta - rate dL/dtheta          on all rows
    for every batch:  w <- w - rate dL/dw    on the batch, with the kernel matrix of all rows as it was before the epoch

There the matrix is K (N, N). Here it is sf2 Phi Phi', known through A = Phi'Phi (r, r) and b = Phi'y (r,), so what the
batches share for an epoch are the cotangents G_A = dL/dA and G_b = dL/db. They are stale, not biased: if the weights
stopped, the next epoch's would be exact.
"""

from __future__ import annotations

from certgp.gp import evidence_gradient
from certgp.gp.evidence import EvidenceGradient
from certgp.training.mini_batch.evidence import JointTask, pull_back, total_of


class SemiStochasticTask(JointTask):
    """Steps of the network on one batch each, with the cotangents of all rows held from one refresh to the next."""

    _held: EvidenceGradient | None = None

    def bound_noise_ratio(self, low: float, high: float) -> None:
        """The signal variance gives way. Where f is nearly linear it grows without end, and here nothing would bring a
        noise that follows it back.
        """
        noise = self.module.log_noise_variance
        self.module.log_signal_variance.clamp_(noise - high, noise - low)

    def forget_statistics(self) -> None:
        self._held = None

    def step(self, index: int) -> float:
        if self._held is None:
            self._held = evidence_gradient(total_of(self.chunk_statistics()), *self.module.variances, self.objective)
        chunk = self.rows.take(self.chunks[index])
        pull_back(self.module.model.basis(chunk.X), chunk.y, self._held, len(chunk.y))
        for parameter in self.head_parameters():
            parameter.grad = None  # it moves with all rows alone
        return self._held.value / self.n_rows
