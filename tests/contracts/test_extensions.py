"""What users add in one short file outside the package does all that certgp's own parts do.

A row source has a test of its own, ``test_row_source.py``.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from dense_truth import dense_truth
from sklearn.base import clone

import certgp
from certgp.data import Chunk
from certgp.errors import InvalidInputError, ModelFileError
from certgp.estimators.base import ESTIMATORS
from certgp.features.base import FEATURE_MAPS
from certgp.kernels import Gaussian
from certgp.kernels.registry import _KERNELS
from certgp.methods import Method
from certgp.training import ExactObjective

FOLDER = Path(__file__).parent / "extensions"
MOST_LINES = 35
RNG = np.random.default_rng(0)
X = 3.0 + 2.0 * RNG.standard_normal((90, 1))
Y = 50.0 + 4.0 * np.sin(X[:, 0]) + 0.5 * RNG.standard_normal(90)
NEW = np.linspace(0.0, 6.0, 7)[:, None]


@pytest.fixture(scope="module", autouse=True)
def _importable():
    """The folder on the path; what its modules register is forgotten afterwards."""
    registries = (ESTIMATORS, FEATURE_MAPS, _KERNELS)
    before = [dict(each) for each in registries]
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for module in [path.stem for path in FOLDER.glob("*.py")]:
        sys.modules.pop(module, None)
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_one_short_file_is_enough(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    imported = [line for line in text.splitlines() if line.startswith(("from certgp", "import certgp"))]
    assert imported
    assert not any("._" in line or "import _" in line for line in imported), "only public names"


# -------------------- a feature map and its estimator


@pytest.fixture(scope="module")
def hats(_importable) -> ModuleType:
    return importlib.import_module("hat_features")


@pytest.fixture(scope="module")
def hat_model(hats):
    return hats.HatGP(12, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def saved(hat_model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("hat") / "hat.model"
    hat_model.save(path)
    return path


def test_fit_and_predict(hat_model):
    mean, std = hat_model.predict(NEW, return_std=True)
    assert np.abs(mean - (50.0 + 4.0 * np.sin(NEW[:, 0]))).max() < 0.6
    assert (std > 0.2).all()
    assert hat_model.score(X, Y) > 0.95
    assert hat_model.converged_
    assert "fall back towards the prior" in str(_warning(hat_model, X + 100.0).message)


def _warning(model, rows):
    with pytest.warns(certgp.ExtrapolationWarning) as caught:
        model.predict(rows)
    return caught[0]


def test_the_certificate_is_that_of_the_dense_gp(hat_model):
    truth = dense_truth(hat_model, X, Y, NEW)
    assert truth.kl > 0.0
    truth.check(hat_model, hat_model.certify(), NEW)
    assert "P1" in hat_model.certify(NEW).theorem
    truth.check(hat_model, hat_model.certify(NEW), NEW)
    sharp = hat_model.certify(NEW, tol=1e-3)
    truth.check(hat_model, sharp, NEW)
    assert sharp.kl.upper < 1.01 * truth.kl + 1e-5
    assert hat_model.certify(NEW, tol=1e-3).mean_error.max() < 1.0


def test_the_rank_is_found(hats):
    model = hats.HatGP("auto", tolerance=1e-3, random_state=0).fit(X, Y)
    assert 4 < model.rank_ < 32
    assert model.certify().kl.upper <= 1e-3 * len(Y)
    dense_truth(model, X, Y, NEW).check(model, model.certify(), NEW)


def test_the_rank_curve(hat_model):
    curve = hat_model.rank_curve(NEW, 50.0 + 4.0 * np.sin(NEW[:, 0]))
    assert len(curve.ranks) == hat_model.rank_
    assert curve.log_evidence[-1] == pytest.approx(hat_model.log_marginal_likelihood_, rel=1e-12)
    assert curve.kl_bound[-1] >= dense_truth(hat_model, X, Y, NEW).kl
    assert (np.diff(curve.kl_bound) <= 1e-9).all()
    assert np.isfinite(curve.nlpd).all()


def test_it_is_a_scikit_learn_estimator(hats, hat_model):
    fresh = clone(hat_model.set_params(verbose=0))
    assert fresh.get_params() == hat_model.get_params()
    assert np.array_equal(fresh.fit(X, Y).predict(NEW), hat_model.predict(NEW))
    assert np.array_equal(pickle.loads(pickle.dumps(hat_model)).predict(NEW), hat_model.predict(NEW))
    assert repr(hats.HatGP(7)) == "HatGP(rank=7)"


def test_other_parameters_work(hats):
    assert (
        hats.HatGP(12, calibrate=True, random_state=0)
        .fit(RNG.normal(size=(120, 2)), np.ones(120) * RNG.normal(size=120))
        .noise_scale_
        > 0.0
    )
    kept = hats.HatGP(5, optimize=False, kernel=Gaussian(2.0), noise_variance=1.0).fit(X, Y)
    assert kept.kernel_.length_scale.item() == pytest.approx(2.0)
    with pytest.raises(InvalidInputError, match="the matern32 kernel has no closed-form Mercer expansion"):
        hats.HatGP(5, kernel="matern32").fit(X, Y)


def test_a_map_that_is_not_dominated_refuses_what_needs_domination(hats, monkeypatch):
    monkeypatch.setattr(hats.HatMap, "dominated", False)
    with pytest.raises(InvalidInputError, match=r"objective='elbo' needs features that are dominated .* HatMap"):
        hats.HatGP(5).fit(X, Y)


def test_load_knows_the_class_here(hat_model, saved):
    again = certgp.load(saved)
    assert type(again) is type(hat_model)
    for found, expected in zip(
        again.predict(NEW, return_cov=True), hat_model.predict(NEW, return_cov=True), strict=True
    ):
        assert np.array_equal(found, expected)
    assert again.certify().to_dict() == hat_model.certify().to_dict()


def test_a_new_process_must_import_the_module_first(hat_model, saved):
    code = f"""
        import json, sys, certgp
        try:
            certgp.load({str(saved)!r})
        except certgp.ModelFileError as error:
            print(json.dumps(str(error)))
        import hat_features
        print(json.dumps(certgp.load({str(saved)!r}).predict({NEW.tolist()}).tolist()))
    """
    refused, predicted = map(json.loads, _python(code, FOLDER).splitlines())
    assert refused == (
        "the file holds the estimator 'hat_features.HatGP', which is not known here; import the module that defines it "
        "before load()"
    )
    assert predicted == hat_model.predict(NEW).tolist()


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder in which the file is installed as a package that declares its method."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(FOLDER / "hat_features.py", folder)
    info = folder / "hats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[certgp.methods]\nhat = hat_features:HatGP\nbroken = gone:Gone\n")
    return folder


def test_a_package_that_declares_its_method_is_found_by_load(hat_model, saved, site):
    code = f"""
        import json, sys, warnings, certgp
        with warnings.catch_warnings(record=True) as caught:
            model = certgp.load({str(saved)!r})
        print(json.dumps([model.predict({NEW.tolist()}).tolist(), [str(each.message) for each in caught]]))
    """
    predicted, warned = json.loads(_python(code, site))
    assert predicted == hat_model.predict(NEW).tolist()
    assert warned == [
        "the method 'broken' (gone:Gone) does not work (ModuleNotFoundError: No module named 'gone'); update or remove "
        "the package that declares it"
    ]


def test_a_method_that_cannot_be_imported_is_refused_by_name():
    with pytest.raises(
        InvalidInputError, match=r"the method 'hat' \(hat_features:Gone\) does not work \(AttributeError"
    ):
        Method("hat", "hat_features:Gone").load()


def test_the_command_line_knows_the_method(site, tmp_path):
    table = np.column_stack([X, Y])
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(f"{a},{b}" for a, b in table.tolist()))
    fit = _certgp(site, tmp_path, "fit", "t.csv", "--target", "y", "--method", "hat", "--rank", "auto", "--out", "m")
    assert fit["method"] == "hat"
    assert 4 < fit["rank"] < 40
    assert fit["certificate"]["kl"][1] <= 1e-3 * len(Y)
    predicted = _certgp(site, tmp_path, "predict", "m", "t.csv", "--out", "p.csv")
    assert predicted["scores"]["coverage"] > 0.85
    proven = _certgp(site, tmp_path, "certify", "m", "t.csv")
    assert len(proven["mean_error"]) == len(Y)


def _certgp(site: Path, folder: Path, *arguments: str) -> dict:
    command = [sys.executable, "-m", "certgp", *arguments, "--json"]
    return json.loads(_run(command, site, cwd=folder))


def _python(code: str, path: Path) -> str:
    lines = code.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return _run([sys.executable, "-c", "\n".join(line[indent:] for line in lines)], path)


def _run(command: list[str], path: Path, **options) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(path), str(Path(certgp.__file__).parents[1])])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_save_refuses_what_load_could_not_find(hats, tmp_path):
    class InsideGP(hats.HatGP):  # two of certgp's own would be too deep; here it is about its place
        pass

    class InsideMap(hats.HatMap):
        pass

    refusal = r"Inside{} is defined inside a function .* load\(\) could not find it; define it at the top level"
    with pytest.raises(ModelFileError, match=refusal.format("GP")):
        InsideGP(5, optimize=False).fit(X, Y).save(tmp_path / "m")
    model = hats.HatGP(5, optimize=False).fit(X, Y)
    model._model.process.model.features.__class__ = InsideMap
    with pytest.raises(ModelFileError, match=refusal.format("Map")):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# -------------------- a kernel with two parameters of its own


@pytest.fixture(scope="module")
def own(_importable) -> ModuleType:
    return importlib.import_module("own_kernel")


@pytest.fixture(scope="module")
def cauchy_rows(own):
    """Rows of a GP with that kernel, so that its parameters can be learned."""
    rng = np.random.default_rng(1)
    inputs = np.sort(rng.uniform(-3.0, 3.0, 160))[:, None] * 10.0 + 7.0
    K = own.GeneralisedCauchy(3.0, 1.6, 0.7, 4.0)(torch.from_numpy(inputs), torch.from_numpy(inputs)).numpy()
    draw = np.linalg.cholesky(K + 1e-9 * np.eye(160)) @ rng.standard_normal(160)
    return inputs, draw + 0.1 * rng.standard_normal(160)


def build(method: str, kernel, **options):
    if method == "exact":
        return certgp.ExactGP(kernel=kernel, max_iter=200, **options)
    return certgp.SparseGP(25, kernel=kernel, max_iter=200, random_state=0, **options)


@pytest.mark.parametrize("method", ["exact", "sparse"])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_both_parameters_are_learned_saved_and_certified(own, cauchy_rows, method, tmp_path):
    start = own.GeneralisedCauchy()
    model = build(method, start).fit(*cauchy_rows)
    values = model.kernel_.values
    assert abs(float(values["alpha"]) - float(start.alpha)) > 0.05
    assert abs(float(values["beta"]) - float(start.beta)) > 0.05
    path = tmp_path / "model"
    model.save(path, **({"include_training_data": True} if method == "exact" else {}))
    again = certgp.load(path)
    assert type(again.kernel_) is own.GeneralisedCauchy
    assert {name: value.tolist() for name, value in again.kernel_.values.items()} == {
        name: value.tolist() for name, value in values.items()
    }
    new = np.linspace(-20.0, 30.0, 9)[:, None]
    assert np.array_equal(again.predict(new), model.predict(new))
    dense_truth(model, *cauchy_rows, new).check(model, model.certify(new), new)


def test_the_gradient_of_the_exact_evidence_vanishes(own, cauchy_rows):
    model = build("exact", own.GeneralisedCauchy()).fit(*cauchy_rows)
    assert model.converged_
    process = model._model.process
    ratio = process.noise_variance / process.signal_variance
    objective = ExactObjective(process.kernel, Chunk(process.X, process.y), ratio)
    _, gradient = objective.evaluate(objective.start())
    assert [name for name, _ in objective.parameters.named][:3] == ["log_length_scale", "log_alpha", "log_beta"]
    assert np.abs(gradient).max() < 1e-4
    kept = build("exact", own.GeneralisedCauchy(8.0, 1.8, 0.8, 4.0), optimize=False).fit(*cauchy_rows)
    assert (float(kept.kernel_.alpha), float(kept.kernel_.beta)) == (1.8, 0.8)


@pytest.mark.parametrize(
    ("cls", "refusal"),
    [
        (certgp.MercerGP, "the generalised_cauchy kernel has no closed-form Mercer expansion"),
        (certgp.FourierGP, "the generalised_cauchy kernel has no spectral law"),
    ],
)
def test_methods_that_need_more_of_a_kernel_refuse_it(own, cauchy_rows, cls, refusal):
    for kernel in (own.GeneralisedCauchy(), "generalised_cauchy"):
        with pytest.raises(InvalidInputError, match=refusal + r".* SparseGP or ExactGP with this kernel"):
            cls(10, kernel=kernel).fit(*cauchy_rows)


def test_a_file_with_an_unknown_kernel_says_what_to_do(own, cauchy_rows, tmp_path, monkeypatch):
    certgp.SparseGP(10, kernel=own.GeneralisedCauchy(), optimize=False).fit(*cauchy_rows).save(tmp_path / "m")
    monkeypatch.delitem(_KERNELS, "generalised_cauchy")
    with pytest.raises(ModelFileError, match=r"the kernel 'generalised_cauchy', which is not known here; import the"):
        certgp.load(tmp_path / "m")
