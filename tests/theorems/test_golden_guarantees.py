"""Ground-truth numbers of the theory reference, sections 3, 6, 7 and 8, and nonsense arguments."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

from certgp.errors import InvalidInputError, VacuousBoundWarning
from certgp.features import MercerMap, eigenvalue_tail, optimal_indices
from certgp.gp import Statistics
from certgp.guarantees import (
    certify_dominated,
    covariance_sandwich,
    fourier_rank,
    fourier_rank_bound,
    gaussian_kl,
    matern12_eigenvalues,
    mercer_rank,
    mercer_tail,
    proposition1,
    quadrature_eigenvalues,
)
from certgp.guarantees.mercer_rank import _isotropic_tail, _tail_by_rank
from certgp.kernels import Gaussian, Matern12, Matern52
from helpers import normal_points

FIGURE_SCALE, FIGURE_SPREAD = 1.0 / (2.0 * math.pi), 1.0 / 16.0

# -------------------- Figure 2: KL of Mercer features, the paper's bound t / 2 and the sharpened one, N = 1000, D = 1

FIGURE_2 = [
    (1, 52.827359, 57.123, 54.749),
    (2, 5.0189687, 6.9237, 5.5748),
    (3, 0.36193261, 1.0036, 0.45308),
    (4, 0.014307873, 0.16232, 0.02175),
    (5, 3.89236e-4, 0.025589, 6.3328e-4),
    (6, 7.24246e-6, 0.0033715, 1.1316e-5),
    (8, 1.670e-10, 1.4695e-5, 2.159e-10),
]


@pytest.fixture(scope="module")
def figure_rows() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(1000, 1)) / 16.0)


@pytest.mark.parametrize(("rank", "kl", "paper", "sharp"), FIGURE_2)
def test_figure_two_at_a_thousand_rows(figure_rows, rank, kl, paper, sharp):
    kernel = Gaussian(FIGURE_SCALE)
    with torch.no_grad():
        K, phi = kernel(figure_rows, figure_rows).numpy(), MercerMap(kernel, [FIGURE_SPREAD], rank)(figure_rows)
    Sigma, eye = (phi @ phi.mT).numpy(), np.eye(1000)
    assert gaussian_kl(K + eye, Sigma + eye) == pytest.approx(kl, rel=1e-6 if kl > 1e-6 else 2e-3)
    own = certify_dominated(Statistics.of(phi, torch.zeros(1000, dtype=torch.float64)), 1.0, 1.0)
    assert own.evidence["paper_bound"] == pytest.approx(paper, rel=1e-4)
    assert own.kl.upper == pytest.approx(sharp, rel=1e-3)
    assert kl <= own.kl.upper <= own.evidence["paper_bound"]


def test_tiny_divergences_keep_their_digits():
    """KL = 1e-12 N: the textbook formula would return rounding."""
    n = 200
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    e = 2e-6 * np.linspace(0.5, 1.5, n)
    S2 = Q @ np.diag(np.linspace(1.0, 3.0, n)) @ Q.T
    root = Q @ np.diag(np.sqrt(np.linspace(1.0, 3.0, n))) @ Q.T
    S1 = S2 + root @ np.diag(e) @ root
    expected = 0.5 * float(np.sum(e**2 / 2 - e**3 / 3))
    assert expected < 2e-12 * n
    assert gaussian_kl(0.5 * (S1 + S1.T), 0.5 * (S2 + S2.T)) == pytest.approx(expected, rel=1e-6)


def test_means_add_their_distance():
    rng = np.random.default_rng(0)
    A, B = (M @ M.T + np.eye(4) for M in rng.standard_normal((2, 4, 4)))
    p, q = (torch.distributions.MultivariateNormal(torch.zeros(4).double(), torch.from_numpy(S)) for S in (A, B))
    assert gaussian_kl(A, B) == pytest.approx(float(torch.distributions.kl_divergence(p, q)), rel=1e-12)
    m = np.array([1.0, -2.0, 0.5, 0.0])
    moved = torch.distributions.MultivariateNormal(torch.from_numpy(m), torch.from_numpy(A))
    assert gaussian_kl(A, B, mean1=m) == pytest.approx(float(torch.distributions.kl_divergence(moved, q)), rel=1e-12)


def test_proposition_one_has_the_smallest_gammas():
    rng = np.random.default_rng(3)
    X = torch.from_numpy(rng.standard_normal((40, 2)))
    K = Gaussian(1.0)(X, X).numpy()
    W = rng.standard_normal((40, 10)) * 0.3
    result = proposition1(K, W @ W.T, 0.5)
    S1, S2 = K + 0.5 * np.eye(40), W @ W.T + 0.5 * np.eye(40)
    assert np.linalg.eigvalsh((1 + result.gamma) * S1 - S2).min() == pytest.approx(0.0, abs=1e-10)
    assert min(np.linalg.eigvalsh((1 + result.gamma_two_sided) * S2 - S1).min(), 0.0) == pytest.approx(0.0, abs=1e-10)
    assert result.kl <= result.bound1_log <= result.bound1 <= result.bound3
    dominated = proposition1(K, 0.9 * K, 0.5)
    assert dominated.gamma == 0.0
    assert dominated.bound3 == pytest.approx(0.5 * np.trace(0.1 * K) / 0.5)


# -------------------- Proposition 2


@pytest.mark.parametrize(
    ("gamma", "b", "t"), [(0.01, 0.813105, 1.213550), (0.5, 0.158594, 3.146193), (5.0, 1.6702e-5, 13.6109)]
)
def test_printed_sandwiches(gamma, b, t):
    found = covariance_sandwich(gamma)
    assert found == pytest.approx((b, t), rel=2e-5)  # printed with five or six digits


@pytest.mark.parametrize("gamma", [1e-14, 1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 1.0, 5.0, 50.0, 300.0, 340.0, 1e3])
def test_sandwich_against_sixty_digits_and_outwards(gamma):
    b, t = covariance_sandwich(gamma)
    with mpmath.workdps(60):
        argument = -mpmath.exp(-1 - 2 * mpmath.mpf(gamma))
        exact_b, exact_t = -mpmath.lambertw(argument, 0).real, -mpmath.lambertw(argument, -1).real
        assert b <= exact_b
        assert exact_t <= t
        assert float((t - exact_t) / exact_t) < 1e-13
        assert float(exact_b - b) <= 1e-11 * float(exact_b) + 1e-300
    explicit = max(1.0 - 2.0 * math.sqrt(gamma), math.exp(-1.0 - 2.0 * gamma))
    assert b >= explicit * (1.0 - 1e-10) - 1e-300
    assert t <= 1.0 + max(math.sqrt(8.0 * gamma), 8.0 * gamma) + 1e-13


# -------------------- section 6: ranks before fitting

# n, noise variance, epsilon, delta | paper / best / sharp / expected for D = 1 .. 6
RANKS = """
5000,1,1e-2,.05 | 3/2/2/2 | 6/6/6/5 | 12/10/10/10 | 28/26/25/21 | 53/50/49/45 | 114/86/84/79
5000,1,1e-2,.01 | 3/2/2/2 | 6/6/6/5 | 16/10/10/10 | 33/26/26/21 | 75/51/50/45 | 169/96/88/79
2000,1,1e-2,.05 | 3/3/2/2 | 6/6/6/5 | 14/11/10/10 | 31/28/26/21 | 56/52/51/45 | 144/110/93/79
5000,1,1e-3,.05 | 4/4/4/3 | 13/11/10/10 | 35/33/30/24 | 102/83/69/62 | 242/220/194/129 | 648/460/431/356
5000,1,2e-6,.05|10/8/7/6|60/41/30/28|295/171/118/110|1336/689/441/367|5639/2563/1336/1209|20371/7916/4520/3718
1e5,.1,1e-3,.05 | 5/5/5/5 | 18/17/16/15 | 56/54/54/48 | 184/165/163/125 | 461/440/437/381 | 1435/1234/1210/895
"""


@pytest.mark.parametrize("row", RANKS.strip().splitlines())
def test_every_cell_of_the_rank_table(row):
    head, *cells = (cell.strip() for cell in row.split("|"))
    n, noise, epsilon, delta = map(float, head.split(","))
    for dimension, cell in enumerate(cells, 1):
        found = [
            mercer_rank(
                length_scale=[FIGURE_SCALE] * dimension,
                input_scale=FIGURE_SPREAD,
                n=int(n),
                noise_variance=noise,
                epsilon=epsilon,
                delta=delta,
                method=method,
            )
            for method in ("paper", "best", "sharp", "expected")
        ]
        assert found == [int(number) for number in cell.split("/")], (head, dimension)


def test_matern_eigenvalues_and_ranks():
    a = math.sqrt(3.0) / 16.0
    np.testing.assert_allclose(
        matern12_eigenvalues(FIGURE_SCALE, a, 5), [0.67134, 0.16508, 0.05846, 0.02834, 0.01648], atol=5e-6
    )
    np.testing.assert_allclose(matern12_eigenvalues(1.0, a, 3), [0.93180, 0.04023, 0.01072], atol=5e-6)
    assert matern12_eigenvalues(1.0, a, 200_000).sum() == pytest.approx(1.0, abs=1e-6)
    setting = {"input_scale": FIGURE_SPREAD, "n": 5000, "noise_variance": 1.0, "epsilon": 1e-2, "kernel": "matern12"}
    for scale, ranks in ((FIGURE_SCALE, (22, 15)), (1.0, (4, 3))):
        found = tuple(mercer_rank(length_scale=scale, method=method, **setting) for method in ("paper", "expected"))
        assert found == ranks


def test_quadrature_agrees_with_the_closed_form_and_sums_to_the_diagonal():
    a = math.sqrt(3.0) / 16.0
    np.testing.assert_allclose(
        quadrature_eigenvalues(Matern12(FIGURE_SCALE), a)[:5], matern12_eigenvalues(FIGURE_SCALE, a, 5), rtol=2e-4
    )
    assert quadrature_eigenvalues(Matern52(0.3), 1.0).sum() == pytest.approx(1.0, rel=1e-12)


def test_two_ways_to_the_same_tail():
    q = np.array([0.3, 0.3, 0.3])
    for rank in (1, 2, 4, 5, 10, 77):
        direct = eigenvalue_tail(q, optimal_indices(q, rank))
        assert _isotropic_tail(0.3, 3, rank) == pytest.approx(direct, rel=1e-12)
    mixed = np.array([0.3, 0.1])
    tail = _tail_by_rank(mixed)
    for rank in (1, 3, 8, 9, 100):
        assert tail(rank) == pytest.approx(eigenvalue_tail(mixed, optimal_indices(mixed, rank)), rel=1e-12)


def test_mercer_tail_by_index_set():
    scales = {"length_scale": [0.5, 2.0], "input_scale": 1.0, "rank": 50}
    tails = [mercer_tail(index_set=name, **scales) for name in ("optimal", "total_degree", "box")]
    assert [f"{tail:.1e}" for tail in tails] == ["1.0e-03", "1.3e-02", "3.1e-02"]
    assert mercer_tail(signal_variance=3.0, **scales) == pytest.approx(3.0 * tails[0])


# -------------------- Fourier ranks


def test_literal_theorem_two_is_vacuous_and_says_so():
    X = normal_points(5000, 1).numpy()
    arguments = {"X": X, "length_scale": 1.0, "noise_variance": 1.0, "epsilon": 1e-2}
    bound = fourier_rank_bound(method="literal", **arguments)
    assert bound.mass == pytest.approx(2.9e6, rel=0.01)
    assert bound.vacuous
    assert "vacuous" in str(bound)
    with pytest.warns(VacuousBoundWarning, match="vacuous"):
        assert fourier_rank(method="literal", **arguments) == bound.rank


def test_data_dependent_rank_is_not_vacuous_for_many_rows():
    """d_eff is about 50, so 2 (32/3) 50 ln(16 50 / rho) is about 1e4 for N = 1e6 rows; 3e4 rows show it here."""
    X = np.random.default_rng(0).standard_normal((30_000, 1))
    arguments = {"X": X, "length_scale": 0.3, "noise_variance": 0.1, "epsilon": 0.1}
    bound = fourier_rank_bound(**arguments)
    assert 25 < bound.effective_dimension < 60
    assert not bound.vacuous
    with pytest.warns(VacuousBoundWarning):
        assert bound.rank < 0.01 * fourier_rank(method="plain", **arguments)


def test_effective_dimension_is_an_upper_bound():
    X = normal_points(200, 2).numpy()
    bound = fourier_rank_bound(X=X, length_scale=0.7, noise_variance=0.1, epsilon=0.1, reference_rank=150)
    rows = torch.from_numpy(X)
    values = torch.linalg.eigvalsh(Gaussian(0.7)(rows, rows)).numpy().clip(0.0)
    truth = float((values / (values + 0.1)).sum())
    assert truth <= bound.mass <= 1.05 * truth


def test_covariance_sandwich_at_the_end_of_float64():
    for gamma in (400.0, 1e200, 1e308):
        b, t = covariance_sandwich(gamma)
        assert b == 0.0
        assert t >= 2.0 * gamma


# -------------------- nonsense

MERCER = {"length_scale": 1.0, "input_scale": 1.0, "n": 100, "noise_variance": 1.0, "epsilon": 0.01, "delta": 0.05}
FOURIER = {"X": [[0.0], [1.0]], "length_scale": 1.0, "noise_variance": 0.5, "epsilon": 0.01, "delta": 0.05}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise_variance": 0.0}, "noise_variance must be positive and finite, found 0.0"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1, found 0.0"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1, found 1.0"),
        ({"length_scale": -1.0}, "length_scale must be positive and finite"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": "small"}, "epsilon must be positive"),
        ({"signal_variance": -2.0}, "signal_variance must be positive"),
    ],
)
def test_both_rank_functions_refuse_nonsense(change, message):
    for function, arguments in ((mercer_rank, MERCER), (fourier_rank, FOURIER)):
        with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
            function(**arguments | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, found 0"),
        ({"method": "magic"}, "method must be one of"),
        ({"kernel": "cosine"}, "unknown kernel 'cosine'"),
        ({"length_scale": [1.0, 2.0], "input_scale": [1.0, 1.0, 1.0]}, "length_scale has 2 numbers but there are 3"),
        ({"length_scale": [1e-4] * 6, "epsilon": 1e-6}, "no rank up to"),
    ],
)
def test_mercer_rank_refuses_nonsense(change, message):
    with pytest.raises(InvalidInputError, match=message):
        mercer_rank(**MERCER | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [1.0, 2.0]}, r"X must be a table \(rows, columns\)"),
        ({"X": [[np.nan]]}, "finite numbers"),
        ({"noise_variance": 50.0}, "needs a kernel matrix of norm at least noise_variance"),
        ({"kernel": "matern12", "method": "literal"}, "Theorem 2 is about the Gaussian kernel"),
        ({"reference_rank": 0}, "reference_rank must be a whole number"),
    ],
)
def test_fourier_rank_refuses_nonsense(change, message):
    with pytest.raises(InvalidInputError, match=message):
        fourier_rank(**FOURIER | change)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covariance_sandwich(-1.0), "gamma must be finite and not negative"),
        (lambda: gaussian_kl(np.eye(2), np.eye(3)), "one shape"),
        (lambda: gaussian_kl(np.eye(2), np.zeros((2, 2))), "not positive definite"),
        (lambda: gaussian_kl(-np.eye(2), np.eye(2)), "not positive definite"),
        (lambda: gaussian_kl([[1.0, 0.5], [0.0, 1.0]], np.eye(2)), "cov1 must be symmetric"),
        (lambda: gaussian_kl(np.eye(2), np.eye(2), mean1=[1.0]), "mean1 must be a vector of 2"),
        (lambda: proposition1(np.eye(2), np.eye(2), 0.0), "noise_variance must be positive"),
        (lambda: proposition1(np.ones(3), np.eye(3), 1.0), "K1 must be a square matrix"),
    ],
)
def test_dense_functions_refuse_nonsense(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
