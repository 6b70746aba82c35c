"""An interrupted fit goes on from its checkpoint and ends with the same model."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_cases import problem

from certgp import AutoGP, FourierGP, MercerGP, SparseGP
from certgp.errors import InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
MODELS = [
    pytest.param(MercerGP, {"max_iter": 40}, id="mercer"),
    pytest.param(FourierGP, {"learn_frequencies": True, "max_iter": 30}, id="fourier-learned"),
    pytest.param(SparseGP, {"max_iter": 30}, id="sparse"),
    pytest.param(AutoGP, {"max_iter": 20}, id="auto"),
]


class Interrupt:
    """A callback that behaves like Ctrl-C at the given call."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, record) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
@pytest.mark.parametrize("at", [3, 25])
def test_same_model_after_an_interruption(cls, parameters, at, tmp_path):
    X, y = problem(n=150, d=5)
    path = tmp_path / "fit.checkpoint"
    whole = cls(rank=12, random_state=3, **parameters).fit(X, y)
    broken = cls(rank=12, random_state=3, checkpoint=path, callbacks=[Interrupt(at)], **parameters)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(X, y)
    assert path.exists()
    resumed = cls(rank=12, random_state=3, checkpoint=path, **parameters).fit(X, y)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert resumed.log_marginal_likelihood_ == whole.log_marginal_likelihood_
    assert resumed.n_iter_ == whole.n_iter_
    assert not path.exists()  # the fit is done


def test_a_checkpoint_of_other_data_is_refused_before_anything_is_lost(tmp_path):
    X, y = problem(n=60)
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        SparseGP(rank=5, random_state=0, checkpoint=path, callbacks=[Interrupt(2)]).fit(X, y)
    before = path.read_bytes()
    for other in (SparseGP(rank=6, random_state=0, checkpoint=path), SparseGP(rank=5, random_state=1, checkpoint=path)):
        with pytest.raises(InvalidInputError, match="other data or with other parameters"):
            other.fit(X, y)
    with pytest.raises(InvalidInputError, match="other data or with other parameters"):
        SparseGP(rank=5, random_state=0, checkpoint=path).fit(X, y + 1.0)
    assert path.read_bytes() == before


def test_a_seed_that_cannot_be_repeated_is_refused(tmp_path):
    X, y = problem(n=60)
    with pytest.raises(InvalidInputError, match="checkpoint needs random_state to be a whole number"):
        MercerGP(rank=5, random_state=np.random.RandomState(0), checkpoint=tmp_path / "c").fit(X, y)


def test_a_callback_that_stops_a_fit_leaves_a_usable_model_and_no_checkpoint(tmp_path):
    X, y = problem(n=100, d=5)
    path = tmp_path / "fit.checkpoint"
    gp = MercerGP(rank=10, random_state=0, checkpoint=path, callbacks=[lambda record: record.iteration >= 3])
    gp.fit(X, y)
    assert gp.stop_reason_ == "a callback stopped the fit"
    assert np.isfinite(gp.predict(X)).all()
    assert not path.exists()
