"""A model of a table behind a server: records as people have them, encoded as the fit did, refused by field."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from running import serving

import certgp
from certgp.cli.main import main
from certgp.serving import Limits
from certgp.tabular import TableGP
from table_cases import messy, small_table_gp

COLUMNS = ["sold", "colour", "shop", "size", "member"]
RECORD = {"sold": "2023-05-01 07:00", "colour": "red", "shop": "shop 03", "size": 40.5, "member": True}


@pytest.fixture(scope="module")
def model() -> TableGP:
    return small_table_gp()


@pytest.fixture(scope="module")
def table(model):
    with serving(model, Limits(max_rows=50)) as found:
        yield found


@pytest.fixture(scope="module")
def strict():
    """Gaps are refused, whole numbers are names, and the target is as it is."""
    frame = messy()[:60].assign(code=np.arange(60) % 3).drop(columns=["size", "colour", "sold", "shop"])
    gp = certgp.SparseGP(5, length_scale=4.0, optimize=False, random_state=0)
    model = TableGP(gp, categories=["code"]).fit(frame, "price")
    with serving(model, Limits()) as found:
        yield found, model


def test_records_of_a_frame_are_predicted_as_by_the_estimator(table, model):
    frame = messy()[180:190]
    known = frame[COLUMNS].assign(sold=frame["sold"].dt.strftime("%Y-%m-%d %H:%M:%S"))
    records = json.loads(known.to_json(orient="records"))
    assert any(record["size"] is None for record in records), "the frame should have a gap"
    answer = table.predict({"records": records, "coverage": 0.8, "quantiles": [0.5]})
    assert answer.status == 200, answer.text
    found, (mean, std) = answer.json(), model.predict(frame, return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9)  # in the units of y: the model has learned log(y)
    np.testing.assert_allclose(found["std"], std, rtol=1e-9)
    np.testing.assert_allclose([found["lower"], found["upper"]], model.predict_interval(frame, 0.8), rtol=1e-9)
    np.testing.assert_allclose(found["quantiles"], model.predict_quantiles(frame, [0.5]), rtol=1e-9)
    assert found["notes"] == [f"column 'size': {frame['size'].isna().sum()} gap(s) were filled in as in the fit"]


def test_words_for_truth_and_new_levels_are_taken_as_in_the_fit(table, model):
    found = table.predict({"records": [RECORD, RECORD | {"member": "yes"}, RECORD | {"colour": "mauve"}]}).json()
    assert found["mean"][0] == found["mean"][1] != found["mean"][2]
    assert found["notes"] == [
        "column 'colour': 1 value(s) are levels that no training row has; they count as an average row"
    ]
    early = pd.DataFrame([RECORD | {"sold": pd.Timestamp("1950-01-01")}])
    answer = table.predict({"records": [RECORD | {"sold": "1950-01-01"}]}).json()
    assert answer["n_outside"] == 1
    assert answer["mean"] == pytest.approx(model.predict(early))


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"rows": [[1.0] * 5]}, "rows", "send records, objects with the names of its columns: sold, colour"),
        ({"records": [RECORD, {"sold": "2023-05-01", "x": 1}]}, "records[1].colour", "and has x, which the model"),
        ({"records": [RECORD | {"size": "40,5"}]}, "records[0].size", "a finite number or null, found '40,5'"),
        ({"records": [RECORD | {"size": True}]}, "records[0].size", "a finite number"),
        ('{"records": [' + json.dumps(RECORD).replace("40.5", "1e999") + "]}", "records[0].size", "found inf"),
        ('{"records": [' + json.dumps(RECORD).replace("40.5", "9" * 400) + "]}", "records[0].size", "a finite number"),
        ({"records": [RECORD | {"sold": 20230501}]}, "records[0].sold", 'a text such as "2022-01-0'),
        (
            {"records": [RECORD, RECORD | {"sold": "²:30"}]},
            "records[1].sold",
            "records[1] holds '²:30', which is no date",
        ),
        ({"records": [RECORD | {"sold": "2023-02-30"}]}, "records[0].sold", "which is no date or time as in the fit"),
        ({"records": [RECORD | {"member": "perhaps"}]}, "records[0].member", "no true or false; correct it"),
        ({"records": [RECORD | {"member": 1}]}, "records[0].member", "must be true or false or null, found 1"),
        ({"records": [RECORD | {"colour": ["red"]}]}, "records[0].colour", "a text (blue, green, red) or null"),
        ({"records": [RECORD | {"colour": "\ud800"}]}, "records[0].colour", "a text"),
        ({"records": [RECORD | {"\udfff": 1}]}, "records[0].\udfff", "which the model has not"),
        ({"records": [RECORD], "include_noise": False}, "include_noise", "has learned log(price)"),
    ],
)
def test_what_cannot_be_used_is_refused_by_field_and_the_server_lives_on(table, body, field, words):
    answer = table.predict(body)
    assert answer.status == 422, answer.text
    assert answer.json()["field"] == field
    assert words in answer.json()["error"]
    assert table.predict({"records": [RECORD]}).status == 200


def test_all_problems_of_a_request_come_at_once(table, strict):
    told = table.predict({"records": [RECORD | {"size": "big", "sold": 3, "member": 2, "shop": {}}]}).json()
    assert told["error"].count("must be") == 3
    assert told["error"].endswith("(and 1 more)")
    server, _ = strict
    gaps = server.predict({"records": [{"code": 1, "member": True}, {"code": "", "member": None}]}).json()
    assert gaps["field"] == "records[1].member"
    assert gaps["error"].count("has 1 missing or infinite value(s), first in records[1]; fill them") == 2


def test_numbers_that_are_names_may_come_as_numbers_or_texts(strict):
    server, model = strict
    found = server.predict({"records": [{"code": code, "member": False} for code in (2, 2.0, "2", 2.5)]}).json()
    frame = pd.DataFrame({"code": ["2", "2", "2", "2.5"], "member": False})
    np.testing.assert_allclose(found["mean"], model.predict(frame), rtol=1e-9)
    assert found["notes"][0].startswith("column 'code': 1 value(s)")
    latent = server.predict({"records": [{"code": 2, "member": False}], "include_noise": False}).json()
    encoded = model.encode(frame[:1])
    assert latent["std"] == pytest.approx(model.fitted.predict(encoded, return_std=True, include_noise=False)[1])


def test_card_document_and_pages_show_the_tables_columns(table, strict):
    card = table.get("/model").json()
    inputs = {each["name"]: each for each in card["inputs"]}
    assert list(inputs) == COLUMNS
    assert inputs["colour"]["levels"] == ["blue", "green", "red"]
    assert inputs["sold"]["kind"] == "date or time"
    assert 0 < inputs["size"]["lower"] < inputs["size"]["upper"]
    assert "log(price)" in card["summary"][0]
    document = table.get("/openapi.json").json()
    request = document["components"]["schemas"]["PredictRequest"]
    assert request["oneOf"] == [{"required": ["records"]}]
    wanted = request["properties"]["records"]["items"]
    assert wanted["required"] == COLUMNS
    assert wanted["properties"]["colour"]["examples"] == ["blue", "green", "red"]
    assert {"type": "null"} in wanted["properties"]["size"]["anyOf"]
    assert request["properties"]["include_noise"]["enum"] == [True]
    example = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert table.predict(example).status == 200
    for page in ("/", "/docs"):
        text = table.get(page).text
        assert "colour" in text
        assert "colour=red" not in text
    server, _ = strict
    kinds = server.get("/openapi.json").json()["components"]["schemas"]["PredictRequest"]["properties"]
    assert {"type": "null"} not in kinds["records"]["items"]["properties"]["code"]["anyOf"]
    assert "enum" not in kinds["include_noise"]


def test_several_targets_are_served_together(model):
    frame = messy()[:60]
    gp = certgp.SparseGP(5, length_scale=4.0, optimize=False, random_state=0)
    two = TableGP(gp, missing="impute", drop=["sold", "shop"]).fit(
        frame.assign(twice=2 * frame["price"]), ["price", "twice"]
    )
    with serving(two, Limits()) as server:
        record = {name: RECORD[name] for name in ("colour", "size", "member")}
        mean = server.predict({"records": [record]}).json()["mean"]
        assert mean[0][1] == pytest.approx(2 * mean[0][0])
        card, proven = server.get("/model").json(), server.get("/certificate").json()
        assert "(colour, size, member), which became" in card["summary"][0]
        assert card["summary"][1].startswith("twice: A Gaussian process that learned twice")
        assert [each.partition(": ")[0] for each in proven["meaning"]] == ["price", "twice"]
        assert list(proven["certificate"]["outputs"]) == ["price", "twice"]
        assert "twice: " in card["certificate"]


def test_the_command_refuses_to_export_a_table_but_exports_its_numbers(model, tmp_path, capsys):
    import onnxruntime

    from certgp.export import to_onnx

    path, graph = tmp_path / "table.model", tmp_path / "table.onnx"
    model.save(path)
    assert main(["export", str(path), "--onnx", str(graph)]) == 2
    assert "certgp export --encoded" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(certgp.CertgpError, match=r"colour=blue, colour=green.*to_onnx\(model.fitted, path\)"):
        to_onnx(model, graph)
    assert not graph.exists()
    assert main(["export", str(path), "--onnx", str(graph), "--encoded"]) == 0
    assert "mean and std of log(price)" in capsys.readouterr().out
    X = model.encode(messy()[180:]).take(slice(None))[0]
    mean = onnxruntime.InferenceSession(graph).run(["mean"], {"X": X})[0]
    np.testing.assert_allclose(np.exp(mean), model.predict_quantiles(messy()[180:], [0.5])[:, 0], rtol=1e-6)


def test_a_surrogate_names_the_part_that_takes_numbers(model):
    from certgp.optimisation import Surrogate

    with pytest.raises(certgp.CertgpError, match=r"give model\.fitted"):
        Surrogate(model)
    assert Surrogate(model.fitted).num_outputs == 1
