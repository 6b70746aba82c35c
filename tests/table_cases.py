"""A messy table with a known truth."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd

import certgp
from certgp.tabular import TableGP

SHOPS = tuple(f"shop {k:02d}" for k in range(20))


def messy(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Categories of few and many levels, a date, gaps, true and false, an identifier, a constant."""
    rng = np.random.default_rng(seed)
    days, shop, size = rng.integers(0, 700, n), rng.integers(0, 20, n), rng.gamma(4.0, 10.0, n)
    colour = rng.choice(["red", "green", "blue"], n)
    member = rng.random(n) < 0.3
    price = np.exp(
        3.0 + 0.02 * size + 0.05 * shop + 0.3 * (colour == "red") + 0.2 * member + 0.1 * rng.standard_normal(n)
    )
    start = datetime.datetime(2022, 1, 3)
    frame = pd.DataFrame(
        {
            "order_id": 1000 + np.arange(n),
            "sold": [start + datetime.timedelta(days=int(d), hours=int(d) % 24) for d in days],
            "colour": colour,
            "shop": np.array(SHOPS)[shop],
            "size": size,
            "member": member,
            "currency": "EUR",
            "price": price,
        }
    )
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.05, "colour"] = None
    return frame


def as_text(frame: pd.DataFrame) -> str:
    """As people in half of Europe save it: semicolons, decimal commas, days before months."""
    shown = frame.assign(
        sold=frame["sold"].dt.strftime("%d.%m.%Y %H:%M"), member=frame["member"].map({True: "yes", False: "no"})
    )
    return shown.to_csv(sep=";", decimal=",", index=False)


def small_table_gp() -> TableGP:
    """A model of log(price) that takes a moment to fit, from the first 180 rows; gaps are filled in."""
    gp = certgp.SparseGP(12, length_scale=4.0, optimize=False, random_state=0)
    return TableGP(gp, missing="impute", log_target=True).fit(messy()[:180], "price")
