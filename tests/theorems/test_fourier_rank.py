"""The law of frequencies that a Fourier rank is about: kept there, and named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from probabilistic import dense_kl, plausible

import certgp
from certgp.features import FeatureMap, FourierMap
from certgp.features.spectral import SAMPLINGS, SpectralDesign, iid_design
from certgp.guarantees import fourier_rank, fourier_rank_bound, gaussian_kl, reference_features
from certgp.kernels import Gaussian, Kernel

ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 1))
SMALL_NOISE = {"length_scale": 0.3, "noise_variance": 1e-8}


def leverage_draws(
    kernel: Kernel, reference: FeatureMap, X: torch.Tensor, noise: float, pairs: int, rng: np.random.Generator
) -> SpectralDesign:
    """Independent frequencies of p(w) z(w)*(Q + s2 I)^-1 z(w) / S, by rejection from p: tau~ / p <= N / s2."""
    with torch.no_grad():
        Psi = reference(X)
        inverse = torch.linalg.inv(Psi @ Psi.mT + noise * torch.eye(len(X), dtype=torch.float64))
        mass = float((inverse * kernel(X, X)).sum())
    scaled, found, weights = X / kernel.length_scale, [], []
    while sum(map(len, weights)) < pairs:
        proposal = iid_design(kernel, 4096, X.shape[1], rng).frequencies
        angle = scaled @ proposal.mT
        leverage = sum((wave * (inverse @ wave)).sum(0) for wave in (angle.cos(), angle.sin()))
        keep = torch.from_numpy(rng.random(4096)) < leverage * noise / len(X)
        found.append(proposal[keep])
        weights.append(mass / (pairs * leverage[keep]))
    return SpectralDesign(torch.cat(found)[:pairs], torch.cat(weights)[:pairs])


def test_frequencies_of_the_reference_leverage_density_keep_the_promise():
    X, noise, epsilon, delta, trials = torch.from_numpy(ROWS[:40]), 0.05, 0.02, 0.05, 10
    kernel = Gaussian(0.3)
    bound = fourier_rank_bound(X=ROWS[:40], length_scale=0.3, noise_variance=noise, epsilon=epsilon, delta=delta)
    reference, failures = reference_features(kernel, X, 400), 0
    for seed in range(trials):
        design = leverage_draws(kernel, reference, X, noise, bound.rank // 2, np.random.default_rng(seed))
        failures += dense_kl(kernel, FourierMap(kernel, design), X, noise) > epsilon * len(X)
    assert plausible(failures, trials, delta)


def test_no_sampler_of_the_estimator_is_said_to_be_covered_by_the_data_dependent_rank():
    """With noise this small, independent frequencies of the spectral law miss epsilon by a factor of hundreds."""
    with pytest.warns(certgp.errors.VacuousBoundWarning, match="from which no sampling= of FourierGP draws"):
        rank = fourier_rank(X=ROWS, epsilon=0.05, **SMALL_NOISE)
    gp = certgp.FourierGP(
        rank,
        sampling="iid",
        signal_variance=1.0,
        winsorize=False,
        cap_rank=False,
        optimize=False,
        standardize=False,
        random_state=0,
        **SMALL_NOISE,
    ).fit(ROWS, np.sin(ROWS[:, 0]))
    X, eye = torch.from_numpy(ROWS), 1e-8 * np.eye(len(ROWS))
    with torch.no_grad():
        Phi, K = gp._model.process.model(X).numpy(), Gaussian(0.3)(X, X).numpy()
    assert gaussian_kl(K + eye, Phi @ Phi.T + eye) > 10.0 * 0.05 * len(ROWS)


def test_a_bound_names_the_law_it_is_about():
    arguments = {"X": ROWS, "length_scale": 0.3, "noise_variance": 0.1, "epsilon": 0.05}
    covered = {method: fourier_rank_bound(method=method, **arguments) for method in ("data", "plain", "literal")}
    assert "sampling='iid'" in covered["plain"].covers
    assert "sampling='modified'" in covered["literal"].covers
    assert not any(f"sampling='{name}'" in covered["data"].covers for name in SAMPLINGS)
    assert all(bound.covers in str(bound) for bound in covered.values())


@pytest.mark.parametrize("kernel", ["rational_quadratic", "periodic", "linear"])
def test_kernels_without_a_spectral_law_are_refused(kernel):
    with pytest.raises(certgp.errors.InvalidInputError, match=f"the {kernel} kernel has no spectral law"):
        fourier_rank(X=ROWS, length_scale=0.3, noise_variance=0.1, epsilon=0.1, kernel=kernel)
