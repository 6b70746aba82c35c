"""Several networks: side by side or in turn they are the same; what a callback, a checkpoint and ``so_far`` see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from estimator_cases import problem
from torch import Tensor, nn

from certgp import DeepFourierGP, DeepMercerGP
from certgp.data import Standardiser
from certgp.engines import LocalEngine
from certgp.estimators.fitting import make_settings
from certgp.gp import LowRankProcess, MixtureProcess
from certgp.training.recipes import deep

X, Y = problem(150, d=3, noise=0.2)
NEW, SEEN = problem(60, d=3, seed=1, noise=0.2)


def model(cls=DeepFourierGP, **parameters):
    return cls(**{"hidden": (16,), "max_iter": 4, "members": 3, "random_state": 0} | parameters)


@pytest.fixture
def together(monkeypatch):
    """Side by side, however small the problem and however few threads the tests have."""
    monkeypatch.setattr(deep, "spare_workers", lambda tasks: 2)
    monkeypatch.setattr(deep, "_STARTING_SECONDS", 0.0)


def in_turn(estimator):
    """The same fit on one thread in this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return estimator.set_params(callbacks=estimator.callbacks or [lambda _: None]).fit(X, Y)
    finally:
        torch.set_num_threads(before)


def dropout_network() -> nn.Module:
    class Dropping(nn.Module):  # local, so that only its code can tell another process what it is
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))

        def forward(self, rows: Tensor) -> Tensor:
            return self.layers(rows)

    torch.manual_seed(0)
    return Dropping()


@pytest.mark.parametrize("own", [False, True], ids=["default network", "network with dropout"])
def test_side_by_side_is_bit_for_bit_one_after_the_other(together, tmp_path, own):
    parameters = {"network": dropout_network(), "embedding": 1} if own else {}
    state = torch.get_rng_state()
    first = model(checkpoint=tmp_path / "fit", **parameters).fit(X, Y)
    assert torch.equal(torch.get_rng_state(), state)
    assert not list(tmp_path.iterdir())
    second = in_turn(model(**parameters))
    for ask in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(first.predict(NEW, **ask), second.predict(NEW, **ask), strict=True):
            assert np.array_equal(a, b)
    assert first.log_marginal_likelihood_ == second.log_marginal_likelihood_
    assert first.stop_reason_ == second.stop_reason_
    records = [[(r.iteration, r.value, r.validation) for r in each.history_.iterations] for each in (first, second)]
    assert records[0] == records[1]
    assert len(records[0]) == 12


def test_a_fit_interrupted_in_turn_goes_on_side_by_side(together, tmp_path):
    def interrupt(record):
        calls.append(record)
        if len(calls) == 7:  # in the second member
            raise KeyboardInterrupt

    calls, path = [], tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        in_turn(model(checkpoint=path, callbacks=[interrupt]))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit.0", "fit.1"]
    resumed = model(checkpoint=path).fit(X, Y)
    assert np.array_equal(resumed.predict(NEW), in_turn(model()).predict(NEW))
    assert not list(tmp_path.iterdir())


def test_an_early_stop_is_told_from_the_other_processes(together):
    wild = model(network=nn.Linear(3, 4), learning_rate=1e38)
    with pytest.warns(UserWarning, match="lower learning_rate") as seen:
        wild.fit(X, Y)
    assert len(seen) == 3
    assert not wild.converged_


def trainer(model):
    return model.trainer(make_settings(model, model.trainer_parameters(), Standardiser.identity(18)))


def test_who_is_trained_where(together, monkeypatch):
    """Callbacks and engines of the user's own need this process, and short fits are done before others start."""
    asked = []
    monkeypatch.setattr(deep, "run_side_by_side", lambda tasks, workers: asked.append(workers) or [t() for t in tasks])

    short = {"max_iter": 1, "members": 2}
    for here in ({"callbacks": [lambda _: None]}, {"engine": type("Other", (), {"fold": LocalEngine().fold})()}):
        model(**short | here).fit(X, Y)
    model(**short | {"members": 1}).fit(X, Y)
    assert asked == []
    model(**short).fit(X, Y)
    assert asked == [2]
    monkeypatch.setattr(deep, "_STARTING_SECONDS", 3.0)
    model(**short).fit(X, Y)
    assert asked == [2]
    # elevators takes 15 s (docs/benchmarks.md, Deep models)
    assert trainer(DeepMercerGP()).estimate_seconds(15_000, 18, 0) == pytest.approx(17.0, abs=1.0)
    assert trainer(DeepMercerGP(network=nn.Linear(18, 1))).estimate_seconds(15_000, 18, 0) < 3.0


