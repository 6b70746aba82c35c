r"""Figure 1: the lowest rank with KL(exact || low rank) <= eps N against the dimension of the inputs.

[paper, "Experimental rates of convergence"] The figure prints no numbers, so there are none to compare with. Beside
each rank stand those that theorems promise before or after the data are seen, for rank r of

    a_priori_paper   the paper's theorem with its constants: Chebyshev and t / 2 (Mercer), Avron's (Fourier, for
                     frequencies of his modified density, not the independent ones measured here)
    a_priori_sharp   best of four inequalities and 1/2 (t - ln(1 + t)) (Mercer); quadratic in the error (Fourier)
    trace_paper      the trace certificate t / 2 of the data at hand;  trace_sharp  1/2 (t - ln(1 + t))
    reference        certificate R1, through a larger reference dominated by the kernel

Fourier ranks above 2 N are not searched: an exact GP has rank N. Where a search ends there, ``expected_rank`` says
where the divergence would reach the limit in expectation, to second order in the error of Sigma. Matern a-priori ranks
in several dimensions rest on theorem M2; none where no rank up to 65,536 is proven to suffice.

Rows of the method "rates" compare the theorem with Burt et al.'s at growing N (``burt_rates``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from certgp.errors import InvalidInputError
from certgp.features import FeatureMap
from certgp.guarantees import certify_through, fourier_rank_bound, mercer_rank
from certgp_paper.experiments import burt_rates
from certgp_paper.experiments import rates_setting as setting
from certgp_paper.experiments.cells import Cell, Finished, Settings, Values, whole_number
from certgp_paper.experiments.experiment import Experiment, Row
from certgp_paper.experiments.fresh_sets import FRESH_SETS
from certgp_paper.experiments.low_rank_kl import (
    ExactLaw,
    FourierKL,
    eigendecomposition_gaps,
    eigendecomposition_kl,
    first_within,
    nested_gaps,
    smallest,
    trace_bounds,
)
from certgp_paper.experiments.rates_setting import EIGEN, EPSILON, GAUSSIAN, MATERN, MERCER, NOISE

_DELTA = 0.05
_RATES = "rates"
_SEEDS = {5000: 5, 1000: 5, 2000: 5}  # point sets for each N, the paper's first
_MORE_AT, _MORE_SEEDS = 2000, range(5, 10)  # of the Gaussian kernel, whose ranks are small: ties happen
_CERTIFICATES = ("a_priori_paper", "a_priori_sharp", "trace_paper", "trace_sharp", "reference")


def _cells(quick: bool) -> list[Cell]:
    dimensions = range(1, 4 if quick else 7)
    runs = [(500, 0)] if quick else [(n, seed) for n, seeds in _SEEDS.items() for seed in range(seeds)]
    curves = [(n, seed, *curve) for n, seed in runs for curve in setting.CURVES]
    if not quick:
        gaussian = [curve for curve in setting.CURVES if curve[0] == GAUSSIAN]
        more = (*_MORE_SEEDS, *FRESH_SETS)
        curves += [(_MORE_AT, seed, *curve) for seed in more for curve in gaussian]
    ranks = [
        Cell("figure1", {"kernel": name, "method": method, "D": D, "N": n, "seed": seed})
        for n, seed, name, method in curves
        for D in dimensions
    ]
    return ranks + [Cell("figure1", {"kernel": name, "method": _RATES, "D": D}) for name, D in burt_rates.CURVES]


def _compute(settings: Settings) -> Values:
    name, method = str(settings["kernel"]), str(settings["method"])
    if method == _RATES:
        return burt_rates.promised_ranks(name, whole_number(settings, "D"))
    D, n, seed = (whole_number(settings, key) for key in ("D", "N", "seed"))
    draw = setting.normal_inputs if name == GAUSSIAN else setting.uniform_inputs
    X = draw(n, D, np.random.default_rng(seed))
    if method == MERCER:
        return _mercer(X)
    return _eigendecomposition(X) if method == EIGEN else _fourier(name, X, seed)


def _mercer(X: Tensor) -> Values:
    """Ranks up to that of the trace certificate t / 2, below which all others are."""
    n, D = X.shape
    limit, size = EPSILON * n, 8
    while float(_mercer_gaps(X, size)[-1]) > 2.0 * NOISE * limit:
        size *= 2
    features = setting.mercer_map(D, size)
    with torch.no_grad():
        Phi = features(X)
    kl = ExactLaw(_kernel_matrix(GAUSSIAN, X), NOISE).kl_to_nested(Phi)
    paper, sharp = trace_bounds(nested_gaps(Phi), NOISE)
    rank = _rank_within(kl, limit)
    return {
        "rank": rank,
        "kl_per_row": float(kl[rank - 1]) / n,
        **_a_priori(GAUSSIAN, n, D),
        "trace_paper": _rank_within(paper, limit),
        "trace_sharp": _rank_within(sharp, limit),
        "reference": _certified_rank(features, GAUSSIAN, X, size),
    }


def _mercer_gaps(X: Tensor, size: int) -> np.ndarray:
    with torch.no_grad():
        return nested_gaps(setting.mercer_map(X.shape[1], size)(X))


def _eigendecomposition(X: Tensor) -> Values:
    """Closed forms in the eigenvalues of K."""
    n, D = X.shape
    values = torch.linalg.eigvalsh(_kernel_matrix(MATERN, X)).clamp_min(0.0).numpy()
    kl = eigendecomposition_kl(values, NOISE)[1:]
    paper, sharp = trace_bounds(eigendecomposition_gaps(values)[1:], NOISE)
    rank = _rank_within(kl, EPSILON * n)
    return {
        "rank": rank,
        "kl_per_row": float(kl[rank - 1]) / n,
        **_a_priori(MATERN, n, D),
        "trace_paper": _rank_within(paper, EPSILON * n),
        "trace_sharp": _rank_within(sharp, EPSILON * n),
        "reference": None,
    }


def _fourier(name: str, X: Tensor, seed: int) -> Values:
    """Doubling and bisection on nested frequencies: KL falls along them on average only, so this is *a* rank. The
    largest number comes first: where that does not suffice, no smaller one is tried.
    """
    n, D = X.shape
    divergence = FourierKL(
        ExactLaw(_kernel_matrix(name, X), NOISE), setting.fourier_map(name, D, pairs=n, seed=seed), X
    )
    found: dict[int, float] = {}

    def holds(pairs: int) -> bool:
        found[pairs] = divergence(pairs)
        return found[pairs] <= EPSILON * n

    pairs = smallest(holds, cap=n) if name == GAUSSIAN or holds(n) else None
    certified = None
    if pairs is not None and (name == GAUSSIAN or D == 1):
        # the first frequencies of a longer list differ from a shorter list's, so the pool is cut, not drawn again
        pool = setting.fourier_map(name, D, pairs=n, seed=seed).leading(min(8 * pairs, 2 * n))
        certified = _certified_rank(pool, name, X, pool.rank // 2, step=2)
    return {
        "rank": None if pairs is None else 2 * pairs,
        "kl_per_row": found[n if pairs is None else pairs] / n,
        "expected_rank": 2 * round(divergence.expected_pairs(EPSILON * n)) if pairs is None else None,
        "a_priori_paper": _fourier_theorem(name, X, "literal") if name == GAUSSIAN else None,
        "a_priori_sharp": _fourier_theorem(name, X, "plain"),
        "trace_paper": None,
        "trace_sharp": None,
        "reference": certified,
    }


def _certified_rank(features: FeatureMap, name: str, X: Tensor, cap: int, step: int = 1) -> int | None:
    """The rank at which certificate R1 proves KL <= eps N; None where this reference proves it for no rank up to the
    model's."""
    reference = setting.reference(features, name, X, _reference_rank(name, X.shape[1]))
    count = smallest(lambda k: certify_through(reference, step * k).kl.upper <= EPSILON * len(X), cap)
    return None if count is None else step * count


