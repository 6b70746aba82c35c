"""Why a race ended as it did, in words."""

from __future__ import annotations

from collections.abc import Sequence

from certgp.training.full_batch.trials import Trial
from certgp.training.recipes.race.contest import Contest
from certgp.training.recipes.race.stacking import Stack
from certgp.training.recipes.race.standing import Standing, sort_by_score
from certgp.training.recipes.race.terms import Terms


def list_trials(contest: Contest, log_unit: float) -> tuple[Trial, ...]:
    """Of each method what it reached last: finalists first, each group by its score, in the units of y."""
    return tuple(
        Trial(
            each.name,
            each.fit.outcome.value,
            each.score + log_unit,
            each.total_seconds,
            len(each.positions),
            contest.seconds_again.get(each.name, 0.0),
        )
        for each in contest.standings
    )


def explain(contest: Contest, rivals: Sequence[Standing], winner: Standing, terms: Terms, log_unit: float) -> str:
    """What was tried, what it cost and why this one was chosen."""
    steps = [f"{len(each)} method(s) on {_rows_of(each)} rows" for each in (*contest.rounds, contest.finals) if each]
    seconds = sum(each.seconds for group in (*contest.rounds, contest.finals) for each in group)
    scores = ", ".join(_score(each, contest, log_unit) for each in contest.standings)
    return (
        f"{winner.name}: {_reason(rivals, winner)} on {contest.n_held_out:,} training rows held out "
        f"({scores}). Tried {', then '.join(steps)}: {seconds:.0f} CPU seconds, {winner.seconds:.0f} of them for the "
        f"fit that {_again(contest, winner)} {_proof(contest, winner, terms)}{_missing(contest)}"
    )


def explain_stack(found: Stack, winner: Standing, reason: str) -> str:
    """What a mixture gains over the winner alone, before the reason why that one won."""
    gained = f"{found.gain:.3g} in NLPD on held-out rows (standard error {found.standard_error:.2g})"
    if not found.pays:
        return f"{reason} A mixture of the finalists was left out: it gains {gained}."
    parts = ", ".join(f"{w:.2f} {each.name}" for w, each in zip(found.weights, found.standings, strict=True))
    return (
        f"{found.name}: the mixture of {parts} gains {gained} over {winner.name} alone; it cannot be certified. Of the "
        f"single models, {reason}"
    )


def _score(each: Standing, contest: Contest, log_unit: float) -> str:
    """The score of a method; beside finals, that of a probe says from how few rows it comes."""
    probe = "" if each.is_final or not contest.finals else f" after {len(each.positions):,} rows"
    return f"{each.name} {each.score + log_unit:.4g}{probe}"


def _rows_of(group: Sequence[Standing]) -> str:
    return f"{len(group[0].positions):,}"


def _reason(rivals: Sequence[Standing], winner: Standing) -> str:
    best = sort_by_score(rivals)[0]
    if best.name == winner.name:
        return "lowest mean negative log predictive density"
    return f"it can be certified, and {best.name} is not better by more than the standard error of the difference"


def _again(contest: Contest, winner: Standing) -> str:
    """What came of the trainings on all rows: of the winner, or of all members of a mixture."""
    if not contest.seconds_again:
        return "was kept."
    kept = [name for name in contest.seconds_again if name in contest.trained_again]
    rows, spent = f"on all {contest.n_rows:,} rows", f"{sum(contest.seconds_again.values()):.0f} CPU seconds"
    if not kept:
        return f"was kept. A second training {rows} was given up after {spent}."
    who = "It was" if kept == [winner.name] else f"{' and '.join(kept)} were"
    return f"won. {who} then trained again {rows}, in {spent} more."


def _missing(contest: Contest) -> str:
    """Methods that had no part in it, and why."""
    late = f" There was no time for {', '.join(contest.left_out)}." if contest.left_out else ""
    cut = [each.name for each in contest.standings if contest.is_cut_short and each.fit.outcome.stopped]
    late += f" Training of {', '.join(cut)} was cut short by the time limit." if cut else ""
    failed = "".join(f" {name} could not be trained: {error}." for name, error in contest.failed.items())
    return late + failed


def _proof(contest: Contest, winner: Standing, terms: Terms) -> str:
    """Can it be certified, and what does that cost?"""
    can = f"{winner.name} {'can' if winner.entry.can_be_certified else 'cannot'} be certified"
    for group in (contest.finals, *reversed(contest.rounds)):
        provable = [each.score for each in group if each.entry.can_be_certified]
        others = [each.score for each in group if not each.entry.can_be_certified]
        if provable and others:
            price = max(0.0, min(provable) - min(others))
            where = f"by {_rows_of(group)} rows"
            if terms.needs_proof:
                return f"{can}; the price of proof is {price:.3g} in NLPD, {where}."
            return f"{can}" + (
                "." if winner.entry.can_be_certified else f"; prefer='proof' would cost {price:.3g} in NLPD, {where}."
            )
    return f"{can}."
