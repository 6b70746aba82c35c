"""The race: any trainer takes part, repeated rows stay together, time limits hold, ties go to proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from certgp.data import Chunk, ChunkSource, Standardiser
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.gp import ExactProcess, MixtureProcess
from certgp.kernels import Gaussian
from certgp.training import OptimisationResult
from certgp.training.evaluation_log import FitCheckpoint
from certgp.training.history import History, Iteration
from certgp.training.recipes import Entry, Fit, Race, Settings, Terms, Trainer
from certgp.training.recipes.race.clock import Clock
from certgp.training.recipes.race.contest import Contest
from certgp.training.recipes.race.rows import split_rows
from certgp.training.recipes.race.standing import Standing, choose_winner, keep_better_half


def source(n: int = 200, copies: int = 1) -> ChunkSource:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(np.repeat(rng.standard_normal((n // copies, 2)), copies, axis=0))
    return ChunkSource(Chunk(X, torch.sin(2.0 * X[:, 0]) + 0.1 * torch.from_numpy(rng.standard_normal(len(X)))))


def settings(**more) -> Settings:
    return Settings(
        standardiser=Standardiser.identity(2), new_generator=lambda: np.random.default_rng(0), noise="constant", **more
    )


class Waiting:
    """Time that passes where somebody waits and nowhere else, so that no machine is too slow for these tests."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> float:
        return self.seconds


TIME = Waiting()


@pytest.fixture(autouse=True)
def time_of_waiting(monkeypatch):
    """Races measure waiting, both by the clock and as work."""
    monkeypatch.setattr("certgp.training.recipes.race.race.Clock", partial(Clock, now=TIME.now, worked=TIME.now))
    monkeypatch.setattr("certgp.training.recipes.race.contest.time", SimpleNamespace(process_time=TIME.now))


class FakeTrainer(Trainer):
    """An exact GP of a given length-scale, whose training is nothing but waiting."""

    def __init__(self, own: Settings, length_scale: float, pause: float) -> None:
        super().__init__(own)
        self.length_scale, self.pause = length_scale, pause

    def fit_at(self, rows, rank: int) -> Fit:
        stopped, records = False, []
        for number in range(self.settings.max_iter):
            TIME.wait(self.pause)
            records.append(Iteration(number + 1, 0.0, 0.0, 0.0, rank))
            if any(callback(records[-1]) for callback in self.settings.observers):
                stopped = True
                break
        chunk = rows.take(slice(None))
        process = ExactProcess(Gaussian(self.length_scale), chunk.X, chunk.y, 0.01)
        outcome = replace(
            OptimisationResult.none(), stopped=stopped, n_iter=len(records), history=History(tuple(records))
        )
        return Fit(process, outcome)


@dataclass(frozen=True)
class Fake:
    """Builds such trainers."""

    length_scale: float = 1.0
    pause: float = 0.0

    def __call__(self, own: Settings) -> FakeTrainer:
        return FakeTrainer(own, self.length_scale, self.pause)


@dataclass(frozen=True)
class Estimated:
    """The same with an estimate of so many seconds for a fit."""

    fake: Fake
    seconds: float

    def __call__(self, own: Settings) -> FakeTrainer:
        trainer = self.fake(own)
        trainer.estimate_seconds = lambda *_: self.seconds
        return trainer


def entry(name: str, build: Fake | Estimated, proof: bool = True, **more) -> Entry:
    return Entry(name, build, settings(**more), 1, proof, probe_iterations=3)


def test_any_trainer_can_take_part_and_the_best_wins_with_all_rows():
    entries = [entry("short", Fake(0.01)), entry("right", Fake(1.0)), entry("long", Fake(100.0))]
    fit = Race(entries, settings(), Terms()).fit(source(), 1)
    assert fit.method == "right"
    assert fit.process.n_rows == 200
    assert {trial.name for trial in fit.trials} == {"short", "right", "long"}
    probes = [trial for trial in fit.trials if trial.rows < 160]
    assert probes
    assert all(f"{trial.name} {trial.score:.4g} after {trial.rows} rows" in fit.choice for trial in probes)


