"""The description of /api/v1 as a page for people: made of the OpenAPI, without scripts."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rpcqm.base.look import style
from rpcqm.http.statuses import status_table

STYLE = style()
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing is loaded but the icon, and no style but this one counts."""


def page_of(document: Mapping[str, Any]) -> bytes:
    """The page, in UTF-8."""
    info = document["info"]
    title = f"{info['title']} {info['version']}: /api/v1"
    return "".join(
        (
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width, initial-scale=1">',
            '<link rel=icon href="/favicon.ico" type="image/svg+xml" sizes=any>',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{escape(title)}</h1><p>{escape(info['description'])} ",
            'The same for programs: <a href="/api/v1/openapi.json">openapi.json</a>.</p>',
            _contents(document),
            *_operations(document),
            *_refusals(),
            "<h2 id=models>Models</h2>",
            *_models(document),
            "</main></body></html>\n",
        )
    ).encode()


def _contents(document: Mapping[str, Any]) -> str:
    """The table of contents."""
    subjects = {
        operation["tags"][0]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    links = "".join(
        f"<li><a href=#{escape(each)}>{escape(each)}</a></li>"
        for each in (*sorted(subjects), "refusals", "models")
    )
    return f"<nav aria-label=Contents><ul>{links}</ul></nav>"


def _refusals() -> Iterator[str]:
    """The statuses and codes of refusals, with their conditions."""
    yield "<h2 id=refusals>Refusals</h2><p>They are <code>application/problem+json</code> "
    yield '<a href="#Problem">Problem</a>; every code that is not here has the status 400.</p>'
    yield "<table>"
    for status, code, meaning in status_table():
        yield f"<tr><th scope=row>{status.value} <code>{code.name}</code></th>"
        yield f"<td>{escape(meaning)}</td></tr>"
    yield "</table>"


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    """The operations by subject: each with its parameters, its body and its answers."""
    subject = ""
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            if operation["tags"][0] != subject:
                subject = operation["tags"][0]
                yield f"<h2 id={escape(subject)}>{escape(subject)}</h2>"
            yield f"<h3 id={escape(operation['operationId'])}>"
            yield f"<code>{method.upper()} {escape(path)}</code></h3>"
            yield f"<p>{escape(operation['summary'])}</p>"
            yield _parameters(operation["parameters"])
            yield _body(operation)
            yield _answers(operation)


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{escape(each['name'])}</code></th><td>{escape(each['in'])}</td>"
        f"<td>{_type(each['schema'])}{_bounds(each['schema'])}</td></tr>"
        for each in parameters
    )
    return f"<table><caption>Parameters</caption>{rows}</table>" if rows else ""


def _body(operation: Mapping[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return "".join(
        f"<p>Takes <code>{escape(kind)}</code> {_type(each['schema'])}</p>"
        for kind, each in content.items()
    )


def _answers(operation: Mapping[str, Any]) -> str:
    told = []
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            kinds = answer.get("content", {"": {"schema": {}}})
            told += [f"{status} {escape(kind)} {_type(e['schema'])}" for kind, e in kinds.items()]
    return f"<p>Answers {'; '.join(told)}</p>"


def _models(document: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(document["components"]["schemas"].items()):
        told = escape(schema.get("description", ""))
        yield f"<h3 id={escape(name)}>{escape(name)}</h3><p>{told}</p>"
        rows = "".join(
            f"<tr><th scope=row><code>{escape(member)}</code></th>"
            f"<td>{_type(each)}{_bounds(each)}</td></tr>"
            for member, each in schema.get("properties", {}).items()
        )
        yield f"<table>{rows}</table>"


def _bounds(schema: Mapping[str, Any]) -> str:
    """The bounds of a value, and its default."""
    told = []
    if "minimum" in schema:
        told.append(f"from {schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        told.append(f"at most {schema['maxLength']} characters")
    if "maxItems" in schema:
        told.append(f"at most {schema['maxItems']}")
    if schema.get("default") not in (None, ""):
        told.append(f"{json.dumps(schema['default'])} if it is left out")
    return escape("".join(f", {each}" for each in told))


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a value, in a word; models are linked."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        known = [each for each in schema.get("enum", ()) if each is not None]
        choices = {**schema, "type": kind[0]} | ({"enum": known} if known else {})
        return " or ".join((_type(choices), *kind[1:]))
    if "enum" in schema:
        return escape(", ".join(map(str, schema["enum"])))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "")))