# -------------------- callbacks


def test_a_stopped_fit_keeps_whole_members():
    def stop_in(member: int):
        calls = []
        return lambda record: calls.append(record) or len(calls) == 2 * member + 1

    alone = model(members=1, max_iter=2).fit(X, Y)
    in_second = model(max_iter=2, callbacks=[stop_in(1)]).fit(X, Y)
    assert isinstance(in_second._model.process, LowRankProcess)
    assert np.array_equal(in_second.predict(NEW), alone.predict(NEW))
    in_third = model(max_iter=2, callbacks=[stop_in(2)]).fit(X, Y)
    assert len(in_third._model.process.members) == 2
    in_first = model(max_iter=2, callbacks=[stop_in(0)]).fit(X, Y)
    assert in_first.stop_reason_.startswith("a callback stopped the fit")
    assert in_first.n_iter_ == 1
    assert not in_first.converged_


def test_so_far_is_what_a_stopped_fit_returns():
    """At every epoch of a run: the model so far predicts as one that was stopped there."""
    shown = []
    watched = model(members=1, callbacks=[lambda _: shown.append(watched.so_far()) and None])
    watched.fit(X, Y)
    assert len(shown) == 4
    for epoch, seen in enumerate(shown[:3], start=1):
        stopped = model(members=1, callbacks=[lambda r, epoch=epoch: r.iteration == epoch]).fit(X, Y)
        assert np.array_equal(seen.predict(NEW, return_std=True), stopped.predict(NEW, return_std=True))
    undisturbed = model(members=1).fit(X, Y)
    assert np.array_equal(watched.predict(NEW), undisturbed.predict(NEW))
    with pytest.raises(ValueError, match="while a fit runs"):
        watched.so_far()


def test_so_far_of_members_is_the_mixture_of_those_that_are_done():
    shown = []
    watched = model(max_iter=1, callbacks=[lambda _: shown.append(watched.so_far()) and None])
    watched.fit(X, Y)
    assert [len(each._model.process.members) for each in shown] == [1, 1, 2]
    assert isinstance(watched._model.process, MixtureProcess)
    assert len(watched._model.process.members) == 3
    assert shown[-1].nlpd(NEW, SEEN) != watched.nlpd(NEW, SEEN)


# -------------------- certificates and checkpoints


def test_a_certificate_does_not_outlive_its_rows():
    gp = model(DeepMercerGP, members=1, max_iter=1).fit(X, Y)
    tight = gp.certify(reference_rank=60)
    gp.partial_fit(NEW, SEEN)
    assert gp.certify().n_rows == len(X) + len(NEW)
    gp.fit(X[:100], Y[:100])
    assert gp.certify().n_rows == 100
    assert tight.n_rows == len(X)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_full_training_goes_on_from_its_checkpoint(tmp_path, members):
    def interrupt(record):
        calls.append(record)
        if len(calls) == 10 * (members - 1) + 6:
            raise KeyboardInterrupt

    calls, path = [], tmp_path / "fit"
    same = {"training": "full", "max_iter": 10, "members": members}
    expected = model(**same).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        model(checkpoint=path, callbacks=[interrupt], **same).fit(X, Y)
    assert len(list(tmp_path.iterdir())) == members
    again = model(checkpoint=path, **same).fit(X, Y)
    assert np.array_equal(again.predict(NEW), expected.predict(NEW))
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_without_a_seed_goes_on_too(tmp_path):
    def interrupt(record):
        if record.iteration == 3:
            raise KeyboardInterrupt

    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        model(members=1, random_state=None, checkpoint=path, callbacks=[interrupt]).fit(X, Y)
    rest = []
    model(members=1, random_state=None, checkpoint=path, callbacks=[lambda r: rest.append(r.iteration) and None]).fit(
        X, Y
    )
    assert rest == [3, 4]
    with pytest.raises(ValueError, match="checkpoint needs random_state to be a whole number"):
        model(random_state=np.random.RandomState(0), checkpoint=path).fit(X, Y)
