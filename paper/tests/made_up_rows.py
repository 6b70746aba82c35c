"""Rows as the experiments write them, with made-up figures that agree with the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certgp_paper.experiments.results import Result

Rows = list[dict[str, Any]]


def by_split(metric: str, value: float) -> dict[str, float]:
    """Five splits that differ a little."""
    return {f"{metric}_split_{split}": value + 1e-4 * (split % 2) * value for split in range(5)}


def linear(mgp: float = 0.43, fgp: float = 0.52) -> Rows:
    figures = {"SGPR": (0.436, 0.44), "FGP": (fgp, 0.53), "MGP": (mgp, 0.43)}
    return [
        {
            "variant": variant,
            "data": "elevators",
            "method": method,
            "rank": 100,
            "splits": 5,
            "mean": ours,
            "sd": 0.012,
            "paper_mean": paper,
            "paper_sd": 0.01,
            "note": "",
        }
        | by_split("nlpd", ours)
        | by_split("rmse", 0.5 * ours)
        for variant in ("certgp", "paper")
        for method, (ours, paper) in figures.items()
    ]


def deep(**nlpd: float) -> Rows:
    figures = dict.fromkeys(("SVIGP", "SVIGP+", "SGPR", "DKL+", "RFEDGP"), 0.45)
    figures |= {"SGPR+": 0.42, "DKL": 0.53, "DMGP": 0.36, "DFGP": 0.35, "DNN+S": 0.41, "DNN+M": 0.40, "DNN+F": 0.38}
    figures |= {name.replace("_", "+"): value for name, value in nlpd.items()}
    return [
        {
            "method": method,
            "data": "elevators",
            "splits": 5,
            "nlpd": value,
            "nlpd_sd": 0.02,
            "rmse": 0.3,
            "seconds": 10.0 if method in ("DMGP", "DFGP") else 50.0,
            "cpu_seconds": 9.0 if method in ("DMGP", "DFGP") else 45.0,
            "rows": 14_939,
            "paper_nlpd": 0.36,
            "paper_nlpd_sd": 0.03,
            "paper_rmse": 0.29,
            "paper_seconds": 121.0,
            "note": "",
        }
        | {f"nlpd_split_{split}": value for split in range(5)}
        | {f"rmse_split_{split}": value for split in range(5)}
        | {f"cpu_seconds_split_{split}": 9.0 if method in ("DMGP", "DFGP") else 45.0 for split in range(5)}
        for method, value in figures.items()
    ]


def figure1(fourier: int | None = 6) -> Rows:
    """Five point sets with the same ranks, and ranks by two theorems."""
    ranks = {("gaussian", "mercer"): 2, ("gaussian", "fourier"): fourier, ("matern12", "eigendecomposition"): 9}
    rows: Rows = [
        {"kernel": kernel, "method": method, "D": 1, "N": 500, "seed": seed, "rank": rank, "a_priori_sharp": 12}
        | {"a_priori_paper": 1e12 if method == "fourier" and kernel == "gaussian" else 15}
        | {"trace_paper": None if method == "fourier" else 11}
        for seed in range(5)
        for (kernel, method), rank in ranks.items()
    ]
    last = {"kernel": "matern12", "method": "fourier", "D": 1, "N": 500, "rank": 100}
    rows += [last | {"seed": seed} for seed in range(5)]
    return [row | {"more_than": 1000 if row["rank"] is None else None} for row in rows] + rates()


SIZES = (100, 200, 400, 800, 1600)


def rates(ours: tuple[int, int] = (20, 40), burt: tuple[int, int] = (25, 100)) -> Rows:
    """Ranks at 100 to 1,600 rows, which grow from the first to the second; for the Gaussian kernel they do not grow."""
    found = {"gaussian": ((ours[0], ours[0]), (burt[0], burt[0])), "matern32": (ours, burt)}
    return [
        {"kernel": kernel, "method": "rates", "D": 1, "rows": n, "theorem3": a, "theorem3_sharp": a, "burt": b}
        for kernel, pairs in found.items()
        for n, a, b in zip(SIZES, *([first] * 4 + [last] for first, last in pairs), strict=True)
    ]


def figure2(upper: float = 0.3, bound: float = 0.5) -> Rows:
    kl = {("gaussian", "mercer"): 0.1, ("gaussian", "fourier"): 0.2, ("matern12", "eigendecomposition"): 0.4}
    return [
        {"kernel": kernel, "method": method, "N": 500, "seed": seed, "rank": 4, "kl": value, "kl_first": value}
        | ({"lower": 0.05, "upper": upper, "trace_paper": None} if method == "fourier" else {})
        | ({"trace_sharp": value, "trace_paper": bound} if method != "fourier" else {})
        for seed in range(5)
        for (kernel, method), value in kl.items()
    ]


def predictive(expected: float = 0.1, above: int = 3, far: int = 0, outside: int = 0, **changed: Any) -> Rows:
    """Two approximations on five point sets, with 200 draws of the responses each."""
    divergences = {"kl_total": 0.5, "kl_train": 0.4, "kl_expected": expected, "kl_median": 0.08, "kl_quantile": 0.2}
    moments = {"distance": 0.39, "eigenvalue_least": 0.99, "eigenvalue_largest": 1.1, "b": 0.5, "t": 1.7}
    counts = {"draws": 200, "kl_above": above, "moments_above": above, "means_far": far, "covariances_outside": outside}
    ratios = {"kl_ratio": 5.0, "markov_ratio": 25.0, "mean_ratio": 1.03, "covariance_ratio": 12.0}
    other = {"chain_gap": 1e-13, "eta": 0.1, "rounding": 6e-8}
    figures = divergences | moments | counts | ratios | other | changed
    return [
        {"kernel": "gaussian", "method": method, "D": 1, "N": 500, "test": 100, "seed": seed, "rank": 4} | figures
        for seed in range(5)
        for method in ("mercer", "fourier")
    ]


def sensitivity(best: float = 0.85) -> Rows:
    shapes = [(1, 16, 0.86, 10.0), (2, 8, best, 30.0)]
    return [
        {"data": "protein", "method": "DMGP", "d": d, "m": m, "rank": m**d, "nlpd": nlpd, "cpu_seconds": seconds}
        | {"paper_nlpd": 0.857, "paper_nlpd_sd": 0.015, "seconds": seconds, "paper_seconds": 375.0, "splits": 5}
        | by_split("nlpd", nlpd)
        | by_split("cpu_seconds", seconds)
        for d, m, nlpd, seconds in shapes
    ]


def exact_gp(nlpd: float = 0.377) -> Rows:
    return [
        {"data": "elevators", "method": "exact GP", "split": split, "nlpd": nlpd + 0.001 * split, "rmse": 0.35}
        | {"seconds": 500.0, "cpu_seconds": 900.0, "threads": 2, "peak_gb": 7.5, "rows": 14_939}
        | {"paper_nlpd": 0.377, "paper_nlpd_sd": 0.024, "paper_seconds": 53_550.0, "last_gain_per_row": 1e-4}
        for split in range(5)
    ]


def row_cost(exponent: float = 1.0, rounds: int = 9) -> Rows:
    """Nine rounds that differ a little, for two methods."""
    found = {f"exponent_round_{i}": exponent + 1e-3 * (i % 3) for i in range(rounds)}
    return [
        {"width_of": "song", "D": 90, "method": method, "rank": 100, "N": 50_000, "N_more": 200_000}
        | {"microseconds_a_row": 6.8, "microseconds_a_row_more": 6.9, "rounds": rounds}
        | {"exponent": exponent, "exponent_half_width": 0.01, "exponent_median": exponent}
        | found
        for method in ("SGPR", "MGP")
    ]


def electric(part: float = 0.2, splits: int = 5) -> Rows:
    """A part of the rows and all of them, and a baseline; NLPD and CPU seconds differ a little from split to split."""
    rows = [("DFGP", 0.1, part, 5.0), ("DMGP", 0.1, part, 4.0), ("DFGP", 1.0, 0.1, 50.0), ("DMGP", 1.0, 0.1, 80.0)]
    rows += [("DKL", 1.0, 0.3, 60.0), ("DNN+S", 1.0, 0.15, 40.0)]
    return [
        {
            "data": "3droad",
            "method": m,
            "fraction": f,
            "baseline": m in ("DKL", "DNN+S"),
            "nlpd": nlpd,
            "cpu_seconds": seconds,
        }
        | {"splits": splits, "shared_splits": " ".join(map(str, range(splits)))}
        | dict(list(by_split("nlpd", nlpd).items())[:splits])
        | dict(list(by_split("cpu_seconds", seconds).items())[:splits])
        for m, f, nlpd, seconds in rows
    ]


def point_sets(offsets: Sequence[float] = (-0.02, -0.01, 0.0, 0.01, 0.02), **labels: Any) -> Rows:
    """A model on five point sets whose scores differ a little; numbers among the labels are scores."""
    scores = {key: value for key, value in labels.items() if isinstance(value, float)}
    others = {key: value for key, value in labels.items() if key not in scores}
    exact = {"exact_rmse": 0.5, "exact_rmse_inputs": 0.25, "exact_width": 1.0}
    counts = {"kind": "set", "draws": 20, "nearer": 16, "narrower": 18}
    return [
        counts | exact | others | {"seed": seed} | {key: value + offset for key, value in scores.items()}
        for seed, offset in enumerate(offsets)
    ]


def curves(
    fourier: float = 0.4,
    mercer: float = 0.03,
    width: float = 0.5,
    exact: float = 0.25,
    far: float = 0.25,
    **options: Any,
) -> Rows:
    """The paper's models beside those of certgp; the exact GP from two starts."""
    rows: Rows = [{"kind": "point", "x": 0.1, "truth": 1.0}]
    rows += point_sets(
        features="exact", rank=25, variant=None, variance=None, rmse=0.5, rmse_inputs=exact, coverage=0.9
    )
    rows += point_sets(features="exact from 1", rank=25, variant="paper", rmse=0.5, rmse_inputs=far, coverage=0.6)
    for variant in ("paper", "certgp"):
        labels = {"variant": variant, **options}
        distances = {"distance_mean": mercer, "distance_lower": mercer, "distance_upper": mercer}
        for variance in ("dtc", "lowrank") if variant == "paper" else ("dtc",):
            rows += point_sets(features="Mercer", rank=34, variance=variance, rmse=0.5, **distances, **labels)
        rows += point_sets(features="Fourier", rank=68, variance="lowrank", rmse=fourier, width=width, **labels)
    return rows


