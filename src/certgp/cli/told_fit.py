"""What 'certgp fit' tells of one output, for machines and for people."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from certgp.cli.card import card_fields, card_text
from certgp.cli.output import aligned, skipped_fields
from certgp.cli.proof import Proof, certify_command, report_command
from certgp.cli.told_columns import columns_fields, columns_text, hold_out_notes
from certgp.cli.words import in_cli_words

if TYPE_CHECKING:
    from certgp.cli.training_data import TrainingRows
    from certgp.estimators import GPRegressor
    from certgp.report import Card


def tell_fit(
    model: GPRegressor,
    rows: TrainingRows,
    proof: Proof,
    card: Card | None,
    fields: dict[str, object],
    facts: list[tuple[str, str]],
) -> tuple[dict[str, object], str]:
    """The outcome of a fit, from ``model_fields`` and ``model_facts``, its proof and its scores on held-out rows."""
    arguments = rows.data.arguments
    own, told = explained_proof(model, proof, card)
    fields = fields | own | {"skipped": skipped_fields(rows.data.files)}
    fields |= card_fields(card) | columns_fields(rows.encoding, rows.left_out)
    certify = f"impossible: {proof.obstacle}" if proof.obstacle else certify_command(arguments, [model])
    steps = [
        ("to certify", certify),
        ("to report", report_command(arguments, has_test=card is not None)),
        ("saved", str(arguments.out)),
    ]
    shown = [aligned(facts), *columns_text(rows.encoding, rows.left_out), card_text(card, hold_out_notes(rows))]
    return fields, "\n\n".join([*shown, aligned([*told, *steps])])


def explained_proof(
    model: GPRegressor, proof: Proof, card: Card | None
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """What is proven of a model and what it means for a decision, for machines and as names and values for people."""
    certificate = proof.certificate
    fields: dict[str, object] = {
        "certificate": None if certificate is None else certificate.to_dict(),
        "not_certifiable": proof.obstacle,
        "proof_put_off": proof.put_off,
    }
    if certificate is None:
        return fields, [] if proof.put_off is None else [("certified", f"not yet: {proof.put_off}")]
    explained = model.explain(certificate, coverage=None if card is None else card.model.coverage(0.95))
    meaning = [in_cli_words(each) for each in explained.meaning]
    told = [("certified", " ".join(meaning)), ("not said", " ".join(explained.limits))]
    return fields | {"meaning": meaning}, told


def model_fields(arguments: argparse.Namespace, model: GPRegressor, seconds: float) -> dict[str, object]:
    """The fitted model for machines."""
    from certgp.estimators.held_out import modelled_target

    return {
        "command": "fit",
        "model": str(arguments.out),
        "method": arguments.method,
        "choice": model.choice_,
        "trials": [asdict(trial) for trial in model.trials_],
        "n_rows": model.n_rows_,  # rows of weight zero are not among them
        "learned": modelled_target(model),
        "kernel": model.kernel_.name,
        "rank": int(model.rank_),
        "length_scale": model.kernel_.describe().get("length_scale"),
        "signal_variance": float(model.kernel_.signal_variance),
        "noise_variance": float(model.noise_variance_),
        "warp": None if model.warp_ is None else model.warp_.tolist(),
        "noise_gain": None if model.noise_gain_ is None else asdict(model.noise_gain_),
        "log_marginal_likelihood": float(model.log_marginal_likelihood_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": in_cli_words(model.stop_reason_),
        "interrupted": False,
        "stages": [asdict(stage) for stage in model.history_.stages],
        "seconds": seconds,
    }


def model_facts(arguments: argparse.Namespace, model: GPRegressor, seconds: float) -> list[tuple[str, str]]:
    """The same for people, as names and values."""
    from certgp.estimators.held_out import scatter_words

    n_rows = model.n_rows_
    per_row = model.log_marginal_likelihood_ / n_rows
    return [
        ("model", f"{type(model).__name__}, {model.kernel_.name} kernel, {_size(model)}"),
        *([("chosen", in_cli_words(model.choice_))] if model.choice_ is not None else []),
        *([("inputs", "warped, each skewed column by a power")] if model.warp_ is not None else []),
        *_left_out(arguments),
        ("data", f"{n_rows:,} rows, {_inputs(model)}"),
        ("noise", f"{scatter_words(model, 5)} (standard deviation){_noise_gain(model)}"),
        ("log evidence", f"{model.log_marginal_likelihood_:.2f} ({per_row:.4f} per row)"),
        *_stages(model),
        ("stopped", f"after {model.n_iter_} iterations and {seconds:.1f} s: {in_cli_words(model.stop_reason_)}"),
    ]


def _noise_gain(model: GPRegressor) -> str:
    found = model.noise_gain_
    if found is None or not found.accepted:
        return ""
    return f"; it depends on the input, which gains {found.gain:.3g} in NLPD on rows not fitted to"


def _left_out(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    if arguments.method != "auto" or arguments.include_training_data:
        return []
    words = (
        "exact and local models, often the best: their files hold the training rows; --include-training-data allows it"
    )
    return [("left out", words)]


def _size(model: GPRegressor) -> str:
    return "all rows kept" if model.needs_training_data else f"rank {model.rank_}"


def _inputs(model: GPRegressor) -> str:
    if model.encoding_ is None:
        return f"{model.n_features_in_} input column(s)"
    return f"{len(model.encoding_.columns)} input column(s) as {model.n_features_in_} numbers"


def _stages(model: GPRegressor) -> list[tuple[str, str]]:
    """How many rows each stage saw, where some saw fewer than others."""
    seen = [f"{stage.rows:,} ({stage.iterations} iterations)" for stage in model.history_.stages]
    return [("rows seen", ", ".join(seen))] if len(seen) > 1 else []
