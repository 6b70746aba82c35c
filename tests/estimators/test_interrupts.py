"""Ctrl-C in Python: the best model so far and a warning; time limits."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from certgp import AutoGP, CertgpWarning, DeepFourierGP, ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.errors import WeakSignalWarning
from certgp.estimators.fitting import Fitting
from certgp.gp.student import StudentNoise
from certgp.training import StopRule
from certgp.training.noise import leave_one_out
from certgp.training.recipes import Trainer
from fitted import model_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (120, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(120)
MODELS = [
    (ExactGP, {}),
    (LocalGP, {"kernel": "matern32", "metric": "ard"}),
    (MercerGP, {"rank": 10}),
    (FourierGP, {"rank": 10}),
    (SparseGP, {"rank": 10}),
    (DeepFourierGP, {"rank": 10, "hidden": (8,)}),
    (AutoGP, {"rank": 10, "candidates": ("mercer", "sparse"), "effort": "low"}),
]


@pytest.mark.parametrize(("cls", "options"), MODELS, ids=lambda given: getattr(given, "__name__", ""))
def test_an_interrupted_fit_returns_the_best_model_so_far(cls, options):
    seen = []

    def interrupt(record):
        seen.append(record.value)
        if len(seen) == 4:
            raise KeyboardInterrupt

    model = cls(random_state=0, noise="constant", callbacks=[interrupt], **options)
    with pytest.warns(CertgpWarning, match="the fit was interrupted; this is the best model so far"):
        model.fit(X, Y)
    assert model.stop_reason_ == "the fit was interrupted"
    assert not model.converged_
    assert len(seen) == 4  # nothing was trained any further
    assert np.isfinite(model.predict(X[:5], return_std=True)).all()


def test_an_interrupt_amid_a_line_search_keeps_the_last_accepted_point():
    reached = []
    model = MercerGP(10, projection=None, random_state=0, noise="constant")
    model.set_params(callbacks=[lambda record: reached.append(model.so_far().log_marginal_likelihood_)])
    model.set_params(max_iter=6)
    with pytest.warns(CertgpWarning, match="before it converged"):
        model.fit(X, Y)

    def interrupt(record):
        if record.iteration == 5:
            raise KeyboardInterrupt

    with pytest.warns(CertgpWarning, match="interrupted"):
        stopped = MercerGP(
            10, projection=None, random_state=0, noise="constant", max_iter=6, callbacks=[interrupt]
        ).fit(X, Y)
    assert stopped.log_marginal_likelihood_ == pytest.approx(reached[4], rel=1e-9)


def test_a_stop_rule_puts_a_fit_off_and_its_checkpoint_stays(tmp_path):
    path, rule = tmp_path / "c", StopRule()
    options = {"rank": 10, "random_state": 0, "noise": "constant"}
    put_off = SparseGP(
        checkpoint=path,
        callbacks=[lambda record: rule.ask("lunch") if record.iteration == 3 else None, rule],
        **options,
    ).fit(X, Y)
    assert (put_off.stop_reason_, path.exists()) == ("lunch", True)
    resumed, whole = SparseGP(checkpoint=path, **options).fit(X, Y), SparseGP(**options).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert not path.exists()


class Watch:
    """Clocks that a test sets: of the wall, and of the work done at a share of it."""

    def __init__(self, share: float = 1.0) -> None:
        self.seconds, self.share = 0.0, share

    def rule(self, max_seconds: float) -> StopRule:
        return StopRule(max_seconds, lambda: self.seconds, lambda: self.share * self.seconds)


def stops_after(rule: StopRule, watch: Watch, step: float) -> float:
    while not rule(None):
        watch.seconds += step
    return watch.seconds


def test_a_time_limit_leaves_time_for_what_follows_training():
    watch = Watch()
    rule = watch.rule(10.0)
    assert stops_after(rule, watch, 2.0) == 8.0  # another step would end beyond 8.5
    assert rule.reason == "max_seconds is used up; a longer limit gives a better fit"
    watch = Watch()
    rule = watch.rule(10.0)
    rule.reserve(4.0)
    assert stops_after(rule, watch, 0.1) == pytest.approx(6.0, abs=0.15)
    busy = Watch(share=0.5)  # a machine that gives us half of its time
    rule = busy.rule(10.0)
    rule.reserve(3.0)
    assert stops_after(rule, busy, 0.1) == pytest.approx(4.0, abs=0.15)
    hopeless = Watch()
    rule = hopeless.rule(10.0)
    rule.reserve(100.0)
    assert stops_after(rule, hopeless, 0.1) == pytest.approx(3.0, abs=0.15)


def test_members_share_the_time():
    watch = Watch()
    rule = watch.rule(10.0)
    part = rule.part(0.5)
    watch.seconds = 5.0
    assert part.is_up()
    assert not rule.is_up()
    rule.join([part])
    assert rule.is_up()


@pytest.mark.parametrize("cls", [MercerGP, DeepFourierGP, LocalGP])
def test_a_bad_time_limit_is_refused(cls):
    with pytest.raises(ValueError, match="max_seconds must be positive"):
        cls(max_seconds=-1.0).fit(X, Y)


def test_what_can_be_shortened_is_kept_a_smaller_share_of_the_limit():
    watch = Watch()
    rule = watch.rule(10.0)
    rule.reserve(100.0, most=0.4)
    assert rule.has_time_for(6.0)
    assert not rule.has_time_for(6.1)
    assert stops_after(rule, watch, 0.1) == pytest.approx(6.0, abs=0.15)
    assert rule.seconds_left() == pytest.approx(10.0 - watch.seconds)
    assert StopRule().seconds_left() == np.inf


def test_a_local_model_out_of_time_learns_its_noise_from_fewer_rows_and_says_so():
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, (2_500, 2))
    y = np.sin(inputs[:, 0]) + 0.1 * rng.standard_normal(2_500)
    model = LocalGP(kernel="matern32", metric="ard", max_seconds=1e-3, random_state=0).fit(inputs, y)
    assert not model.converged_
    assert model.stop_reason_.startswith("max_seconds is used up")
    assert "variances are from 500 rows instead of 2,250" in model.stop_reason_
    assert "noise depends on the input from 1,000 of 2,500 rows" in model.stop_reason_
    assert model.noise_gain_.n_rows == 1_000
    assert np.isfinite(model.predict(inputs[:5], return_std=True)).all()


def test_rows_left_out_block_by_block_are_those_left_out_at_once():
    inputs = np.tile(X, (12, 1)) + np.random.default_rng(2).normal(0, 0.1, (1440, 2))
    process = LocalGP(kernel="matern32", optimize=False).fit(inputs, np.tile(Y, 12))._model.process
    whole = leave_one_out(process, None, np.random.default_rng(3))
    blocks = leave_one_out(process, None, np.random.default_rng(3), seconds=1e9)
    np.testing.assert_allclose(blocks.rows.mean, whole.rows.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(blocks.y, whole.y)


def test_what_precedes_the_iterations_does_not_count_as_one():
    watch = Watch()
    rule = watch.rule(10.0)
    watch.seconds = 5.0  # a scan
    rule.start_steps()
    watch.seconds = 5.1
    assert not rule(None)
    watch = Watch()
    rule = watch.rule(10.0)
    watch.seconds = 5.1
    assert rule(None)  # taken for an iteration of 5.1 s


class EndsInAFold(StopRule):
    """Asked to end by the first iteration of which no other callback is told: that of a fit within the fit."""

    is_told = False

    def hear(self, record):
        self.is_told = True

    def __call__(self, record):
        if not self.is_told:
            self.ask()
        self.is_told = False
        return super().__call__(record)


def test_folds_that_are_cut_short_decide_nothing():
    """Half of its training says nothing of what the whole of it has fitted."""
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, (40, 2))
    y = np.sin(4.0 * inputs[:, 0]) + 0.2 * np.random.default_rng(2).standard_normal(40)
    rule = EndsInAFold()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FourierGP(30, max_iter=30, random_state=0, callbacks=[rule.hear, rule]).fit(inputs, y)
    assert rule.cuts == {"folds": "rows left out were to confirm the fit in 0 of 4 folds"}
    assert not [each for each in caught if each.category is WeakSignalWarning]


def test_low_rank_beside_the_neighbours_goes_on_from_a_checkpoint(tmp_path):
    rule, told = StopRule(), []

    def stop_in_the_last_stage(record):
        told.append(record.stage)
        if told.count("low rank") == 2:
            rule.ask()

    options = {"kernel": "matern32", "metric": "ard", "rank": 5, "neighbours": 5, "train_neighbours": 5}
    options |= {"noise": "constant", "random_state": 0}
    whole = LocalGP(**options).fit(X, Y)
    options["checkpoint"] = tmp_path / "c"
    assert not LocalGP(**options, callbacks=[stop_in_the_last_stage, rule]).fit(X, Y).converged_
    np.testing.assert_array_equal(LocalGP(**options).fit(X, Y).predict(X[:3]), whole.predict(X[:3]))


@pytest.mark.parametrize("step", ["settle", "reweigh"])
def test_an_interrupt_after_training_keeps_the_model(monkeypatch, step):
    """Among the folds that confirm a fit, and while Student-t noise weighs the rows."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(*{"settle": (Trainer, "settle"), "reweigh": (Fitting, "reweigh")}[step], interrupt)
    model = ExactGP(likelihood="student" if step == "reweigh" else "gaussian", random_state=0)
    with pytest.warns(CertgpWarning, match="interrupted"):
        model.fit(X, Y)
    assert model.stop_reason_ == "the fit was interrupted"
    assert not model.converged_
    assert float(np.corrcoef(model.predict(X), Y)[0, 1]) > 0.9


def test_an_interrupt_while_a_rank_is_scouted_keeps_all_rows():
    """The fit of the scout, to some of the rows at a far higher rank, is not the model so far."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (4_500, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(4_500)

    def interrupt(record):
        if record.rank >= 200:
            raise KeyboardInterrupt

    model = MercerGP("auto", max_rank=300, tolerance=1e-2, random_state=0, callbacks=[interrupt])
    with pytest.warns(CertgpWarning, match="interrupted"):
        model.fit(X, y)
    assert model.n_rows_ == 4_500


def test_rounds_with_student_noise_each_have_their_part_of_the_time():
    """One that is cut short does not end the others, of a race neither."""
    y = Y.copy()
    y[::10] += 5.0
    slow = {"callbacks": [lambda _: time.sleep(0.05)], "max_iter": 1_000, "max_seconds": 1.5, "random_state": 0}
    race = AutoGP(candidates=("exact", "exact-matern"), likelihood="student", warp=False, **slow)
    race.fit(X, y)
    assert race.stop_reason_.startswith("max_seconds is used up")
    assert any(isinstance(member.noise_model, StudentNoise) for member in model_of(race).process.members)
    assert float(np.sqrt(np.mean((race.predict(X) - Y) ** 2))) < 0.3
