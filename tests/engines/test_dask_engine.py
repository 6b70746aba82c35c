"""The Dask engine on real worker processes: the same numbers as here, on any number of workers, whoever is killed."""

from __future__ import annotations

import os
import signal

import cloudpickle
import numpy as np
import pytest
import torch

import certgp
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_feature_statistics
from certgp.errors import ClusterError, InvalidInputError
from certgp.features import MercerMap
from certgp.gp import Statistics
from certgp.kernels import Gaussian
from certgp.training.full_batch.objective import LowRankObjective
from helpers import identity_model, random_inputs, random_target, relative_error

distributed = pytest.importorskip("distributed", reason="an extra: pip install 'certgp[dask]'")
ROWS = 2**15 + 5_000  # more than stay here


@pytest.fixture
def source():
    X = random_inputs(0, ROWS, 2)
    return ChunkSource(Chunk(X, random_target(X, 1), torch.rand(ROWS, dtype=torch.float64) + 0.5))


def model():
    return identity_model(MercerMap(Gaussian([0.9, 1.1]), [1.0, 1.0], 12))


def evaluate(source, engine):
    objective = LowRankObjective(model(), source, engine, "marginal")
    return objective.evaluate(objective.start())


def same(a, b) -> bool:
    return (a[0], a[1].tolist()) == (b[0], b[1].tolist())


# one test, because a cluster takes seconds to start and each worker of pytest would start its own
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_on_real_workers(source, tmp_path):
    from certgp.engines.dask import DaskEngine

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(processes=True, **options) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        engine = DaskEngine(client, partitions=5)
        bad_arguments_are_named(client)
        found = evaluate(source, engine)
        equals_one_process(found, source)
        killed_workers_do_not_matter(found, source, engine, tmp_path / "killed")
        cluster.scale(3)
        client.wait_for_workers(3)
        assert same(evaluate(source, DaskEngine(client, partitions=5)), found)  # bit by bit
        fits_and_proofs_are_the_same(engine)
    with pytest.raises(ClusterError, match="start the cluster again"):
        evaluate(source, engine)
    client.close()


def equals_one_process(found, source):
    value, gradient = evaluate(source, LocalEngine())
    assert found[0] == pytest.approx(value, rel=1e-9)
    assert relative_error(torch.from_numpy(found[1]), torch.from_numpy(gradient)) < 1e-9


def killed_workers_do_not_matter(found, source, engine, killed):
    features = model()

    def kill_the_first_worker(chunk: Chunk) -> Statistics:
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Statistics.of(features(chunk.X), chunk.y, weight=chunk.weight)

    with torch.no_grad():
        sums = engine.fold(kill_the_first_worker, source, 12)
    assert killed.exists()
    assert torch.equal(sums.A, fold_feature_statistics(features, source, engine).A)
    assert same(evaluate(source, engine), found)


def fits_and_proofs_are_the_same(engine):
    X = random_inputs(3, ROWS, 2).numpy()
    y = random_target(torch.from_numpy(X), 4).numpy()
    there, here = (
        certgp.SparseGP(8, max_iter=3, random_state=0, engine=each, noise="constant").fit(X, y)
        for each in (engine, "local")
    )
    assert there.log_marginal_likelihood_ == pytest.approx(here.log_marginal_likelihood_, rel=1e-9)
    np.testing.assert_allclose(there.predict(X[:50]), here.predict(X[:50]), rtol=1e-9, atol=1e-9)
    proofs = [here.set_params(engine=each).certify(X[:5], tol=0.5) for each in (engine, "local")]
    np.testing.assert_allclose(proofs[0].mean_error, proofs[1].mean_error, rtol=1e-9)
    assert proofs[0].kl.upper == pytest.approx(proofs[1].kl.upper, rel=1e-9)


def bad_arguments_are_named(client):
    from certgp.engines.dask import DaskEngine

    for wrong in ({"chunk_rows": 0}, {"partitions": 1.5}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            DaskEngine(client, **wrong)
    with pytest.raises(InvalidInputError, match=r"address of a scheduler .* found 3"):
        DaskEngine(3)


def test_what_goes_out_does_not_grow_with_the_rows(source):
    sent = []

    class Listening:
        in_process = False

        def fold(self, task, source, rank):
            sent[-1].append(len(cloudpickle.dumps(task)))
            return LocalEngine().fold(task, source, rank)

    for rows in (500, 5_000):
        sent.append([])
        evaluate(ChunkSource(source.take(slice(0, rows))), Listening())
    assert len(sent[0]) == 2
    assert sent[0] == sent[1]
    assert max(sent[0]) < 20_000
