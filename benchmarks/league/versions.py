"""Which cells other code made than today's, and which of these count."""

from __future__ import annotations

from league.contestants import CONTESTANTS, OURS
from league.play import cell_version
from league.table import Key, Table


def outdated(table: Table) -> set[Key]:
    """Cells whose estimator, runner, settings or rows have changed since; ``run --renew`` plays them again."""
    return {key for key, cell in table.cells.items() if cell.get("version") != _now(*key)}


def _now(data: str, contestant: str, split: int) -> str | None:
    return cell_version(CONTESTANTS[contestant], data, split) if contestant in CONTESTANTS else None


def counted(table: Table, old: set[Key]) -> Table:
    """What is ranked and compared: without outdated cells of peers, which earlier rules may have held back. Those of
    earlier versions of ours stay, and are marked wherever they are seen.
    """
    ours = {each.name for each in OURS}
    return Table({key: cell for key, cell in table.cells.items() if key[1] in ours or key not in old})


def shown(table: Table, old: set[Key]) -> Table:
    """What is in the tables: also outdated cells of peers, on data sets where they have no others."""
    of_today = counted(table, old).cells
    known = {(data, name) for data, name, _ in of_today}
    return Table({key: cell for key, cell in table.cells.items() if key in of_today or key[:2] not in known})
