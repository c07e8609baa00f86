"""The description of /api/v1 as a page for people: made of the OpenAPI, without scripts."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rpcqm.base.look import style

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
            *_operations(document),
            "<h2>Models</h2>",
            *_models(document),
            "</main></body></html>\n",
        )
    ).encode()


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    """By what they are about: each with its parameters, its body and its answers."""
    subject = ""
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            if operation["tags"][0] != subject:
                subject = operation["tags"][0]
                yield f"<h2>{escape(subject)}</h2>"
            yield f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
            yield f"<p>{escape(operation['summary'])}</p>"
            yield _parameters(operation["parameters"])
            yield _body(operation)
            yield _answers(operation)


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{escape(each['name'])}</code></th><td>{escape(each['in'])}</td>"
        f"<td>{_type(each['schema'])}</td></tr>"
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
            f"<tr><th scope=row><code>{escape(member)}</code></th><td>{_type(each)}</td></tr>"
            for member, each in schema.get("properties", {}).items()
        )
        yield f"<table>{rows}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """What a value is, in a word; models are linked."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return escape(", ".join(map(str, schema["enum"])))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "")))
