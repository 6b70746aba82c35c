"""certify() and rank_curve() of estimators: routes, what is remembered, what is refused."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import certgp
from certgp.errors import ConvergenceWarning, InvalidInputError, NotCertifiableError
from certgp.guarantees import Certificate, CostEstimate, Interval

FIXED = {"length_scale": 0.8, "noise_variance": 0.05, "signal_variance": 1.0, "optimize": False, "random_state": 0}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = 3.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(300)
    return X, y, rng.standard_normal((20, 3))


@pytest.fixture(scope="module")
def exact(data) -> certgp.ExactGP:
    X, y, _ = data
    return certgp.ExactGP(**{k: v for k, v in FIXED.items() if k != "random_state"}).fit(X, y)


@pytest.fixture
def weak(data) -> certgp.MercerGP:
    X, y, _ = data
    return certgp.MercerGP(30, projection=None, **FIXED).fit(X, y)


def holds(certificate: Certificate, gp, exact, X_new) -> bool:
    mean, std = exact.predict(X_new, return_std=True, include_noise=False)
    error = np.abs(gp.predict(X_new) - mean)
    inside = (certificate.mean_error_lower - 1e-9 <= error) & (error <= certificate.mean_error + 1e-9)
    bracket = (certificate.variance_lower - 1e-9 <= std**2) & (std**2 <= certificate.variance_upper + 1e-9)
    return bool(inside.all() and bracket.all())


def test_reference_doubles_until_the_tolerance_is_met(weak):
    certificate = weak.certify(tol=1e-3)
    assert certificate.kl.half_width <= 1e-3 * 300 * 1.01
    assert certificate.evidence["reference_rank"] > 60
    limited = weak.certify(tol=1e-9, max_reference_rank=80)
    assert limited.evidence["reference_rank"] <= 80


def test_predictions_are_certified_to_a_tolerance(weak, exact, data):
    certificate = weak.certify(data[2], tol=0.1, max_reference_rank=1600)
    assert certificate.evidence["mean_resolution"] <= 0.1
    assert certificate.notes == ()
    assert holds(certificate, weak, exact, data[2])
    assert certificate.predictive_kl.interval.lower <= certificate.predictive_kl.interval.upper
    assert certificate.predictive_kl.with_probability(0.1) == pytest.approx(
        10 * certificate.predictive_kl.interval.upper
    )


def test_a_missed_tolerance_says_what_would_help(weak, data):
    certificate = weak.certify(data[2], tol=1e-6, max_reference_rank=60)
    assert "not to tol=1e-06: raise max_reference_rank, or pass exact_solve=True" in certificate.notes[0]
    assert "note" in str(certificate)


def test_conjugate_gradients_reach_what_a_reference_cannot(weak, exact, data, capsys):
    certificate = weak.certify(data[2], tol=1e-4, reference_rank=60, exact_solve=True)
    assert "products with the 300 x 300 kernel matrix" in capsys.readouterr().err
    assert certificate.evidence["mean_resolution"] <= 1e-4
    assert "V7" in certificate.theorem  # near rows promise fewer products than a reference of 60 features
    assert holds(certificate, weak, exact, data[2])


def test_a_reference_that_is_nearly_good_enough_preconditions(weak, exact, data):
    certificate = weak.certify(data[2], tol=1e-6, reference_rank=250, exact_solve=True)
    assert "C1" in certificate.theorem
    assert certificate.evidence["mean_resolution"] <= 1e-6
    assert holds(certificate, weak, exact, data[2])


def test_the_cost_is_shown_before_and_may_be_declined(weak, data):
    asked: list[CostEstimate] = []
    certificate = weak.certify(data[2], tol=1e-4, reference_rank=60, exact_solve=lambda cost: bool(asked.append(cost)))
    assert asked[0].products > 0
    assert asked[0].seconds > 0
    assert "declined" in certificate.notes[0]
    assert "C1" not in certificate.theorem


def test_gradients_end_at_rounding_and_say_so(weak, data):
    """A tolerance below what float64 can show is not worth a thousand products."""
    certificate = weak.certify(data[2], tol=1e-14, reference_rank=60, exact_solve=True)
    assert "at the rounding of float64 after" in certificate.notes[0]
    products = int(certificate.notes[0].split(" products")[0].split()[-1])
    assert products < 200
    assert certificate.evidence["mean_resolution"] < 1e-6


def test_a_probable_divergence_names_its_probability(weak):
    certificate = weak.certify(reference_rank=90, delta=0.3)
    assert certificate.confidence == 0.7
    close = replace(certificate, kl=Interval(0.0, 3.0))
    assert "nats per row), with probability at least 0.7." in certificate.sentence()
    assert "nats per row), with probability at least 0.7." in close.sentence()
    assert "probability" not in weak.certify(reference_rank=300).sentence()


def test_probes_that_narrow_nothing_leave_a_certificate_certain(data):
    X, y, _ = data
    gp = certgp.MercerGP(30, projection=None, **FIXED | {"noise_variance": 5.0}).fit(X, y)
    certificate = gp.certify(reference_rank=2000, tol=1e-15, delta=1e-9, probes=90)
    assert certificate.confidence == 1.0
    assert certificate.theorem.startswith("R1")
    assert certificate.kl == gp.certify(reference_rank=2000).kl


def test_given_rows_are_checked_whatever_else_is_asked(weak, exact, data):
    X, y, _ = data
    assert weak.certify(rows=(X, y)).kl == weak.certify().kl
    assert exact.certify(rows=[X, y]).kl.upper == 0.0
    for gp in (weak, exact):
        with pytest.raises(NotCertifiableError, match="not the ones the model was conditioned on"):
            gp.certify(rows=(X, y + 1.0))
        with pytest.raises(
            InvalidInputError, match=r"rows must be the pair \(X, y\).*found ndarray of shape \(300, 3\)"
        ):
            gp.certify(rows=X)


def test_the_exact_gp_takes_the_arguments_of_the_others(exact, data):
    certificate = exact.certify(data[2], tol=0.1, reference_rank=50, delta=0.1, exact_solve=True)
    assert certificate.kl.upper == 0.0
    assert (certificate.mean_error == 0.0).all()
    with pytest.raises(InvalidInputError, match="tol must be positive"):
        exact.certify(tol=-1.0)


def test_auto_names_its_own_remedy_for_learned_frequencies(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning):
        gp = certgp.AutoGP(10, candidates=["fourier-learned"], max_iter=2, random_state=0).fit(X[:60], y[:60])
    with pytest.raises(NotCertifiableError, match=r"leave 'fourier-learned' out of candidates"):
        gp.certify()


def test_statistical_tightening_narrows_a_wide_interval(weak, exact, data):
    wide = weak.certify(reference_rank=120)
    tight = weak.certify(reference_rank=120, delta=0.01)
    assert tight.confidence == 0.99
    assert tight.kl.half_width < 0.5 * wide.kl.half_width
    assert tight.theorem.startswith("R2")
    assert weak.certify().confidence == 1.0  # only what is certain is remembered
    truth = weak.certify(reference_rank=1500)
    assert tight.kl.lower <= truth.kl.upper
    assert truth.kl.lower <= tight.kl.upper
    with pytest.raises(InvalidInputError, match="probes must exceed"):
        weak.certify(reference_rank=90, delta=0.01, probes=5)


def test_certify_without_arguments_returns_the_tightest_that_is_known(weak):
    own = weak.certify()
    sharp = weak.certify(reference_rank=800)
    assert sharp.kl.upper < own.kl.upper
    assert weak.certify().kl == sharp.kl
    weak.certify(reference_rank=5)
    assert weak.certify().kl == sharp.kl


def test_certificates_are_saved_and_forgotten_when_rows_are_added(data, tmp_path):
    X, y, X_new = data
    gp = certgp.FourierGP(40, winsorize=False, **FIXED).fit(X, y)
    certificate = gp.certify(X_new, reference_rank=300)
    gp.save(tmp_path / "m")
    again = certgp.load(tmp_path / "m")
    saved = again.certify()
    assert saved.kl == certificate.kl
    assert saved.mean_error is None
    assert "P1" not in saved.theorem
    with pytest.raises(NotCertifiableError, match="rows="):
        again.certify(X_new)
    assert again.certify(X_new, reference_rank=300, rows=(X, y)).mean_error == pytest.approx(certificate.mean_error)
    again.partial_fit(X[:5], y[:5])
    with pytest.raises(NotCertifiableError, match="rows="):
        again.certify()


def test_certificate_survives_json(weak, data):
    certificate = weak.certify(data[2], reference_rank=100)
    again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert str(again) == str(certificate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": -1.0}, "tol must be positive"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1"),
        ({"max_reference_rank": 0}, "max_reference_rank must be a whole number"),
        ({"probes": 2.5}, "probes must be a whole number"),
        ({"exact_solve": True}, "exact_solve needs tol"),
        ({"exact_solve": True, "tol": 0.1}, r"pass the rows to predict"),
        ({"exact_solve": "yes", "tol": 0.1}, "exact_solve must be True, False or a function"),
    ],
)
def test_nonsense_is_refused(weak, options, message):
    with pytest.raises(InvalidInputError, match=message):
        weak.certify(**options)


def test_changed_rows_are_noticed(weak, data):
    X, y, _ = data
    with pytest.raises(NotCertifiableError, match="not the ones the model was conditioned on"):
        weak.certify(reference_rank=50, rows=(X, y + 1.0))


# -------------------- rank curve


@pytest.mark.parametrize(
    ("model", "options", "ranks"),
    [
        (certgp.MercerGP, {"projection": None}, (1, 9, 40)),
        (certgp.MercerGP, {"projection": None, "variance": "lowrank"}, (3, 40)),
        (certgp.MercerGP, {"projection": None, "variance": "paper"}, (3, 40)),
        (certgp.FourierGP, {"winsorize": True}, (2, 10, 40)),
    ],
)
def test_rank_curve_equals_separate_models(data, model, options, ranks):
    X, y, X_new = data
    y_new = np.sin(X_new[:, 0])
    gp = model(40, **options, **FIXED).fit(X, y)
    curve = gp.rank_curve(X_new, y_new)
    for rank in ranks:
        if rank < 40:
            gp.hold(replace(gp._model, process=gp._model.process.truncated(rank)))
        at = int(np.flatnonzero(curve.ranks == rank)[0])
        assert curve.log_evidence[at] == pytest.approx(gp.log_marginal_likelihood(), rel=1e-9)
        assert curve.nlpd[at] == pytest.approx(gp.nlpd(X_new, y_new), rel=1e-9)
        gp = model(40, **options, **FIXED).fit(X, y)


def test_truncated_models_are_fits_of_that_rank(data):
    X, y, X_new = data
    big = certgp.MercerGP(40, projection=None, **FIXED).fit(X, y)
    big.hold(replace(big._model, process=big._model.process.truncated(12)))
    small = certgp.MercerGP(12, projection=None, **FIXED).fit(X, y)
    np.testing.assert_allclose(big.predict(X_new), small.predict(X_new), rtol=1e-9)
    sparse = certgp.SparseGP(20, inducing=X[:20], **FIXED).fit(X, y)
    sparse.hold(replace(sparse._model, process=sparse._model.process.truncated(7)))
    fewer = certgp.SparseGP(7, inducing=X[:7], **FIXED).fit(X, y)
    np.testing.assert_allclose(sparse.predict(X_new), fewer.predict(X_new), rtol=1e-6)


def test_rank_curve_names_the_smallest_rank_and_refuses_half_of_the_rows(data):
    X, y, X_new = data
    gp = certgp.MercerGP(200, projection=None, **FIXED | {"length_scale": 2.0}).fit(X, y)
    curve = gp.rank_curve()
    assert curve.nlpd is None
    rank = curve.smallest(1e-2)
    assert curve.kl_bound[rank - 1] <= 1e-2 * 300 < curve.kl_bound[rank - 2]
    assert curve.smallest(1e-300) is None
    with pytest.raises(InvalidInputError, match="X and y together"):
        gp.rank_curve(X_new)


def test_fourier_models_are_certified_by_default(data, exact):
    X, y, X_new = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp = certgp.FourierGP(60, winsorize=False, **FIXED).fit(X, y)
        certificate = gp.certify(X_new)
    assert holds(certificate, gp, exact, X_new)


# -------------------- which exact GP is meant


@pytest.mark.parametrize(
    ("gp", "where"),
    [
        (certgp.MercerGP(12, projection=None, **FIXED), ""),
        (certgp.SparseGP(12, **FIXED), ""),
        (certgp.FourierGP(12, **FIXED), ""),  # winsorised: the exact GP is that on X itself
        (certgp.MercerGP(12, projection=2, **FIXED), " on the outputs g(x) of its projection"),
        (
            certgp.DeepMercerGP(6, hidden=(4,), optimize=False, noise_variance=0.5, random_state=0),
            " on the outputs g(x) of its network",
        ),
    ],
    ids=["mercer", "sparse", "fourier", "projection", "network"],
)
def test_the_sentence_names_the_gp_that_is_meant(gp, where, data, tmp_path):
    X, y, X_new = data
    gp.fit(X, y)
    certificate = gp.certify(X_new, reference_rank=60)
    assert certificate.kernel_inputs == (where.removeprefix(" on ") or None)
    assert f"differ from the exact GP's{where} by at most" in certificate.sentence()
    close = replace(certificate, kl=Interval(0.0, 1.0), mean_error=None)
    assert f"The exact GP{where} and this model differ" in close.sentence()
    assert f"close to the exact GP{where}." in replace(close, kl=Interval(0.0, 1e9)).sentence()
    assert f"far from the exact GP{where}:" in replace(close, kl=Interval(0.9e9, 1e9)).sentence()
    assert ("g(x)" in str(certificate)) == bool(where)
    gp.save(tmp_path / "m")
    assert certgp.load(tmp_path / "m").certify().kernel_inputs == certificate.kernel_inputs


def test_both_divergences_are_printed_and_the_lower_end_is_above_the_elbo(weak):
    certificate = weak.certify()
    assert f"KL(model || exact)  [0, {certificate.reverse_kl.upper:.6g}]" in str(certificate)
    assert certificate.to_dict()["reverse_kl"] == [0.0, certificate.reverse_kl.upper]
    assert "K3 (reverse divergence), E4 (concave ELBO)" in certificate.theorem
    gain = certificate.evidence["paper_bound"] - 0.5 * certificate.evidence["lost_log_determinant"]
    assert gain > 100.0  # nats: the ELBO counts what this weak model lost of every row fully
    elbo = weak.rank_curve().elbo[-1]
    assert certificate.log_evidence.lower == pytest.approx(elbo + gain, rel=1e-9)
    read = weak.certify(reference_rank=60)
    assert "E3 (ELBO row by row)" in read.theorem
    assert read.kl.upper - read.evidence["kl_to_reference"] == pytest.approx(read.evidence["half_width"], rel=1e-6)
    assert read.evidence["kl_to_reference"] - read.kl.lower < 0.7 * read.evidence["half_width"]
