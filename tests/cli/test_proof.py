"""What a fit proves at once, and what it puts off."""

from __future__ import annotations

import pytest
from cli_cases import rows

from certgp import ExactGP, FourierGP, MercerGP
from certgp.cli.proof import prove
from certgp.guarantees import reference

X, Y = rows()[:, :-1], rows()[:, -1]


@pytest.fixture(scope="module")
def fourier():
    return FourierGP(6, random_state=0, optimize=False).fit(X, Y)


def test_what_is_cheap_beside_the_fit_is_proven_at_once(fourier, monkeypatch):
    assert prove(fourier, seconds=0.0).certificate is not None
    monkeypatch.setattr(reference, "_SECONDS_PER_PRODUCT", 1e-3)  # a reference of 24 features over 80 rows: 46 s
    late = prove(fourier, seconds=100.0)
    assert (late.certificate, late.obstacle) == (None, None)
    assert late.put_off == "reading a reference of 24 features would take about 46 s"
    assert prove(fourier, seconds=1_000.0).certificate is not None


def test_models_that_certify_themselves_always_do(monkeypatch):
    monkeypatch.setattr(reference, "_SECONDS_PER_PRODUCT", 1e3)
    assert prove(MercerGP(6, random_state=0, optimize=False).fit(X, Y), 0.0).certificate is not None
    assert prove(ExactGP(optimize=False).fit(X, Y), 0.0).certificate is not None
