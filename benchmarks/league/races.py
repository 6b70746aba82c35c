"""What AutoGP's races cost, and what a proof costs, from the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certgp_paper.page.markdown import markdown_table
from league.standing import error_of
from league.table import Table

CHAMPION, PROOF, PEER = "AutoGP medium", "AutoGP proof", "LightGBM"
RACES = ("AutoGP low", CHAMPION, "AutoGP high", PROOF)


def race_costs(table: Table) -> str:
    """What it costs that several methods are tried, in CPU seconds, beside one fit and beside a peer's search."""
    cells = [(key, cell) for key, cell in table.cells.items() if key[1] in RACES]
    told = {key[:2] for key, cell in cells if winner_of(cell) is not None}
    silent = sum(winner_of(cell) is None for _, cell in cells)
    names = [name for name in RACES if any(name == contestant for _, contestant in told)]
    parts = ["## What a race costs"]
    if told:
        data = [name for name in table.data if any((name, race) in told for race in names)]
        rows = [[name, *(_race(table, name, race) for race in names), _low_and_peer(table, name)] for name in data]
        parts += [RACE_COSTS, markdown_table(["data", *(f"**{name}**" for name in names), f"low minus {PEER}"], rows)]
    elif not cells:
        parts.append("No race has been played yet.")
    if silent:
        parts.append(
            f"{silent} of {len(cells)} cells of races do not say what was tried: they have no result, or are of "
            "earlier code."
        )
    return "\n\n".join(parts)


def _race(table: Table, data: str, name: str) -> str:
    """Seconds in all and how many times those of the winner's own fit; the winners."""
    cells = [table.cells[data, name, split] for split in table.splits(data, name)]
    known = [(cell["cpu_seconds"], winner_of(cell)) for cell in cells if winner_of(cell) is not None]
    if not known:
        return ""
    total = sum(seconds for seconds, _ in known)
    times = total / max(sum(_kept_seconds(winner) for _, winner in known), 0.01)
    winners = ", ".join(dict.fromkeys(winner["method"] for _, winner in known))
    return f"{total / len(known):.0f} s, {times:.1f} times: {winners}"


def _kept_seconds(winner: Mapping[str, Any]) -> float:
    """Of the training on all rows, where the winner had one; earlier cells do not tell it."""
    return float(winner.get("cpu_seconds_again") or winner["cpu_seconds"])


def _low_and_peer(table: Table, data: str) -> str:
    splits = table.common_splits(data, [RACES[0], PEER])
    low, peer = (table.value(data, name, "cpu_seconds", splits) for name in (RACES[0], PEER))
    return "" if low is None or peer is None else f"{low - peer:+.0f} s"


def winner_of(cell: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The fit that a race kept, probes of the same method included; None where the cell does not say."""
    about = cell.get("about", {})
    return next((each for each in about.get("trials", ()) if each["method"] == about["method"]), None)


def proof_costs(table: Table) -> str | None:
    """NLPD of the race among models that can be proven beside the one for accuracy; None without cells of both."""
    rows = [row for data in table.data if (row := _proof(table, data))]
    heads = ["data", CHAMPION, PROOF, "price", "standard error", "splits"]
    return "\n\n".join(["## What a proof costs", PROOF_COSTS, markdown_table(heads, rows)]) if rows else None


def _proof(table: Table, data: str) -> Sequence[str]:
    splits = table.common_splits(data, [CHAMPION, PROOF])
    free, proven = (table.value(data, name, "nlpd", splits) for name in (CHAMPION, PROOF))
    if free is None or proven is None:
        return ()
    error, is_paired = error_of(table, data, CHAMPION, PROOF, "nlpd", splits)
    shown = f"{error:.3f}" if is_paired else f"{error:.3f}\\*"
    return [data, f"{free:.3f}", f"{proven:.3f}", f"{proven - free:.3f}", shown, str(len(splits))]


RACE_COSTS = f"""CPU seconds of fit and prediction, and how many times those of the fit that was kept (that on all
rows, where the winner was trained again): probes, other finalists, warped columns, noise and predictions are the rest.
Last column: the low effort beside the search of {PEER}, on the splits that both have."""

PROOF_COSTS = """NLPD of `prefer="proof"`, which races only models whose certificate can be given, less that of the
default, on the splits that both have. Errors as [above](#where-we-lose-and-to-whom)."""