def ranks(
    error: float = 0.2, coverage: float = 0.97, distance: float = 0.03, width: float = 0.8, low_rank: float = 1.5
) -> Rows:
    """Widths from 1.8 at rank 4, or ``low_rank`` with the lowrank variance, to ``width`` at rank 34."""
    rows: Rows = []
    for rank, far, widths in ((4, 0.5, (1.8, low_rank)), (34, distance, (width, width))):
        for variance, value in zip(("dtc", "lowrank"), widths, strict=True):
            labels = {"variant": "paper", "features": "Mercer", "rank": rank, "variance": variance}
            rows += point_sets(distance_mean=far, width=value, **labels)
    for rank, value in ((4, 0.3), (8, 0.3), (24, error), (34, 0.1), (48, error)):
        labels = {"variant": "paper", "features": "Fourier", "rank": rank, "variance": "lowrank"}
        rows += point_sets(rmse_inputs=value, coverage=coverage, **labels)
    return rows


def everything() -> dict[str, Rows]:
    return {
        "figure1": figure1(),
        "figure2": figure2(),
        "predictive": predictive(),
        "table-nlpd": linear(),
        "table-rmse": linear(),
        "row-cost": row_cost(),
        "exact-gp": exact_gp(),
        "table-deep": deep(),
        "sensitivity": sensitivity(),
        "electric": electric(),
        "curves": curves(),
        "ranks": ranks(),
    }


def results(**changed: Rows) -> dict[str, Result]:
    """All experiments, some of them with other rows; a keyword has _ where the name has a dash."""
    rows = everything() | {name.replace("_", "-"): value for name, value in changed.items()}
    return {name: Result(f"title of {name}", value) for name, value in rows.items()}
