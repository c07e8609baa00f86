"""The description of /api/v1 as OpenAPI 3.1, made of the routes and their models."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from rpcqm.api import models, reading
from rpcqm.api.problems import WITH_RETRY
from rpcqm.api.routes import BASE, OCTETS, ROUTES, Route

_REF = "#/components/schemas/{model}"
REFUSALS = {
    400: "the request is not as it must be",
    401: "nobody has logged on",
    403: "the caller may not do that",
    404: "it is not there",
    409: "it is in another state",
    410: "it has ended",
    413: "the request is too large",
    415: "the body is encoded",
    422: "another request was made under this key",
    429: "too many wrong passwords",
    503: "try again later",
}
_BINARY = {"type": "string", "format": "binary"}
"""Octets, as makers of clients know them."""
_OTHER_REQUEST = 422
"""Only where a key is taken."""


def document(version: str) -> dict[str, Any]:
    """The whole description."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(BASE + route.path, {})[route.method.lower()] = _operation(route, schemas)
    _schema(models.Problem, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rpcqm",
            "version": version,
            "description": "The interface for programs of an MSMQ-compatible queue manager.",
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"basic": []}, {"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                scheme: {"type": "http", "scheme": scheme} for scheme in ("basic", "bearer")
            },
        },
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": route.name,
        "summary": _summary(route),
        "tags": [route.segments[0]],
        "parameters": _parameters(route, schemas),
        "responses": _responses(route, schemas),
    }
    if route.content is not None:
        content = {"application/json": {"schema": _schema(route.content, schemas)}}
        told["requestBody"] = {"required": True, "content": content}
    elif route.takes:
        told["requestBody"] = {"content": {OCTETS: {"schema": _BINARY}}}
    return told


def _summary(route: Route) -> str:
    text = route.function.__doc__ or ""
    return " ".join(text.split())


def _parameters(route: Route, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {"name": each[1:-1], "in": "path", "required": True, "schema": _of_path(each[1:-1])}
        for each in route.segments
        if each.startswith("{")
    ]
    found += _each(route.parameters, "query", schemas)
    if route.headers is not None:
        found += _each(route.headers, "header", schemas)
    if route.keyed:
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "schema": schema})
    if route.resumes:
        schema = {"type": "string", "pattern": "^[0-9]{1,20}$"}
        found.append({"name": "Last-Event-ID", "in": "header", "schema": schema})
    return found


_PATTERNS = {"lookup_id": "^[0-9]{1,20}$", "id": models.IDENTIFIER}
"""Of names in paths that are no free texts."""


def _of_path(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "minLength": 1}
    return schema | {"pattern": _PATTERNS[name]} if name in _PATTERNS else schema


def _each(model: type, place: str, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of a model as parameters; one that may be left out is never null."""
    found = []
    for name, schema in _described(model, schemas).get("properties", {}).items():
        shown = dict(schema)
        if isinstance(shown.get("type"), list):
            shown["type"] = shown["type"][0]
        if "enum" in shown:
            shown["enum"] = [known for known in shown["enum"] if known is not None]
        if shown.get("default", 0) is None:
            del shown["default"]
        if place == "header":
            name = f"Rpcqm-{name.title().replace('_', '-')}"  # as it is sent
            shown = _as_text(shown)
        found.append({"name": name, "in": place, "schema": shown})
    return found


def _as_text(schema: dict[str, Any]) -> dict[str, Any]:
    """A list in a header is words between commas; makers of clients know it as text alone."""
    if schema.get("type") != "array":
        return schema
    word = "|".join(schema["items"]["enum"])
    most = schema["maxItems"] - 1
    return {"type": "string", "pattern": f"^({word})(,({word})){{0,{most}}}$"}


def _responses(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, model in route.gives.items():
        told: dict[str, Any] = {"description": "done"}
        if model is not None:
            either = model if isinstance(model, tuple) else (model,)
            told["content"] = dict(_content(each, schemas) for each in either)
        responses[str(status)] = told
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}}
    for number, text in REFUSALS.items():
        if number == _OTHER_REQUEST and not route.keyed:
            continue
        told = {"description": text, "content": problem}
        if number in WITH_RETRY:
            told["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
        if number == HTTPStatus.UNAUTHORIZED:
            told["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
        responses[str(number)] = told
    return responses


def _content(model: type | str, schemas: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type of an answer, with its schema."""
    if isinstance(model, type):
        return "application/json", {"schema": _schema(model, schemas)}
    # events have none, because some tools read them one by one
    return model, {"schema": _BINARY if model == OCTETS else {}}


def _described(model: type, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model; those that it refers to are among the others then."""
    told = reading.adapter(model).json_schema(ref_template=_REF)
    schema: dict[str, Any] = _plain(told)
    inner = schema.pop("$defs", {})
    for name in {*_that_may_be_null(told)}:
        inner[name]["type"] = ["object", "null"]
    schemas |= inner
    return schema


def _that_may_be_null(schema: Any) -> Iterator[str]:
    """The models in the place of which null may stand: in one place is in each, for a choice."""
    if isinstance(schema, list):
        for each in schema:
            yield from _that_may_be_null(each)
    elif isinstance(schema, dict):
        choices = schema.get("anyOf", ())
        if _NULL in choices:
            yield from (each["$ref"].rpartition("/")[2] for each in choices if "$ref" in each)
        for each in schema.values():
            yield from _that_may_be_null(each)


_NULL = {"type": "null"}


def _plain(schema: Any) -> Any:
    """Without titles, of which makers of clients make models, as of choices between it and null."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _plain(each) for name, each in schema.items() if not _is_title(name, each)}
    if _NULL in plain.get("anyOf", ()):
        plain |= _joined([each for each in plain.pop("anyOf") if each != _NULL])
    return plain


def _joined(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for several kinds of values and null; of a model that says itself that it may be.

    What bounds a kind of values, bounds no other one.
    """
    if "$ref" in choices[0]:
        return choices[0]
    joined: dict[str, Any] = {}
    for each in choices:
        joined |= each
    joined["type"] = [*(each["type"] for each in choices), "null"]
    if "const" in joined:
        joined["pattern"] = f"^{re.escape(joined.pop('const'))}$"
    if "enum" in joined:
        joined["enum"] = [*joined["enum"], None]
    return joined


def _is_title(name: str, value: object) -> bool:
    """Whether it is one and no member of that name, which has a schema."""
    return name == "title" and isinstance(value, str)


def _schema(model: type, schemas: dict[str, Any]) -> dict[str, str]:
    if model.__name__ not in schemas:
        schemas[model.__name__] = _described(model, schemas)
    return {"$ref": _REF.format(model=model.__name__)}
