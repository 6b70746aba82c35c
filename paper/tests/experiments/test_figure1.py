"""Figure 1 against ranks that an independent program found (theory, section 8), and against its own certificates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from certgp.guarantees import mercer_rank, mercer_tail
from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.figure1 import FIGURE1
from certgp_paper.experiments.low_rank_kl import ExactLaw, FourierKL

# N = 1000, seeds 0, 1, 2, by dimension
MERCER = {1: (2, 2, 2), 2: (4, 5, 4), 3: (8, 8, 8)}
EIGEN = {1: (7, 7, 7), 2: (20, 20, 20), 3: (41, 41, 41)}
FOURIER = {1: (2, 4, 2), 2: (6, 10, 10), 3: (20, 18, 32)}


def cell(kernel: str, method: str, D: int, seed: int, n: int = 1000) -> Finished:
    found = Cell("figure1", {"kernel": kernel, "method": method, "D": D, "N": n, "seed": seed})
    return Finished(found, FIGURE1.compute(found.settings), 0.0)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_mercer_ranks_are_the_known_ones_and_certificates_never_promise_less(D):
    found = [cell("gaussian", "mercer", D, seed) for seed in range(3)]
    assert tuple(f["rank"] for f in found) == MERCER[D]
    for f in found:
        assert f["kl_per_row"] <= 0.01
        assert f["rank"] <= f["reference"] <= f["trace_sharp"] <= f["trace_paper"]
        assert f["rank"] <= f["a_priori_sharp"] <= f["a_priori_paper"]


@pytest.mark.parametrize(("D", "seed"), [(1, 0), (2, 1), (3, 2)])
def test_eigendecomposition_ranks_of_the_matern_kernel_are_the_known_ones(D, seed):
    found = cell("matern12", "eigendecomposition", D, seed)
    assert found["rank"] == EIGEN[D][seed]
    assert found["rank"] <= found["trace_sharp"] <= found["trace_paper"]


@pytest.mark.parametrize("D", [1, 2, 3])
def test_fourier_ranks_lie_in_the_spread_of_the_known_ones(D):
    found = [cell("gaussian", "fourier", D, seed) for seed in range(3)]
    middle = sorted(f["rank"] for f in found)[1]
    assert min(FOURIER[D]) <= middle <= max(FOURIER[D])
    for f in found:
        assert f["rank"] % 2 == 0
        assert f["rank"] <= f["reference"] < f["a_priori_sharp"] < f["a_priori_paper"]


def test_a_fourier_rank_beyond_twice_n_is_none_and_says_so():
    (row,) = FIGURE1.rows([cell("matern12", "fourier", 6, 0, n=100)])
    assert row["rank"] is None
    assert row["more_than"] == 200
    assert row["kl_per_row"] > 0.01
    assert 200 < row["expected_rank"] < 2000


def test_the_expansion_says_where_a_search_would_end():
    """Beyond the cap of 2 N the divergence falls to the limit near the expected rank: within a factor of two."""
    X = setting.uniform_inputs(200, 4, np.random.default_rng(0))
    with torch.no_grad():
        law = ExactLaw(setting.kernel("matern12")(X, X), setting.NOISE)
    divergence = FourierKL(law, setting.fourier_map("matern12", 4, pairs=4000, seed=0), X)
    expected = divergence.expected_pairs(setting.EPSILON * 200)
    assert divergence(int(2 * expected)) < setting.EPSILON * 200 < divergence(int(expected / 2))


def test_matern_ranks_before_fitting_are_promised_in_two_dimensions_and_left_out_where_none_is_proven():
    found = cell("matern12", "eigendecomposition", 2, 0)
    assert found["trace_sharp"] < found["a_priori_sharp"] < found["a_priori_paper"]
    many = cell("matern12", "eigendecomposition", 4, 0, n=100)
    assert many["a_priori_sharp"] is None


def test_ranks_by_two_theorems_agree_with_mercer_rank():
    (gaussian,) = [c for c in FIGURE1.cells(True) if c.settings == {"kernel": "gaussian", "method": "rates", "D": 2}]
    rows = FIGURE1.rows([Finished(gaussian, FIGURE1.compute(gaussian.settings), 0.0)])
    assert "N" not in rows[0]
    for row in rows[::4]:
        options = {"n": row["rows"], "epsilon": 1.0 / row["rows"], "noise_variance": 1.0, "delta": 0.05}
        scales = {"length_scale": setting.LENGTH_SCALE, "input_scale": [setting.INPUT_SCALE] * 2}
        assert row["theorem3"] == mercer_rank(method="paper", **options, **scales)
        assert row["theorem3_sharp"] == mercer_rank(**options, **scales)
        tails = [mercer_tail(rank=rank, **scales) for rank in (row["burt"] - 1, row["burt"])]
        bounds = [(row["burt"] + i) * row["rows"] * tail / 0.05 for i, tail in enumerate(tails)]
        assert bounds[1] <= 1.0 < bounds[0]


def test_cells_are_distinct_and_the_quick_ones_few():
    full, quick = FIGURE1.cells(False), FIGURE1.cells(True)
    assert len({found.key for found in full}) == len(full)
    assert {found.settings["D"] for found in full} == set(range(1, 7))
    assert len(quick) == 12 + 4
    assert max(found.settings.get("N", 0) for found in quick) <= 1000
