"""Two pages: one to try the model, one that documents its interface. They fetch nothing but answers of this server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from certgp.markup import Markup, tag
from certgp.report.charts import table
from certgp.report.page import page_head
from certgp.serving.served import ServedModel
from certgp.version import __version__

_LINKS = {"Try it": "/", "Interface": "/docs", "OpenAPI document": "/openapi.json", "Model card": "/model"}
_MANY_INPUTS = 40  # more are not asked for one by one


def landing_page(served: ServedModel, address: str) -> str:
    """A form with the inputs, and what the model is."""
    card = served.card()
    script = files("certgp.serving").joinpath("page.js").read_text(encoding="utf-8")
    body = [
        tag("section", tag("h2", "Predict"), _form(served, card), id="try"),
        tag("section", tag("h2", "What it is"), *(tag("p", text) for text in card["summary"]), id="fitted"),
        tag(
            "section",
            tag("h2", "What is proven"),
            *(tag("p", text) for text in served.proven(limits=True)),
            id="proven",
        ),
        tag(
            "section",
            tag("h2", "From a program"),
            tag("p", "Send many rows at once; the answer has a number per row."),
            tag("div", tag("pre", _command(served, address)), class_="scroll", tabindex="0"),
            id="program",
        ),
    ]
    lead = f"Type the inputs and get a prediction of {served.target} with its uncertainty."
    return _page(card["title"], lead, body, script)


def _form(served: ServedModel, card: Mapping[str, Any]) -> Markup:
    if len(card["inputs"]) > _MANY_INPUTS:
        return tag("p", f"The model has {len(card['inputs'])} inputs, too many to type; use it from a program.")
    fields = []
    for j, (each, value) in enumerate(zip(card["inputs"], served.inputs.example(), strict=True)):
        label = tag("label", each["name"], for_=f"x{j}")
        hint = tag("small", _hint(each), class_="muted")
        fields.append(tag("div", label, _control(f"x{j}", each, value), hint, class_="field"))
    answers = {"mean": f"expected {served.target}", "interval": "95 % interval", "std": "standard deviation"}
    shown = [tag("div", tag("dt", text), tag("dd", "…", id=key)) for key, text in answers.items()]
    return tag(
        "form",
        tag("div", *fields, class_="answers"),
        tag("p", tag("button", "Predict", type="submit")),
        tag("dl", *shown, class_="answers", aria_live="polite"),
        tag("p", "", id="note", role="status", class_="care"),
        id="ask",
        data_asks="rows" if served.inputs.takes_rows else "records",
    )


def _hint(each: Mapping[str, Any]) -> str:
    """What may be typed."""
    ends = f"{each['lower']:.4g} to {each['upper']:.4g}" if "lower" in each else each["kind"]
    return f"{ends}, or nothing" if each.get("gaps") else ends


def _control(key: str, each: Mapping[str, Any], value: Any) -> Markup:
    """Something to type or choose a value with; nothing is a gap, where the model takes them."""
    kind, gaps = each.get("kind", "number"), bool(each.get("gaps"))
    known: dict[str, Any] = {"id": key, "name": each["name"], "data_kind": kind, "required": not gaps}
    if kind == "number":
        return tag("input", type="number", step="any", value=f"{value:.4g}", **known)
    choices = ["true", "false"] if kind == "true or false" else each.get("levels")
    if choices is None:
        return tag("input", type="text", value=str(value), **known)
    first = "true" if value is True else str(value)
    options = [tag("option", choice, value=choice, selected=choice == first) for choice in choices]
    return tag("select", *options, *([tag("option", "(nothing)", value="")] if gaps else []), **known)


def documentation_page(schema: Mapping[str, Any], served: ServedModel, address: str) -> str:
    """The OpenAPI document for readers, without a script."""
    known = schema["components"]["schemas"]
    body = [
        _operation(method, path, operation, known)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    return _page(
        schema["info"]["title"], schema["info"]["description"], [_start(served, address), *_columns(served), *body], ""
    )


def _start(served: ServedModel, address: str) -> Markup:
    return tag(
        "section",
        tag("h2", "A first request"),
        tag("div", tag("pre", _command(served, address)), class_="scroll", tabindex="0"),
        tag("p", 'A refused request gets {"error": what is wrong and what to do, "field": where}.', class_="muted"),
    )


def _columns(served: ServedModel) -> list[Markup]:
    """The columns of a table, where the model has learned from one."""
    if served.inputs.takes_rows:
        return []
    rows = [[each["name"], each["kind"], each["takes"], each["treatment"]] for each in served.inputs.described()]
    header = ["column", "kind", "value in a record", "what the fit made of it"]
    return [tag("section", tag("h2", "Columns"), table(header, rows, "words"))]


def _operation(method: str, path: str, operation: Mapping[str, Any], known: Mapping[str, Any]) -> Markup:
    parts = [tag("h2", f"{method.upper()} {path}"), tag("p", operation.get("description", ""))]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        parts += [tag("h3", "Request"), _fields(content["schema"], known)]
        parts += [
            tag("div", tag("pre", json.dumps(content["example"], ensure_ascii=False)), class_="scroll", tabindex="0")
        ]
    answers = []
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json", {}).get("schema")
        if status.startswith("2") and content is not None:
            parts += [tag("h3", "Answer"), _fields(content, known)]
        else:
            answers.append([status, answer["description"]])
    if answers:
        parts += [tag("h3", "Refusals"), table(["status", "meaning"], answers, "words")]
    return tag("section", *parts)


def _fields(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Markup:
    found = known[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema
    rows = [
        [name, _type(each), each.get("description", ""), "" if "default" not in each else json.dumps(each["default"])]
        for name, each in found.get("properties", {}).items()
    ]
    header = ["field", "type", "meaning", "default"]
    shown = len(header) if any(row[-1] for row in rows) else len(header) - 1
    return table(header[:shown], [row[:shown] for row in rows], "words")


def _type(schema: Mapping[str, Any]) -> str:
    """In short: number, list of list of number, object."""
    for way in schema.get("anyOf", ()):
        if way.get("type") != "null":
            return _type(way)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("type", "value" if "$ref" not in schema else schema["$ref"].rsplit("/", 1)[-1]))


def _command(served: ServedModel, address: str) -> str:
    quoted = json.dumps(served.example("records"), ensure_ascii=False).replace("'", "'\\''")
    return f"curl {address}predict -H 'content-type: application/json' \\\n  -d '{quoted}'"


def _page(title: str, lead: str, body: list[Markup], script: str) -> str:
    links = tag("nav", tag("ul", *(tag("li", tag("a", t, href=to)) for t, to in _LINKS.items())), aria_label="pages")
    whole = tag(
        "body",
        tag("header", tag("h1", title), tag("p", lead, class_="lead")),
        tag("main", links, *body),
        tag("footer", tag("p", f"Served by certgp {__version__}.")),
        tag("script", Markup(script)) if script else None,
    )
    head = page_head(title, script, "'self'" if script else "'none'")
    return f"<!doctype html>\n{tag('html', head, whole, lang='en')}\n"