@dataclass(frozen=True)
class Watched:
    """Builds trainers that note how many rows they were given, in ``seen``."""

    seen: list[int]

    def __call__(self, own: Settings) -> FakeTrainer:
        trainer = FakeTrainer(own, 1.0, 0.01)
        fit_at = trainer.fit_at
        trainer.fit_at = lambda rows, rank: self.seen.append(rows.n_rows) or fit_at(rows, rank)
        return trainer


@pytest.mark.parametrize(("rows", "last"), [(200, 200), (2_400, 1_920)])
def test_where_rows_are_few_the_winner_is_trained_on_all_of_them(rows, last):
    seen: list[int] = []
    entries = [entry("a", Watched(seen), max_iter=5), entry("far", Fake(100.0), max_iter=5)]
    fit = Race(entries, settings(), Terms()).fit(source(rows), 1)
    assert (seen[-1], fit.process.n_rows) == (last, rows)
    assert ("trained again on all" in fit.choice) == (last == rows)
    assert [each.seconds_again > 0.0 for each in fit.trials] == [last == rows, False]


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_a_method_whose_probe_is_ahead_of_the_finals_has_one_though_it_is_dearer(effort):
    cheap = replace(entry("cheap", Estimated(Fake(0.75), 0.1)), is_seeded=True)
    fit = Race([cheap, entry("dear", Estimated(Fake(1.0), 2.0))], settings(), Terms(effort)).fit(source(), 1)
    assert [(each.name, each.rows) for each in fit.trials] == [("dear", 160), ("cheap", 160)]
    assert 0.0 < fit.trials[1].score - fit.trials[0].score < 0.05


def test_a_training_cut_short_by_the_user_leaves_the_final():
    stop = [False]
    entries = [entry("a", Fake(1.0), max_iter=5), entry("far", Fake(100.0), max_iter=5)]

    def callback(record: Iteration) -> bool:
        return stop[0]

    class Late(Contest):
        def run_finals(self) -> None:
            super().run_finals()
            stop[0] = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("certgp.training.recipes.race.race.Contest", Late)
        fit = Race(entries, settings(callbacks=[callback]), Terms()).fit(source(), 1)
    assert fit.process.n_rows == 200
    assert "trained again" not in fit.choice


def test_the_time_is_kept_though_a_method_is_slow():
    slow = [entry(name, Fake(length, 0.02), max_iter=10_000) for name, length in (("a", 1.0), ("b", 0.5), ("c", 2.0))]
    began = TIME.now()
    fit = Race([replace(each, probe_iterations=10_000) for each in slow], settings(), Terms(max_seconds=2.0)).fit(
        source(), 1
    )
    assert TIME.now() - began < 1.2 * 2.0
    assert fit.outcome.stopped
    assert fit.outcome.reason == "max_seconds is used up; a longer limit gives a better fit"
    assert fit.process.n_rows == 200


def test_the_clock_passes_records_on_and_limits_single_fits():
    now, seen = [0.0], []
    record = Iteration(1, 0.0, 0.0, 0.0, 1)
    clock = Clock([seen.append], 10.0, lambda: now[0])
    half = clock.limit(0.5)
    assert not clock(record)
    assert not half(record)
    now[0] = 6.0
    assert not clock(record)
    assert half(record)
    assert (clock.stopped, clock.left, len(seen)) == (False, 4.0, 2)
    assert not clock.limit(0.5)(record)
    user = Clock([lambda _: True])
    assert user(record)
    assert (user.stopped, user.limit(), user.has_limit) == (True, None, False)


def test_where_one_row_is_a_quarter_of_the_table_so_it_is_among_the_held_out_ones():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(np.concatenate([np.zeros((500, 2)), rng.standard_normal((1_500, 2))]))
    rows = ChunkSource(Chunk(X, X.sum(1)))
    learned, held_out = split_rows(rows, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(np.r_[learned, held_out]), np.arange(2_000))
    assert 0.2 < np.mean(held_out < 500) < 0.3


