"""The exact GP of a fitted model by dense linear algebra, in the user's units; does a certificate contain it?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.estimators import GPRegressor
from certgp.gp import ExactProcess, LocalProcess
from certgp.gp.neighbours import earlier_neighbours
from certgp.guarantees import Certificate, gaussian_kl
from certgp.transforms import Clip, Identity
from helpers import dense_kernel, dense_kl, dense_log_evidence

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Of the exact GP with the hyper-parameters of a fitted model, given its training rows."""

    kl: float  # KL(exact || model)
    reverse_kl: float  # KL(model || exact)
    log_evidence: float
    mean: Array  # at new rows
    variance: Array  # of f

    def check(self, model: GPRegressor, certificate: Certificate, new: Array) -> None:
        """Is everything that the certificate says true?"""
        assert certificate.confidence == 1.0
        assert certificate.kl.lower <= self.kl + 1e-9
        assert self.kl <= certificate.kl.upper + 1e-9
        if certificate.reverse_kl is not None:
            assert certificate.reverse_kl.lower <= self.reverse_kl + 1e-9
            assert self.reverse_kl <= certificate.reverse_kl.upper + 1e-9
        assert certificate.log_evidence is not None
        slack = 1e-9 * abs(self.log_evidence)
        assert certificate.log_evidence.lower - slack <= self.log_evidence <= certificate.log_evidence.upper + slack
        if certificate.mean_error is None:
            return
        slack = 1e-9 * float(np.abs(self.mean).max())
        error = np.abs(model.predict(new) - self.mean)
        assert (error <= certificate.mean_error + slack).all()
        if certificate.mean_error_lower is not None:
            assert (certificate.mean_error_lower - slack <= error).all()
        slack = 1e-9 * float(self.variance.max())
        assert (certificate.variance_lower - slack <= self.variance).all()
        assert (self.variance <= certificate.variance_upper + slack).all()


@torch.no_grad()
def dense_truth(model: GPRegressor, X: Array, y: Array, new: Array) -> Truth:
    """The truth about a model that was fitted on X (N, D), y (N,), at new rows (n, D)."""
    fitted = model._fitted()
    process, units = fitted.process, fitted.standardiser
    inputs, others = fitted.tensor(X), fitted.tensor(new)
    if isinstance(process, ExactProcess):
        seen, unseen, kl, reverse = inputs, others, 0.0, 0.0
    elif isinstance(process.transform, (Identity, Clip)):  # the exact GP knows nothing of winsorised inputs
        seen, unseen = inputs, others
    else:
        seen, unseen = process.transform(inputs), process.transform(others)
    target, s2 = torch.from_numpy(units.target(y)), process.noise_variance
    K, cross, prior = (_values(process.kernel, *pair) for pair in ((seen, seen), (unseen, seen), (unseen, unseen)))
    S = K + s2 * torch.eye(len(y), dtype=torch.float64)
    if isinstance(process, LocalProcess):
        kl, reverse = _local_divergences(process)
    elif not isinstance(process, ExactProcess):
        phi = process.features(inputs)
        kl, reverse = dense_kl(K, phi @ phi.mT, s2), dense_kl(phi @ phi.mT, K, s2)
    mean = cross @ torch.linalg.solve(S, target)
    variance = prior.diagonal() - (cross * torch.linalg.solve(S, cross.mT).mT).sum(1)
    evidence = dense_log_evidence(S, target) - len(y) * math.log(units.y_scale)
    return Truth(kl, reverse, evidence, units.mean_to_user(mean.numpy()), units.variance_to_user(variance.numpy()))


def _local_divergences(process: LocalProcess) -> tuple[float, float]:
    """KL(exact || local) and its reverse, from the dense law of y = B y + e in the local GP's own order of the rows."""
    n, rows = process.n_rows, process.inputs
    S = _values(process.kernel, rows, rows).numpy() + process.noise_variance * np.eye(n)
    B, D = np.zeros((n, n)), np.empty(n)
    for i, near in enumerate(earlier_neighbours(process.index.points, process.train_neighbours)):
        some = near[near >= 0]
        B[i, some] = np.linalg.solve(S[np.ix_(some, some)], S[some, i])
        D[i] = S[i, i] - S[i, some] @ B[i, some]
    A = np.linalg.inv(np.eye(n) - B)
    law = A @ np.diag(D) @ A.T
    return gaussian_kl(S, law), gaussian_kl(law, S)


def _values(kernel, X, Z):
    """k(X, Z) by other arithmetic than the library's where there is one."""
    try:
        return torch.from_numpy(dense_kernel(kernel, X.numpy(), Z.numpy()))
    except KeyError:  # a family of the test's own
        return kernel(X, Z)
