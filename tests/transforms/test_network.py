"""The network transform: standardised outputs, batch moments in training, and refusal of modules that cannot work."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from certgp.errors import InvalidInputError
from certgp.transforms import Network, Projection, TanhNetwork, check_network
from helpers import random_inputs, relative_error

X = 2.0 + random_inputs(0, 60, 4)


def tanh_network(*widths: int, seed: int = 1) -> TanhNetwork:
    return TanhNetwork(widths, torch.Generator().manual_seed(seed))


def network(*widths: int) -> Network:
    return Network(tanh_network(*widths), widths[-1])


@torch.no_grad()
def test_training_mode_standardises_each_batch_and_eval_mode_all_rows():
    g = network(4, 16, 3)
    for rows in (X, X[:20]):
        Z = g.train()(rows)
        torch.testing.assert_close(Z.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12)
        torch.testing.assert_close(Z.square().mean(0), torch.ones(3, dtype=torch.float64), rtol=1e-9, atol=0)
    g.eval()
    measured = g.measure(g.raw(X))
    assert torch.equal(measured, g(X))
    torch.testing.assert_close(g(X[:1]), measured[:1], rtol=1e-12, atol=1e-12)  # neighbours do not matter
    torch.testing.assert_close(measured, g.train()(X), rtol=1e-12, atol=1e-12)


def test_batch_moments_are_differentiated_through():
    g = network(4, 8, 2).train()
    names = [name for name, _ in g.named_parameters()]

    def forward(*weights):
        return torch.func.functional_call(g, dict(zip(names, weights, strict=True)), (X[:5],))

    assert torch.autograd.gradcheck(forward, tuple(p.detach().requires_grad_() for p in g.parameters()))


def test_outputs_that_do_not_vary_stay_finite():
    g = network(4, 8, 2).train()
    Z = g(X[:1].expand(6, 4))
    Z.sum().backward()
    assert bool(torch.isfinite(Z).all())
    assert all(bool(torch.isfinite(p.grad).all()) for p in g.parameters())


def test_a_projection_is_the_network_without_hidden_layers():
    """Same base, same values, same gradients: the projection's closed-form moments are those of the linear network."""
    g = network(4, 2).train()
    linear = g.module[0]
    covariance = torch.cov(X.mT, correction=0)
    projection = Projection(linear.weight.detach().mT, X.mean(0), covariance)
    with torch.no_grad():
        projection.directions.copy_(linear.weight.mT)
    Z, W = g(X), projection(X)
    torch.testing.assert_close(Z, W, rtol=1e-9, atol=1e-9)
    cotangent = random_inputs(3, 60, 2)
    Z.backward(cotangent)
    W.backward(cotangent)
    assert relative_error(linear.weight.grad.mT, projection.directions.grad) < 1e-8


@torch.no_grad()
def test_many_rows_go_through_in_blocks():
    g = network(4, 8, 1).eval()
    sizes: list[int] = []
    g.module[0].register_forward_hook(lambda module, inputs, output: sizes.append(len(output)))
    rows = random_inputs(5, 10_000, 4)
    blocked = g.raw(rows)
    assert max(sizes) <= 1024
    torch.testing.assert_close(blocked, g.module(rows), rtol=1e-12, atol=1e-12)


def test_precision_follows_the_input_and_the_weights():
    g = network(4, 8, 1).eval()
    assert g(X.float()).dtype == torch.float32
    double = g(X).detach()
    g.float()
    assert g(X).dtype == torch.float64
    torch.testing.assert_close(g(X).detach(), double, rtol=0, atol=1e-4)


def test_the_default_network_starts_by_its_generator_alone():
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first, again, other = tanh_network(4, 500, 3), tanh_network(4, 500, 3), tanh_network(4, 500, 3, seed=2)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert float(first[0].weight.detach().std()) == pytest.approx(0.5, rel=0.1)  # 1 / sqrt(4)
    assert float(first[2].weight.detach().std()) == pytest.approx(500**-0.5, rel=0.1)
    assert float(first[0].bias.detach().abs().max()) <= 0.5
    assert not first[2].bias.any()
    assert len(tanh_network(4, 3)) == 1


# -------------------- modules that cannot work


class Wordy(nn.Module):
    """A linear layer whose output is spoiled."""

    def __init__(self, spoil) -> None:
        super().__init__()
        self.layer, self.spoil = nn.Linear(4, 2), spoil

    def forward(self, X):
        return self.spoil(self.layer(X))


def poisoned() -> nn.Module:
    module = nn.Linear(4, 2)
    with torch.no_grad():
        module.weight[0, 0] = np.nan
    return module


BAD = {
    "not a module": (lambda x: x, "torch.nn.Module"),
    "no parameters": (nn.Tanh(), "no parameters that can be learned"),
    "all frozen": (nn.Linear(4, 2).requires_grad_(False), "no parameters that can be learned"),
    "NaN weights": (poisoned(), "NaN or infinite weights in weight"),
    "wrong width": (nn.Linear(4, 3), r"\(2, 2\) for 2 rows of 4 columns, found \(2, 3\)"),
    "one dimension": (Wordy(lambda z: z[:, 0]), r"found \(2,\)"),
    "wrong input": (nn.Linear(7, 2), "cannot map rows of 4 columns"),
    "whole numbers": (Wordy(lambda z: z.long()), "floating-point numbers, found torch.int64"),
    "a tuple": (Wordy(lambda z: (z, z)), "a tensor .* found tuple"),
    "detached": (Wordy(lambda z: z.detach()), "does not depend on its parameters"),
    "NaN output": (Wordy(lambda z: z / 0.0 * 0.0), "NaN or infinity"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_networks_are_refused_with_a_reason(name):
    module, reason = BAD[name]
    with pytest.raises(InvalidInputError, match=f"network.*{reason}"):
        check_network(module, 4, 2)


def test_a_good_network_passes_and_is_left_as_it_was():
    module = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2)).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    assert check_network(module, 4, 2) is module
    assert module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
