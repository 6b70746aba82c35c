"""The layers of the deep GP with random features against closed forms and brute force."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from certgp_paper.baselines.random_feature_layers import RandomFeatureLayer, RandomFeatureNetwork, gaussian_kl


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_divergence_between_gaussians():
    mean, log_variance, prior = torch.randn(3, 4, 5, generator=generator())
    normals = [Normal(m, (0.5 * v).exp()) for m, v in ((mean, log_variance), (torch.zeros(4, 5), prior))]
    assert gaussian_kl(mean, log_variance, prior) == pytest.approx(float(kl_divergence(*normals).sum()), rel=1e-5)


def test_a_layer_at_its_prior_diverges_by_nothing_and_its_length_scales_are_the_frequencies_prior():
    layer = RandomFeatureLayer(3, 2, 10, 1.0, generator())
    with torch.no_grad():
        layer.weight_mean.zero_()
        assert float(layer.kl()) == pytest.approx(0.0, abs=1e-5)
        layer.log_length_scale += 0.3
        each = 0.5 * (math.exp(0.6) - 1.0 - 0.6)  # KL(N(0, 1 / ell^2) || N(0, 1 / (ell e^.3)^2))
    assert float(layer.kl().detach()) == pytest.approx(30 * each, rel=1e-4)


def test_moments_are_those_of_sampled_weights():
    layer = RandomFeatureLayer(2, 3, 6, 0.5, generator())
    angles = torch.randn(4, 6, generator=generator(1))
    with torch.no_grad():
        layer.log_signal_variance.fill_(math.log(4.0))
        layer.weight_log_variance += torch.randn(12, 3, generator=generator(2))
        mean, variance = layer.moments(angles)
        features = 2.0 / 6**0.5 * torch.cat([angles.cos(), angles.sin()], 1)
        noise = torch.randn(20_000, 12, 3, generator=generator(3))
        drawn = features @ (layer.weight_mean + (0.5 * layer.weight_log_variance).exp() * noise)
    assert torch.allclose(drawn.mean(0), mean, atol=0.05)
    assert torch.allclose(drawn.var(0), variance, rtol=0.06)


def test_features_stand_for_the_gaussian_kernel():
    """At the prior Cov(f(x), f(z)) = sf2 exp(-|x - z|^2 / (2 ell^2)), up to Monte Carlo over the frequencies."""
    layer = RandomFeatureLayer(2, 1, 20_000, 1.0, generator())
    x, z = torch.tensor([[0.3, -0.5]]), torch.tensor([[-0.4, 0.8]])
    omega = layer.frequencies().detach()
    features = [torch.cat([(row @ omega).cos(), (row @ omega).sin()], 1) / 20_000**0.5 for row in (x, z)]
    wanted = math.exp(-0.5 * float((x - z).square().sum()) / 2.0)
    assert float(features[0] @ features[1].mT) == pytest.approx(wanted, abs=0.02)


def test_gradients_of_the_bound_repeat_for_a_seed_and_reach_every_parameter():
    X, y = torch.randn(30, 2, generator=generator(1)), torch.randn(30, generator=generator(2))

    def gradients(seed):
        network = RandomFeatureNetwork(2, (3, 3), 5, 0.1, generator())
        for layer in network.gp_layers:  # away from the prior, where the length-scales' gradient vanishes
            layer.log_length_scale.data += 0.1
        (network.kl() / 30 - network.expected_log_likelihood(X, y, 4, generator(seed))).backward()
        return [p.grad for p in network.parameters()]

    first, again, other = gradients(7), gradients(7), gradients(8)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert all(bool((g != 0).any()) for g in first)


def test_frequencies_are_one_draw_for_all_samples():
    network = RandomFeatureNetwork(1, (2,), 5, 1e-12, generator())  # hardly any spread of weights: no other randomness
    X = torch.randn(6, 1, generator=generator(1))
    with torch.no_grad():
        mean, _ = network.moments(X, 3, generator(2))
    assert torch.allclose(mean[0], mean[1], atol=1e-5)
    assert torch.allclose(mean[0], mean[2], atol=1e-5)


def test_expected_log_likelihood_against_sampling():
    network = RandomFeatureNetwork(1, (), 4, 0.3, generator())
    X, y = torch.randn(5, 1, generator=generator(1)), torch.randn(5, generator=generator(2))
    with torch.no_grad():
        found = network.expected_log_likelihood(X, y, 1, generator(3))
        mean, variance = network.moments(X, 1, generator(3))
        f = mean[0] + variance[0].sqrt() * torch.randn(40_000, 5, generator=generator(4))
        wanted = Normal(f, (0.5 * network.log_noise_variance).exp()).log_prob(y).mean()
    assert float(found) == pytest.approx(float(wanted), rel=0.02)
