"""Answers are the estimator's, refusals name the field, and the server lives on."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pandas as pd
import pytest
from running import serving

from certgp.serving import Limits, ServedModel
from certgp.serving.inputs import Asked
from certgp.serving.limits import LimitedBody
from certgp.serving.refusal import RefusedRequestError
from certgp.serving.served import Question

ROW = [0.5, -0.5, 1.0]
NAMES = ["height", "the <b>width</b>", "idle"]


def test_predictions_are_the_estimators(server, fitted):
    X = np.random.default_rng(1).uniform(-2, 2, size=(7, 3))
    answer = server.predict({"rows": X.tolist(), "coverage": 0.8, "quantiles": [0.1, 0.5]})
    assert answer.status == 200
    found = answer.json()
    frame = pd.DataFrame(X, columns=NAMES)
    mean, std = fitted.predict(frame, return_std=True)
    lower, upper = fitted.predict_interval(frame, 0.8)
    np.testing.assert_array_equal(found["mean"], mean)
    np.testing.assert_array_equal(found["std"], std)
    np.testing.assert_array_equal(found["lower"], lower)
    np.testing.assert_array_equal(found["upper"], upper)
    np.testing.assert_array_equal(found["quantiles"], fitted.predict_quantiles(frame, [0.1, 0.5]))
    latent = server.predict({"rows": X.tolist(), "include_noise": False}).json()
    np.testing.assert_array_equal(latent["std"], fitted.predict(frame, return_std=True, include_noise=False)[1])
    records = [dict(zip(NAMES[::-1], row[::-1], strict=True)) for row in X.tolist()]
    assert server.predict({"records": records, "coverage": 0.8, "quantiles": [0.1, 0.5]}).json() == found


def test_rows_outside_the_training_range_are_counted(server):
    assert server.predict({"rows": [ROW, [9.0, 0.0, 0.0]]}).json()["n_outside"] == 1


@pytest.mark.parametrize(
    ("body", "status", "field", "words"),
    [
        ("{", 400, "body", "no JSON"),
        ("", 422, "body", "required"),
        ("[]", 422, "body", "object"),
        ({"rows": [ROW], "rwos": []}, 422, "rwos", "not permitted"),
        ({}, 422, "rows", "either rows"),
        ({"rows": [ROW], "records": []}, 422, "rows", "either rows"),
        ({"rows": []}, 422, "rows", "1 to 50"),
        ({"rows": [ROW] * 51}, 422, "rows", "1 to 50"),
        ({"rows": [ROW, [1.0, 2.0]]}, 422, "rows[1]", "has 2 number(s) but the model has 3 input(s): height"),
        ({"rows": [ROW, [1.0, "2", 3.0]]}, 422, "rows[1][1]", "valid number"),
        ({"rows": [[1.0, None, 3.0]]}, 422, "rows[0][1]", "valid number"),
        ({"rows": [[1.0, True, 3.0]]}, 422, "rows[0][1]", "valid number"),
        ('{"rows": [[1, NaN, 3]]}', 422, "rows[0][1]", "finite"),
        ('{"rows": [[1, Infinity, 3]]}', 422, "rows[0][1]", "finite"),
        ('{"rows": [[1, 1e999, 3]]}', 422, "rows[0][1]", "finite"),
        ('{"rows": [[1, ' + "9" * 400 + ", 3]]}", 422, "rows[0][1]", ""),
        ({"records": [{"height": 1.0}]}, 422, "records[0].the <b>width</b>", "misses"),
        ({"records": [dict.fromkeys(NAMES, 1.0) | {"x": 1.0}]}, 422, "records[0].x", "which the model has not"),
        ({"records": [dict.fromkeys(NAMES, "1")]}, 422, "records[0].height", "valid number"),
        ({"records": [dict.fromkeys(NAMES, True)]}, 422, "records[0].height", "valid number"),
        ('{"records": [{"\\ud800": 1}]}', 422, "records[0].height", "misses"),
        ('{"records": 10' + "0" * 400 + "}", 422, "records", "list"),
        ({"rows": [ROW], "coverage": 1.0}, 422, "coverage", "less than or equal"),
        ({"rows": [ROW], "coverage": 0.9999999999999999}, 422, "coverage", "less than or equal"),
        ({"rows": [ROW], "quantiles": [0.5, 0.0]}, 422, "quantiles[1]", "greater than or equal"),
        ({"rows": [ROW], "include_noise": "yes"}, 422, "include_noise", "boolean"),
        ("[" * 15_000, 400, "body", ""),
        ({"rows": [[0.123456789] * 3] * 1000}, 413, "body", "more than 20,000 bytes"),
        (b"\xff\xfe\x00", 400, "body", ""),
    ],
)
def test_a_bad_request_is_refused_by_field_and_the_server_lives_on(server, body, status, field, words):
    answer = server.predict(body)
    assert answer.status == status, answer.text
    assert answer.json()["field"] == field
    assert words in answer.json()["error"]
    assert server.predict({"rows": [ROW]}).status == 200


def test_extreme_numbers_are_no_server_error(server):
    answer = server.predict({"rows": [[1e308, -1e308, 5e-324]]})
    assert answer.status == 200
    assert np.isfinite(answer.json()["mean"]).all()


def test_what_is_not_there_says_what_is(server):
    for answer, status in ((server.get("/nothing"), 404), (server.ask("DELETE", "/predict"), 405)):
        assert answer.status == status
        assert "/docs" in answer.json()["error"]


def test_certificate_card_and_health(server, fitted):
    told = server.get("/certificate").json()
    certificate = fitted.certify()
    assert told["certificate"]["kl"] == pytest.approx([certificate.kl.lower, certificate.kl.upper])
    assert told["meaning"] == list(fitted.explain(certificate).meaning)
    card = server.get("/model").json()
    assert [each["name"] for each in card["inputs"]] == NAMES
    assert card["inputs"][0]["lower"] < -1.9
    assert card["target"] == "price"
    health = server.get("/health").json()
    assert health["status"] == "ok"
    assert health["predicted_rows"] > 0


def test_the_document_says_what_this_model_takes(server):
    document = server.get("/openapi.json").json()
    request = document["components"]["schemas"]["PredictRequest"]["properties"]
    assert request["rows"]["items"]["minItems"] == 3
    assert request["rows"]["maxItems"] == 50
    assert request["records"]["items"]["required"] == NAMES
    for path in ("/predict", "/certificate", "/model", "/health"):
        assert path in server.get("/docs").text


def test_predictions_that_take_too_long_or_too_many_that_wait_are_given_up(fitted):
    with serving(fitted, Limits(at_once=2, max_waiting=-2)) as server:
        assert server.predict({"rows": [ROW]}).status == 503
        assert server.get("/health").status == 200
    served, question = ServedModel(fitted, "m"), Question(Asked(np.zeros((2_500, 3))), 0.9, (), True)
    looks = iter([True, True, False])
    with pytest.raises(RefusedRequestError, match="took too long"):
        served.answer(question, lambda: next(looks))


def test_a_body_that_does_not_arrive_is_not_waited_for():
    sent = []

    async def never():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        raise AssertionError("reached without a body")

    started = time.monotonic()
    limited = LimitedBody(app, Limits(max_seconds=0.05))
    asyncio.run(limited({"type": "http", "headers": []}, never, send))
    assert time.monotonic() - started < 5
    assert sent[0]["status"] == 408
    assert b"did not arrive" in sent[1]["body"]
