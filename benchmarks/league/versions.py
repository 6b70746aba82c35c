"""Which cells other code made than today's."""

from __future__ import annotations

from league.contestants import CONTESTANTS
from league.play import cell_version
from league.table import Key, Table


def outdated(table: Table) -> set[Key]:
    """Cells whose estimator, runner, settings or rows have changed since; ``run --renew`` plays them again."""
    return {key for key, cell in table.cells.items() if cell.get("version") != _now(*key)}


def _now(data: str, contestant: str, split: int) -> str | None:
    return cell_version(CONTESTANTS[contestant], data, split) if contestant in CONTESTANTS else None
