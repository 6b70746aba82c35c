"""What to do with a category of many levels, measured (docs/decisions/0047), and the made-up table of docs/tables.md.

python benchmarks/table_encodings.py sales sales.csv     writes that table
python benchmarks/table_encodings.py compare             NLPD, RMSE, coverage and CPU time of four encodings
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pa_parquet

from certgp import SparseGP
from certgp.gp.log_mixture import LogMixture
from certgp.tabular import TableEncoder, TableGP

SPLITS = 3
VARIANTS = ("left out", "a column each", "means, all rows", "means, other folds")
_COLOURS = {"red": 0.3, "green": 0.0, "blue": -0.2, "grey": 0.1}


def make_sales(n: int = 2500, seed: int = 7) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    effects, start, rows = rng.normal(0.0, 0.25, 60), datetime.datetime(2022, 1, 3), []
    for i in range(n):
        sold = start + datetime.timedelta(hours=int(rng.integers(0, 24 * 900)))
        colour = list(_COLOURS)[rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
        shop = min(int(rng.exponential(12)), 59)
        size, age, member = rng.gamma(4, 10), rng.uniform(0, 40), rng.random() < 0.3
        price = 3 + 0.6 * np.log(size) + _COLOURS[colour] + effects[shop] - 0.015 * age
        price += (
            0.15 * np.sin(2 * np.pi * sold.timetuple().tm_yday / 365.25) + 0.1 * (sold.weekday() >= 5) + 0.2 * member
        )
        price += 0.08 * ((sold - start).days / 365) + rng.normal(0, 0.15)
        gaps = rng.random(3) < (0.03, 0.05, 0.1)
        rows.append(
            {
                "order_id": 100_000 + i,
                "sold": sold,
                "colour": None if gaps[0] else colour,
                "shop": f"shop {shop:03d}",
                "size": np.nan if gaps[1] else round(size, 2),
                "age": np.nan if gaps[2] else round(age, 1),
                "member": "yes" if member else "no",
                "currency": "EUR",
                "price": round(float(np.exp(price)), 2),
            }
        )
    return pd.DataFrame(rows)


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, str, list[str], bool]]:
    """Name -> table, target, columns of many levels, and whether log(y) is learned."""
    airports = pd.read_csv(folder / "airports.csv")[["state", "country", "longitude", "latitude"]]
    flights = pa_parquet.read_table(folder / "flights.parquet")
    some = np.sort(np.random.default_rng(0).permutation(flights.num_rows)[:6000])
    return {
        "airports": (airports, "latitude", ["state"], False),
        "sales": (make_sales(), "price", ["shop"], True),
        "flights": (flights.take(some).to_pandas()[:4000], "delay", ["origin", "destination"], False),
    }


def model() -> SparseGP:
    return SparseGP(60, random_state=0, noise="constant", max_iter=60)


def score(
    variant: str, train: pd.DataFrame, test: pd.DataFrame, target: str, many: list[str], log: bool
) -> list[float]:
    started, y = time.process_time(), test[target].to_numpy(float)
    if variant == "means, all rows":  # what a transformer gives that does not leave out a row's own target
        inputs, z = train.drop(columns=target), train[target].to_numpy(float)
        z = np.log(z) if log else z
        encoder = TableEncoder(missing="impute").fit(inputs, z)
        found = model().fit(encoder.transform(inputs), z).distribution(encoder.transform(test.drop(columns=target)))
        law, width = LogMixture(found) if log else found, len(encoder.encoding_.names)
    else:
        levels, dropped = 300 if variant == "a column each" else 10, many if variant == "left out" else ()
        gp = TableGP(model(), missing="impute", log_target=log, drop=dropped, max_levels=levels).fit(train, target)
        law, width = gp.distribution(test), len(gp.encoding_.names)
    seconds = time.process_time() - started
    lower, upper = law.quantiles(np.array([0.025, 0.975])).T
    rmse = np.sqrt(np.mean(np.square(law.moments()[0] - y)))
    return [-law.log_density(y).mean(), rmse, np.mean((lower <= y) & (y <= upper)), seconds, width]


def compare(folder: Path) -> None:
    print(f"{'table':<10}{'many levels':<20}{'NLPD':>8}{'RMSE':>9}{'in 95 %':>9}{'CPU s':>7}{'inputs':>8}")
    for name, (table, target, many, log) in tables(folder).items():
        for variant in VARIANTS:
            scores = []
            for seed in range(SPLITS):
                order, held = np.random.default_rng(seed).permutation(len(table)), -(len(table) // -5)
                train, test = table.iloc[order[:-held]], table.iloc[order[-held:]]
                scores.append(score(variant, train, test, target, many, log))
            nlpd, rmse, inside, seconds, width = np.mean(scores, 0)
            line = f"{nlpd:8.3f}{rmse:9.4g}{inside:9.3f}{seconds:7.1f}{width:8.0f}"
            print(f"{name:<10}{variant:<20}{line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("sales", "compare"))
    parser.add_argument("out", nargs="?", type=Path, default=Path("sales.csv"))
    arguments = parser.parse_args()
    if arguments.command == "compare":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(Path(os.environ["CERTGP_DATA"]))
        return
    sales = make_sales()
    sales["sold"] = sales["sold"].dt.strftime("%d.%m.%Y %H:%M")
    sales.to_csv(arguments.out, sep=";", decimal=",", index=False)


if __name__ == "__main__":
    main()
