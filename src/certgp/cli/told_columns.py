"""What was done to the columns of a table, for people and for machines."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from certgp.cli.output import table

if TYPE_CHECKING:
    from certgp.cli.training_data import TrainingRows
    from certgp.tabular.columns import LeftOut
    from certgp.tabular.encoding import Encoding


def columns_text(encoding: Encoding | None, left_out: Sequence[LeftOut] = ()) -> list[str]:
    """A table of columns and what was done to each; of a table of numbers those that are not used, where there are
    any.
    """
    if encoding is None:
        lines = [[each.name, f"left out: {each.reason} (--keep {shlex.quote(each.name)} uses it)"] for each in left_out]
        return [table(["column", "what was done"], lines, texts=(0, 1))] if lines else []
    lines = [list(line) for line in encoding.lines()]
    if encoding.log_target:
        targets = ", ".join(encoding.targets)
        lines.append([targets, "the target: its logarithm is learned; scores and predictions are in its own units"])
    return [table(["column", "what was done"], lines, texts=(0, 1))]


def columns_fields(encoding: Encoding | None, left_out: Sequence[LeftOut] = ()) -> dict[str, object]:
    """The same for machines."""
    if encoding is None:
        return {"encoded": None, "left_out": {each.name: each.reason for each in left_out}}
    return {
        "left_out": {each.name: each.reason for each in encoding.left_out},
        "encoded": {
            "columns": {
                column.name: {"done": column.words(), "numbers": list(column.outputs)} for column in encoding.columns
            },
            "log_target": encoding.log_target,
        },
    }


def hold_out_notes(rows: TrainingRows) -> list[str]:
    """Which rows were held out, where they are not random ones, and on which scale scores are."""
    arguments, found = rows.data.arguments, []
    if rows.test is not None and arguments.group is not None:
        found.append(f"Held out are whole groups of {arguments.group!r}, of which the model has seen no row.")
    if rows.test is not None and arguments.time_split is not None:
        found.append(f"Held out are the latest rows by {arguments.time_split!r}: the scores are about the future.")
    if rows.test is not None and arguments.log_target:
        found.append(
            f"All models learn log({rows.data.target}); RMSE is that of means, and NLPD a density, in the units of "
            f"{rows.data.target}."
        )
    return found
