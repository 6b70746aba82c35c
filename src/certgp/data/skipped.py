"""What reading left out where bad rows are skipped: how many rows of which file, and which files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from certgp.checks import check_choice
from certgp.errors import BadRowsWarning, warn_user

ON_BAD_ROWS = ("error", "skip")
_MOST_NAMED = 5


class Skipped:
    """Counts rows that hold no usable numbers, and names files that cannot be read or lack columns."""

    def __init__(self) -> None:
        self._rows: dict[Path | str, int] = {}
        self._files: dict[Path | str, str] = {}

    @property
    def n_rows(self) -> int:
        """Rows left out; those of files that cannot be read are not known."""
        return sum(self._rows.values())

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows left out by file."""
        return {str(path): count for path, count in self._rows.items()}

    @property
    def files(self) -> Mapping[str, str]:
        """Files of which all, or the rest, was left out, and why."""
        return {str(path): reason for path, reason in self._files.items()}

    def add_rows(self, path: Path | str, count: int) -> None:
        """Rows of a file."""
        if count:
            self._rows[path] = self._rows.get(path, 0) + count

    def add_file(self, path: Path | str, reason: str) -> None:
        """A file, or what is left of it."""
        self._files[path] = reason

    def add(self, other: Skipped) -> None:
        """What another one counted."""
        for path, count in other._rows.items():
            self.add_rows(path, count)
        self._files |= other._files

    def __bool__(self) -> bool:
        return bool(self._rows or self._files)

    def __str__(self) -> str:
        parts = [f"{count} in {path}" for path, count in self.rows.items()]
        more = f", and {len(parts) - _MOST_NAMED} more file(s)" if len(parts) > _MOST_NAMED else ""
        said = [f"{self.n_rows} bad row(s) were left out ({', '.join(parts[:_MOST_NAMED])}{more})"] if parts else []
        return "; ".join([*said, *(f"left out {path}: {reason}" for path, reason in self.files.items())])

    def warn(self) -> None:
        """Say what was left out, where anything was."""
        if self:
            warn_user(str(self), BadRowsWarning)


def skipping(on_bad_rows: str) -> Skipped | None:
    """A counter for what is left out with "skip"; None with "error", where the first bad row is refused."""
    return Skipped() if check_choice("on_bad_rows", on_bad_rows, ON_BAD_ROWS) == "skip" else None