def _reference_rank(name: str, dimension: int) -> int:
    return min(40 * dimension**2, 1000) if name == GAUSSIAN else 400


def _a_priori(name: str, n: int, dimension: int) -> dict[str, int | None]:
    def rank(method: str) -> int | None:
        try:
            return mercer_rank(
                length_scale=setting.LENGTH_SCALE,
                input_scale=[setting.INPUT_SCALE] * dimension,
                n=n,
                noise_variance=NOISE,
                epsilon=EPSILON,
                delta=_DELTA,
                method=method,
                kernel=name,
            )
        except InvalidInputError:  # no rank that is tried is proven to suffice
            return None

    return {"a_priori_paper": rank("paper"), "a_priori_sharp": rank("sharp")}


def _fourier_theorem(name: str, X: Tensor, method: str) -> float:
    """A float: in three dimensions and more the theorem asks for more than 1e25."""
    bound = fourier_rank_bound(
        X=X.numpy(),
        length_scale=setting.LENGTH_SCALE,
        noise_variance=NOISE,
        epsilon=EPSILON,
        delta=_DELTA,
        kernel=name,
        method=method,
    )
    return float(bound.rank)


def _rank_within(values: np.ndarray, limit: float) -> int:
    """Rank of the first value within the limit, where ``values`` are those of ranks 1, 2, .."""
    position = first_within(values, limit)
    if position is None:
        raise InvalidInputError(f"no rank up to {len(values)} reaches {limit:.3g}; raise the largest rank")
    return position + 1


def _kernel_matrix(name: str, X: Tensor) -> Tensor:
    with torch.no_grad():
        return setting.kernel(name)(X, X)


def _rows(finished: Sequence[Finished]) -> list[Row]:
    ranks = [cell for cell in finished if cell["method"] != _RATES]
    rates = [cell for cell in finished if cell["method"] == _RATES]
    return [*map(_rank_row, ranks), *(row for cell in rates for row in _rate_rows(cell))]


def _rank_row(cell: Finished) -> Row:
    in_vain = cell["rank"] is None
    return {
        **cell.cell.settings,
        "rank": cell["rank"],
        "more_than": 2 * int(cell["N"]) if in_vain else None,
        "expected_rank": cell["expected_rank"] if in_vain else None,
        "kl_per_row": cell["kl_per_row"],
        **{key: cell[key] for key in _CERTIFICATES},
    }


def _rate_rows(cell: Finished) -> list[Row]:
    """A row for each number of rows; the column is not called N, which is that of the simulated inputs."""
    return [
        {
            "kernel": cell["kernel"],
            "method": _RATES,
            "D": cell["D"],
            "rows": n,
            **{name: cell[name][i] for name in burt_rates.THEOREMS},
        }
        for i, n in enumerate(burt_rates.SIZES)
    ]


FIGURE1 = Experiment(
    "figure1",
    "Figure 1: lowest rank with KL <= N / 100 against the dimension, the ranks that certificates promise, and ranks "
    "against N by the paper's theorem and by that of Burt et al. (2019)",
    _cells,
    _compute,
    _rows,
    score="rank",
)
