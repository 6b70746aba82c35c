"""What was done to the columns of a table, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certgp.cli.output import table

if TYPE_CHECKING:
    from certgp.cli.training_data import TrainingRows
    from certgp.tabular.encoding import Encoding


def columns_text(encoding: Encoding | None) -> list[str]:
    """A table of columns and what was done to each; nothing where all were numbers."""
    if encoding is None:
        return []
    lines = [list(line) for line in encoding.lines()]
    if encoding.log_target:
        targets = ", ".join(encoding.targets)
        lines.append([targets, "the target: its logarithm is learned; scores and predictions are in its own units"])
    return [table(["column", "what was done"], lines, texts=(0, 1))]


def columns_fields(encoding: Encoding | None) -> dict[str, object]:
    """The same for machines."""
    if encoding is None:
        return {"encoded": None}
    return {
        "encoded": {
            "columns": {
                column.name: {"done": column.words(), "numbers": list(column.outputs)} for column in encoding.columns
            },
            "left_out": {each.name: each.reason for each in encoding.left_out},
            "log_target": encoding.log_target,
        }
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
