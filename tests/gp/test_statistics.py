"""Statistics are a commutative monoid; sums are float64."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.gp import Statistics
from helpers import tensor

RTOL = 1e-9


def random_rows(rows: int, rank: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return tensor(rng.standard_normal((rows, rank))), tensor(rng.standard_normal(rows))


def assert_same(left: Statistics, right: Statistics, rtol: float = RTOL) -> None:
    scale = max(left.yty, 1.0)
    torch.testing.assert_close(left.A, right.A, rtol=rtol, atol=rtol * scale)
    torch.testing.assert_close(left.b, right.b, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(left.yty, right.yty, rtol=rtol)
    assert left.n == right.n


@given(sizes=st.lists(st.integers(1, 12), min_size=3, max_size=6), rank=st.integers(1, 8), seed=st.integers(0, 1000))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_merging_is_associative_commutative_and_equals_one_pass(sizes, rank, seed):
    phi, y = random_rows(sum(sizes), rank, seed)
    parts = [Statistics.of(p, t) for p, t in zip(phi.split(sizes), y.split(sizes), strict=True)]
    a, b, c = parts[:3]
    assert_same((a + b) + c, a + (b + c))
    assert_same(a + b, b + a)
    assert_same(sum(parts[1:], parts[0]), Statistics.of(phi, y))
    assert_same(Statistics.zero(rank) + a, a, rtol=0.0)
    assert_same(a + Statistics.zero(rank), a, rtol=0.0)


@given(rows=st.integers(1, 40), rank=st.integers(1, 8), seed=st.integers(0, 1000))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_row_order_does_not_matter(rows, rank, seed):
    phi, y = random_rows(rows, rank, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    assert_same(Statistics.of(phi[order], y[order]), Statistics.of(phi, y))


def test_mixing_scaling_and_leading_are_those_of_the_features():
    phi, y = random_rows(30, 6, 0)
    stats = Statistics.of(phi, y)
    mixing = random_rows(6, 6, 1)[0]
    assert_same(stats.mixed(mixing), Statistics.of(phi @ mixing, y))
    assert torch.equal(stats.mixed(mixing).A, stats.mixed(mixing).A.mT)
    assert stats.mixed(None) is stats
    assert_same(stats.scaled(2.7), Statistics.of(2.7**0.5 * phi, y))
    assert_same(stats.leading(4), Statistics.of(phi[:, :4], y))
    assert_same(stats.trailing(2), Statistics.of(phi[:, -2:], y))
    assert (stats.rank, stats.leading(4).rank, stats.trailing(2).rank) == (6, 4, 2)


def test_closeness_notices_other_data():
    phi, y = random_rows(30, 6, 0)
    stats = Statistics.of(phi, y)
    assert stats.close_to(Statistics.of(phi.flip(0), y.flip(0)))
    changed = phi.clone()
    changed[3, 2] += 0.01
    others = [(changed, y), (phi, y + 0.001), (phi[:-1], y[:-1]), (phi[:, :-1], y), (-phi, y)]
    assert not any(stats.close_to(Statistics.of(p, t)) for p, t in others)


def test_float32_features_accumulate_in_float64():
    """A running float32 sum of 20 000 equal terms is off in the fourth digit; the fold is exact to float64."""
    chunk = Statistics.of(torch.full((1, 1), 0.1, dtype=torch.float32), torch.full((1,), 0.1, dtype=torch.float32))
    total, single = Statistics.zero(1), torch.zeros(1, dtype=torch.float32)
    for _ in range(20_000):
        total = total + chunk
        single += torch.tensor(0.1, dtype=torch.float32) ** 2
    expected = 20_000 * float(torch.tensor(0.1, dtype=torch.float32) ** 2)
    assert chunk.A.dtype == chunk.b.dtype == total.A.dtype == total.b.dtype == torch.float64
    np.testing.assert_allclose([float(total.A[0, 0]), float(total.b[0])], expected, rtol=1e-11)
    assert abs(float(single) / expected - 1.0) > 1e-5  # the control: this is what float32 would have given
    np.testing.assert_allclose(total.yty, 20_000 * float(np.float32(0.1)) ** 2, rtol=1e-11)


def test_float32_statistics_are_close_to_float64_ones():
    phi, y = random_rows(5000, 6, 2)
    single = sum(
        (Statistics.of(p.float(), t) for p, t in zip(phi.split(64), y.split(64), strict=True)), Statistics.zero(6)
    )
    assert_same(single, Statistics.of(phi, y), rtol=1e-5)
    np.testing.assert_allclose(single.yty, float(y @ y), rtol=1e-13)  # the target was never float32
