"""The Dask engine on real worker processes: the same numbers as here, on any number of workers, whoever is killed."""

from __future__ import annotations

import os
import signal

import cloudpickle
import dask.array
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import torch

import certgp
from certgp.cli.main import main
from certgp.data import Chunk, ChunkSource, StandardisedRows, Standardiser
from certgp.data.remote import RemoteRows
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_feature_statistics
from certgp.errors import ClusterError, DataFileError, InvalidInputError
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
def test_on_real_workers(source, tmp_path, monkeypatch):
    from certgp.engines.dask import DaskEngine

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
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
        workers_read_files(engine, source, found, tmp_path)
        files_are_found_from_any_folder(engine, tmp_path, monkeypatch)
        workers_hold_dask_partitions(client, engine)
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


def workers_read_files(engine, source, found, folder):
    chunk = source.take(slice(None))
    table = pa.table(
        {"a": chunk.X[:, 0].numpy(), "b": chunk.X[:, 1].numpy(), "y": chunk.y.numpy(), "w": chunk.weight.numpy()}
    )
    files = [str(folder / f"{i}.parquet") for i in range(3)]
    for i, file in enumerate(files):
        pa_parquet.write_table(table.slice(i * 15_000, 15_000), file, row_group_size=4_000)
    sent = len(engine._held)
    rows, here = (each(files, target="y", weights="w") for each in (engine.read, certgp.read))
    assert isinstance(rows, RemoteRows)
    units = Standardiser.identity(2)
    assert same(evaluate(StandardisedRows(rows, units), engine), found)  # as if the client had sent them, bit by bit
    assert len(engine._held) == sent  # but it has not
    killed = folder / "killed-again"
    before = predictions(rows, None)
    assert np.array_equal(predictions(rows, killed), before)  # a worker is lost in the middle
    assert killed.exists()
    np.testing.assert_array_equal(before, predictions(here, None))
    models_of_files_are_the_same(engine, rows, here)
    commands_are_the_same(engine, files, folder)
    for wrong in (certgp.DeepMercerGP(5), certgp.LocalGP()):
        with pytest.raises(InvalidInputError, match=r"lie on a cluster; certgp\.read brings .* MercerGP"):
            wrong.fit(rows)
    for wrong in ({}, {"engine": engine, "likelihood": "student"}):
        with pytest.raises(InvalidInputError, match=r"lie on a cluster.*certgp\.read brings"):
            certgp.SparseGP(5, **wrong).fit(rows)
    bad_files_are_named(engine, folder)
    columns_of_folders_are_read(engine, table, folder / "parts")


def predictions(rows, killed):
    """A sum over rows, by a task that ends the worker once."""

    def task(X, y):
        if killed is not None and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return X.sum(1) * y

    return np.concatenate(list(rows.map(task, 7_000)))


def models_of_files_are_the_same(engine, rows, here):
    held = {"optimize": False, "length_scale": 1.0, "noise_variance": 0.1, "random_state": 0}
    there, local = (
        certgp.SparseGP(8, engine=each, **held).fit(some) for each, some in ((engine, rows), ("local", here))
    )
    assert there.log_marginal_likelihood_ == pytest.approx(local.log_marginal_likelihood_, rel=1e-9)
    expected = local.predict(here, return_std=True)
    np.testing.assert_allclose(there.predict(rows, return_std=True), expected, rtol=1e-9, atol=1e-9)
    assert there.nlpd(rows) == pytest.approx(local.nlpd(here), rel=1e-9)
    assert there.score(rows) == pytest.approx(local.score(here), rel=1e-9)


def commands_are_the_same(engine, files, folder):
    address, out = engine._cluster.client.scheduler.address, [folder / f"{name}.parquet" for name in ("there", "here")]
    model, where = str(folder / "y.model"), ["--scheduler", address]
    fit = ["fit", *files, "--target", "y", "--drop", "w", "--rank", "6", "--max-iter", "1", "--out", model]
    assert main([*fit, "--method", "sparse", "--test-fraction", "0", *where]) == 0
    assert main([*fit, "--method", "deep-mercer", *where]) == 2
    for each, options in zip(out, (where, []), strict=True):
        assert main(["predict", model, *files, "--out", str(each), *options]) == 0
    a, b = (pa_parquet.read_table(each) for each in out)
    assert a.num_rows == ROWS
    for name in ("mean", "std", "lower", "upper"):
        np.testing.assert_allclose(a[name].to_numpy(), b[name].to_numpy(), rtol=1e-9, atol=1e-9)
    assert main(["certify", model, "--train", *files, "--reference-rank", "12", *where]) == 0


def bad_files_are_named(engine, folder):
    bad, out = folder / "bad.parquet", folder / "never.parquet"
    pa_parquet.write_table(pa.table({"a": [1.0, None], "b": [1.0, 2.0], "y": [1.0, 2.0]}), bad)
    with pytest.raises(DataFileError, match=r"column 'a' of .*bad\.parquet .* row 2 \(row group 0"):
        engine.read(bad, target="y")
    pa_parquet.write_table(pa_parquet.read_table(bad).slice(0, 0), folder / "empty.parquet")
    with pytest.raises(DataFileError, match=r"empty\.parquet has no rows"):
        engine.read([folder / "0.parquet", folder / "empty.parquet"], target="y", inputs=["a", "b"])
    where = ["--scheduler", engine._cluster.client.scheduler.address]
    assert main(["predict", str(folder / "y.model"), str(bad), "--out", str(out), *where]) == 2
    assert not out.exists()


def columns_of_folders_are_read(engine, table, folder):
    for year, start in ((2001, 0), (2002, 20_000)):
        (folder / f"year={year}").mkdir(parents=True)
        pa_parquet.write_table(table.slice(start, 20_000), folder / f"year={year}" / "part.parquet")
    rows = engine.read(folder, target="year", inputs=["a"])
    assert isinstance(rows, RemoteRows)
    np.testing.assert_array_equal(rows.take(np.array([19_999, 20_000]))[1], [2001, 2002])


def files_are_found_from_any_folder(engine, folder, monkeypatch):
    monkeypatch.chdir(folder)  # the workers stay where they are
    rows = engine.read("[0-2].parquet", target="y", drop="w")
    assert (rows.n_rows, rows.names) == (ROWS, ("a", "b"))
    out = ["--out", "again.parquet", "--scheduler", engine._cluster.client.scheduler.address]
    assert main(["predict", "y.model", "0.parquet", *out]) == 0
    assert pa_parquet.read_metadata("again.parquet").num_rows == 15_000


def workers_hold_dask_partitions(client, engine):
    numbers = np.random.default_rng(0).standard_normal((ROWS, 3))
    held = client.persist(dask.array.from_array(numbers, chunks=(10_000, 2)))
    rows = engine.read(held, target="x1")
    assert rows.parts.counts == (10_000, 10_000, 10_000, 7_768)
    some = np.array([20_000, 3, 19_999])
    np.testing.assert_array_equal(rows.take(some)[0], numbers[some][:, [0, 2]])
    np.testing.assert_array_equal(rows.take(some)[1], numbers[some, 1])


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
