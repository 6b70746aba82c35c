"""Several outputs on the command line: each is a model of its own, with its own card and its own certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from certgp.cli.card import card_fields, card_text, make_card
from certgp.cli.output import aligned
from certgp.cli.proof import Proof, certify_command, prove, report_command
from certgp.cli.told_columns import columns_fields, columns_text, hold_out_notes
from certgp.cli.told_fit import explained_proof
from certgp.cli.words import in_cli_words

if TYPE_CHECKING:
    import argparse

    from certgp.cli.training_data import TrainingRows
    from certgp.data import Rows
    from certgp.estimators import GPRegressor


@dataclass(frozen=True, eq=False)
class FittedOutput:
    """One output after a fit."""

    name: str
    model: GPRegressor
    rows: TrainingRows
    proof: Proof


def split_outputs(model: GPRegressor, rows: TrainingRows, seconds: float) -> list[FittedOutput]:
    """The outputs of a fit that took so many CPU seconds, with their rows and proofs."""
    from certgp.estimators.outputs import name_outputs

    assert model.outputs_ is not None
    names = name_outputs(model)
    return [
        FittedOutput(name, part, _own_rows(rows, j, name), prove(part, seconds))
        for j, (name, part) in enumerate(zip(names, model.outputs_, strict=True))
    ]


def describe_outputs(
    model: GPRegressor, rows: TrainingRows, arguments: argparse.Namespace, seconds: float
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """What was fitted, for machines and as names and values for people."""
    fields: dict[str, object] = {
        "command": "fit",
        "model": str(arguments.out),
        "method": arguments.method,
        "seconds": seconds,
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": in_cli_words(model.stop_reason_),
        "interrupted": False,
        "n_rows": rows.train.n_rows,
        "columns": list(rows.data.inputs),
    } | columns_fields(rows.encoding)
    facts = [
        ("model", f"{type(model).__name__}, {len(rows.data.targets)} outputs: {rows.data.target}"),
        ("data", f"{rows.train.n_rows:,} rows, {len(rows.data.inputs)} input column(s)"),
        ("stopped", f"after {model.n_iter_} iterations and {seconds:.1f} s: {in_cli_words(model.stop_reason_)}"),
    ]
    return fields, facts


def tell_outputs(
    outputs: Sequence[FittedOutput],
    arguments: argparse.Namespace,
    fields: dict[str, object],
    facts: list[tuple[str, str]],
) -> tuple[dict[str, object], str]:
    """The outcome of a fit for machines and for people, from what ``describe_outputs`` says of it."""
    first = outputs[0]
    encoding = (
        replace(first.rows.encoding, targets=tuple(each.name for each in outputs)) if first.rows.encoding else None
    )
    found = {each.name: _tell(each, arguments.seed) for each in outputs}
    parts = [f"{name}\n{'=' * len(name)}\n{text}" for name, (_, text) in found.items()]
    steps = [
        ("to certify", certify_command(arguments, [each.model for each in outputs])),
        ("to report", report_command(arguments, has_test=first.rows.test is not None)),
        ("saved", str(arguments.out)),
    ]
    told = fields | {"outputs": {name: own for name, (own, _) in found.items()}}
    return told, "\n\n".join([aligned(facts), *columns_text(encoding), *parts, aligned(steps)])


def _tell(output: FittedOutput, seed: int) -> tuple[dict[str, object], str]:
    from certgp.estimators.held_out import modelled_target, scatter_words

    model, rows = output.model, output.rows
    card = None if rows.test is None else make_card(model, rows, seed)
    proven, told = explained_proof(model, output.proof, card)
    fields: dict[str, object] = {
        "learned": modelled_target(model),
        "kernel": model.kernel_.name,
        "noise_variance": float(model.noise_variance_),
        "log_marginal_likelihood": float(model.log_marginal_likelihood_),
    }
    fields |= proven | card_fields(card)
    facts = [("model", f"{model.kernel_.name} kernel, noise {scatter_words(model, 5)} (standard deviation)")]
    facts += told if output.proof.obstacle is None else [("certified", f"no: {output.proof.obstacle}")]
    return fields, "\n\n".join([aligned(facts), card_text(card, hold_out_notes(rows))])


def _own_rows(rows: TrainingRows, j: int, name: str) -> TrainingRows:
    """The rows of one output."""
    encoding = None if rows.encoding is None else replace(rows.encoding, targets=(name,))
    test = None if rows.test is None else _with_target(rows.test, j)
    return replace(
        rows, data=replace(rows.data, targets=(name,)), train=_with_target(rows.train, j), test=test, encoding=encoding
    )


def _with_target(rows: Rows, j: int) -> Rows:
    from certgp.data.outputs import TargetRows
    from certgp.data.rows import read_target

    return TargetRows(rows, read_target(rows)[:, j])
