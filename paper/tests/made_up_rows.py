"""Rows as the experiments write them, with made-up figures that agree with the paper's claims."""

from __future__ import annotations

from typing import Any

from certgp_paper.experiments.results import Result

Rows = list[dict[str, Any]]


def by_split(metric: str, value: float) -> dict[str, float]:
    """Five splits that differ a little."""
    return {f"{metric}_split_{split}": value + 1e-4 * (split % 2) * value for split in range(5)}


def linear(mgp: float = 0.43, fgp: float = 0.52) -> Rows:
    figures = {"SGPR": (0.441, 0.44), "FGP": (fgp, 0.53), "MGP": (mgp, 0.43)}
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
    ranks = {("gaussian", "mercer"): 2, ("gaussian", "fourier"): fourier, ("matern12", "eigendecomposition"): 9}
    rows = [
        {"kernel": kernel, "method": method, "D": 1, "N": 500, "seed": 0, "rank": rank, "a_priori_sharp": 12}
        for (kernel, method), rank in ranks.items()
    ]
    rows.append({"kernel": "matern12", "method": "fourier", "D": 1, "N": 500, "seed": 0, "rank": 100})
    return [row | {"more_than": 1000 if row["rank"] is None else None} for row in rows]


def figure2(upper: float = 0.3) -> Rows:
    kl = {("gaussian", "mercer"): 0.1, ("gaussian", "fourier"): 0.2, ("matern12", "eigendecomposition"): 0.4}
    return [
        {"kernel": kernel, "method": method, "N": 500, "seed": 0, "rank": 4, "kl": value, "kl_first": value}
        | ({"lower": 0.05, "upper": upper, "trace_paper": None} if method == "fourier" else {"trace_sharp": value})
        for (kernel, method), value in kl.items()
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


def electric(part: float = 0.2) -> Rows:
    rows = [("DFGP", 0.1, part, 5.0), ("DMGP", 0.1, part, 8.0), ("DFGP", 1.0, 0.1, 50.0), ("DMGP", 1.0, 0.1, 80.0)]
    rows.append(("DKL", 1.0, 0.3, 60.0))
    return [
        {"data": "3droad", "method": m, "fraction": f, "baseline": m == "DKL", "nlpd": nlpd, "cpu_seconds": seconds}
        for m, f, nlpd, seconds in rows
    ]


def answers(shift: float, half_width: float, **labels: Any) -> Rows:
    """A model's answer to y = x on three points, off by a constant."""
    return [
        {"kind": "curve", "x": x, "truth": x, "mean": x + shift}
        | {"lower": x + shift - half_width, "upper": x + shift + half_width}
        | labels
        for x in (-1.0, 0.0, 1.0)
    ]


def curves(fourier: float = 0.4, mercer_shift: float = 0.01, width: float = 0.5) -> Rows:
    """Scores, answers and six draws of frequencies, which spread a little around the figure's error."""
    figures = {"exact GP": 0.5, "Mercer GP, rank 34": 0.51, "Fourier GP, rank 68": fourier}
    rows: Rows = [{"kind": "point", "x": 0.1, "truth": 1.0}]
    rows += [{"kind": "scores", "model": m, "rmse": v, "rmse_inputs": v / 2} for m, v in figures.items()]
    rows += answers(0.0, 0.5, model="exact GP") + answers(mercer_shift, 0.5, model="Mercer GP, rank 34")
    errors = enumerate(fourier + 0.01 * step for step in (-3, -2, -1, 1, 2, 3))
    return rows + [{"kind": "draw", "draw": i, "rmse": error, "width": width + 0.01 * i} for i, error in errors]


def ranks(error: float = 0.2, coverage: float = 0.95, last_shift: float = 0.01, last_half_width: float = 0.4) -> Rows:
    pairs = [(4, 0.3), (24, error), (34, 0.1)]
    mercer = [(4, 0.5, 0.9), (34, last_shift, last_half_width)]
    rows = [
        {"kind": "scores", "features": "Fourier", "rank": rank, "rmse_inputs": value, "coverage": coverage}
        for rank, value in pairs
    ]
    return rows + [row for r, shift, half in mercer for row in answers(shift, half, features="Mercer", rank=r)]


def everything() -> dict[str, Rows]:
    return {
        "figure1": figure1(),
        "figure2": figure2(),
        "table-nlpd": linear(),
        "table-rmse": linear(),
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