@pytest.mark.parametrize(("n", "copies"), [(100, 1), (100, 10), (90, 30), (60, 2)])
def test_half_of_the_repeated_rows_held_out_have_no_copy_that_was_learned(n, copies):
    rows = source(n, copies)
    learned, held_out = split_rows(rows, np.random.default_rng(1))
    assert sorted([*learned, *held_out]) == list(range(n))
    X = rows.take(slice(None)).X.numpy()
    known = {tuple(row) for row in X[learned]}
    with_copy = sum(tuple(X[at]) in known for at in held_out)
    most = 0 if copies == 1 else min(n // copies, n // 5 // 2)  # one of a group
    assert most - (copies if copies > 5 else 1) <= with_copy <= most
    assert 0 < len(held_out) - with_copy <= max(copies, n // 5)
    assert len(learned) > 0


def standing(name: str, losses, proof: bool) -> Standing:
    return Standing(entry(name, Fake(), proof), None, np.arange(5), losses, 0.0)


def test_a_method_that_can_be_certified_wins_ties_and_only_ties():
    losses = np.random.default_rng(0).standard_normal(2_000)
    noise = np.random.default_rng(1).standard_normal(2_000)
    noise -= noise.mean()  # standard error of the difference: 0.1 / sqrt(2000) = .0022
    learned, sparse = standing("learned", losses, False), standing("sparse", losses + 0.001 + 0.1 * noise, True)
    assert choose_winner([learned, sparse]).name == "sparse"
    assert choose_winner([sparse, learned]).name == "sparse"
    assert choose_winner([learned, standing("sparse", losses + 0.004 + 0.1 * noise, True)]).name == "learned"
    assert choose_winner([learned, standing("deep", losses + 0.001 + 0.1 * noise, False)]).name == "learned"
    noisy = standing("sparse", losses + 0.02 + 2.0 * noise, True)  # within its standard error, but too dear
    assert choose_winner([learned, noisy]).name == "learned"


def test_the_better_half_goes_on_with_those_that_cannot_be_told_from_the_best():
    losses = np.random.default_rng(0).standard_normal(100)
    field = [standing(str(i), losses + i, True) for i in range(4)]
    assert [each.name for each in keep_better_half(field)] == ["0", "1"]
    tied = standing("tied", losses[::-1].copy() + 0.01, True)
    assert {each.name for each in keep_better_half([*field[:2], tied])} == {"0", "tied"}


def test_more_rows_are_expected_to_gain_more_where_a_model_keeps_them():
    before = Standing(entry("a", Fake()), None, np.arange(100), np.full(5, 1.0), 0.0)
    after = Standing(entry("a", Fake()), None, np.arange(400), np.full(5, 0.6), 0.0, before=before)
    assert after.predicted_score(1_600) == pytest.approx(0.4)
    keeping = replace(after, entry=replace(after.entry, keeps_gaining=True))
    assert keeping.predicted_score(1_600) == pytest.approx(0.2)
    assert after.predicted_score(10_000) == after.predicted_score(1_600)
    assert before.predicted_score(1_600) == 1.0


def test_a_mixture_with_weights_is_between_its_members():
    rows = source(40).take(slice(None))
    members = [ExactProcess(Gaussian(length), rows.X, rows.y, 0.1) for length in (0.5, 2.0)]
    mixed = MixtureProcess(members, np.array([0.25, 0.75]))
    means = [member.moments(rows.X)[0] for member in members]
    torch.testing.assert_close(mixed.moments(rows.X)[0], 0.25 * means[0] + 0.75 * means[1])
    torch.testing.assert_close(mixed.covariance(rows.X).diagonal(), mixed.moments(rows.X)[1])
    draws = mixed.sample(rows.X[:1], 4_000, torch.Generator().manual_seed(0))
    assert float(draws.mean()) == pytest.approx(float(mixed.moments(rows.X[:1])[0][0]), abs=0.05)


def weak_rows(n: int = 60) -> ChunkSource:
    """Few rows of little signal, which folds would be asked about."""
    rng = np.random.default_rng(1)
    X = torch.from_numpy(rng.standard_normal((n, 2)))
    return ChunkSource(Chunk(X, torch.sin(2.0 * X[:, 0]) + torch.from_numpy(rng.standard_normal(n))))


class Counts:
    """A callback that counts, and raises at a given call."""

    def __init__(self, raises_at: int = 0) -> None:
        self.calls, self.raises_at = 0, raises_at

    def __call__(self, record) -> bool:
        self.calls += 1
        if self.calls == self.raises_at:
            raise KeyboardInterrupt
        return False


def test_folds_end_with_the_time_limit(monkeypatch):
    """Whether rows left out confirm the winner is asked in what is left of the time, not after it."""
    monkeypatch.setattr("certgp.training.recipes.trainer.is_doubtful", lambda *_: True)
    monkeypatch.setattr("certgp.training.recipes.race.contest.prefers_constant", lambda *_: False)
    slow = [entry(name, Fake(length, 0.01), max_iter=60) for name, length in (("a", 1.0), ("b", 0.7))]
    fit = Race(slow, settings(), Terms(max_seconds=3.0)).fit(weak_rows(), 1)
    assert "to keep to max_seconds, rows left out were to confirm the fit in" in fit.outcome.reason
    assert fit.process.n_rows == 60


def test_an_interrupt_ends_the_race_without_folds(monkeypatch):
    monkeypatch.setattr("certgp.training.recipes.trainer.is_doubtful", lambda *_: True)
    monkeypatch.setattr("certgp.training.recipes.race.contest.prefers_constant", lambda *_: False)
    trained = []
    monkeypatch.setattr(
        FakeTrainer, "_train_quietly", lambda self, rows, rank: trained.append(rows) or self.fit_at(rows, rank)
    )
    user = Counts(raises_at=9)
    with pytest.warns(CertgpWarning, match="interrupted"):
        fit = Race([entry("a", Fake(1.0)), entry("b", Fake(0.7))], settings(callbacks=[user]), Terms()).fit(
            weak_rows(), 1
        )
    assert (fit.interrupted, trained, user.calls) == (True, [], 9)


def test_with_a_checkpoint_a_time_limit_puts_a_race_off(tmp_path):
    """Each call goes on where the one before had to end, until nothing is left to do."""
    path = tmp_path / "race.checkpoint"
    seeds = [entry(f"s{k}", Fake(0.5 + k, 0.02), max_iter=8, confirm=False) for k in range(4)]
    own = settings(checkpoint=FitCheckpoint(path, "a race", False))
    seen = []
    for _ in range(8):
        fit = Race([replace(each, is_seeded=True) for each in seeds], own, Terms(max_seconds=0.4)).fit(source(100), 1)
        seen.append(sum(trial.rows == 80 for trial in fit.trials))
        if not path.exists():
            break
        assert "There was no time for" in fit.choice or "cut short by the time limit" in fit.choice
    assert seen[-1] == 4
    assert len(seen) > 1
    assert not list(tmp_path.iterdir())


def test_what_the_time_limit_leaves_out_is_told_and_the_checkpoint_stays(tmp_path):
    """With a longer limit the same call goes on."""
    path = tmp_path / "race.checkpoint"
    own = settings(checkpoint=FitCheckpoint(path, "a race", False))
    quick = entry("quick", Estimated(Fake(1.0, 1e-3), 1e-3), confirm=False)
    slow = entry("slow", Estimated(Fake(0.99), 20.0), confirm=False)  # thought to take 20,000 times as long
    for _ in range(2):
        fit = Race([quick, slow], own, Terms(max_seconds=2.0, effort="high")).fit(source(100), 1)
        assert fit.method == "quick"
        assert fit.outcome.converged
        assert "a longer limit may give a better fit" in fit.outcome.reason
        assert "There was no time for slow" in fit.choice
        assert path.exists()
    Race([quick, slow], own, Terms(effort="high")).fit(source(100), 1)
    assert not list(tmp_path.iterdir())


def test_folds_of_a_single_method_that_are_cut_short_leave_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("certgp.training.recipes.trainer.is_doubtful", lambda *_: True)
    own = settings(checkpoint=FitCheckpoint(tmp_path / "c", "a race", False))
    entries = [entry("a", Fake(1.0, 0.01), max_iter=30), entry("b", Fake(0.7))]
    fit = Race(entries, own, Terms(max_seconds=1.0)).fit(weak_rows(40), 1)
    assert not fit.outcome.stopped
    assert "rows left out were to confirm the fit in" in fit.outcome.reason
    assert not list(tmp_path.iterdir())


def test_an_interrupt_after_the_finals_keeps_the_race(monkeypatch):
    complete, calls = Contest.complete, []

    def interrupted_once(self, standing):
        calls.append(standing.name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return complete(self, standing)

    monkeypatch.setattr(Contest, "complete", interrupted_once)
    with pytest.warns(CertgpWarning, match="interrupted"):
        fit = Race([entry("a", Fake(1.0)), entry("b", Fake(0.01))], settings(), Terms()).fit(source(), 1)
    assert (fit.method, fit.process.n_rows, fit.outcome.reason) == ("a", 200, "the fit was interrupted")
    assert {trial.name for trial in fit.trials} == {"a", "b"}


def test_what_is_kept_of_a_lost_race_may_win_it(monkeypatch):
    def interrupted(self, standing):
        raise KeyboardInterrupt

    monkeypatch.setattr(Contest, "complete", interrupted)
    race = Race([entry("best", Fake(1.0), proof=False), entry("proven", Fake(0.3))], settings(), Terms(prefer="proof"))
    with pytest.raises(KeyboardInterrupt):
        race.fit(source(100), 1)
    assert race.process_so_far().kernel.values["length_scale"] == 0.3


def test_where_nobody_may_win_the_reason_is_told():
    unproven = [entry("a", Fake(1.0), proof=False), entry("b", Fake(0.5), proof=False)]
    late = replace(entry("c", Fake(0.5)), most_rows=20)
    with pytest.raises(InvalidInputError, match="prefer='proof': of the candidates only a, b suit"):
        Race([*unproven, late], settings(), Terms(prefer="proof")).fit(source(100), 1)
    stopped = settings(callbacks=[lambda _: True])
    with pytest.raises(InvalidInputError, match="stopped before any method that can be certified"):
        Race([unproven[0], entry("c", Fake(0.5))], stopped, Terms(prefer="proof")).fit(source(100), 1)


def test_a_method_without_proof_is_no_single_choice_where_proof_is_asked_for():
    entries = [entry("quick", Fake(1.0), proof=False), entry("proven", Fake(0.5))]
    few = source(30)
    assert Race(entries, settings(), Terms()).fit(few, 1).method == "quick"
    assert Race(entries, settings(), Terms(prefer="proof")).fit(few, 1).method == "proven"
    late = [entries[0], replace(entries[1], most_rows=20)]
    with pytest.raises(InvalidInputError, match="prefer='proof': of the candidates only quick"):
        Race(late, settings(), Terms(prefer="proof")).fit(few, 1)


@pytest.mark.parametrize("inputs", [1, 2])
def test_rows_of_hardly_any_different_inputs_are_held_out_at_random(inputs):
    X = torch.zeros(80, 2, dtype=torch.float64)
    X[:40, 0] = float(inputs - 1)
    learned, held_out = split_rows(ChunkSource(Chunk(X, torch.arange(80.0).double())), np.random.default_rng(0))
    assert (len(learned), len(held_out)) == (64, 16)
    assert len(np.unique(X[learned, 0])) == inputs


def test_a_method_that_fails_is_named():
    class Broken(FakeTrainer):
        def fit_at(self, rows, rank: int) -> Fit:
            raise InvalidInputError("it cannot be")

    entries = [
        entry("good", Fake(1.0)),
        entry("other", Fake(0.5)),
        Entry("bad", lambda own: Broken(own, 1.0, 0.0), settings(), 1, True, 3),
    ]
    fit = Race(entries, settings(), Terms()).fit(source(), 1)
    assert fit.choice.endswith("bad could not be trained: it cannot be.")
