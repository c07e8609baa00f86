"""From JSON and texts to models, and from answers to JSON."""

import functools
import json
import re
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import unquote_to_bytes

from pydantic import TypeAdapter, ValidationError

from rpcqm.api.problems import bad_request

T = TypeVar("T")

_NO_OCTET = re.compile("%(?![0-9A-Fa-f]{2})")


def percent_decoded(text: str) -> str:
    """Percent-encoded UTF-8, which has a character for each octet; raises ValueError."""
    if "%" not in text and text.isascii():
        return text
    if _NO_OCTET.search(text):
        raise ValueError("a % without two hexadecimal digits")
    return unquote_to_bytes(text.encode("latin-1")).decode()


_adapters: dict[type, Any] = {}


def adapter(model: type) -> Any:
    """What reads and describes a model; it is made when it is needed first."""
    found = _adapters.get(model)
    if found is None:
        found = _adapters[model] = TypeAdapter(model)
    return found


def read_json(model: type[T], body: bytes) -> T:
    """A body as its model; raises Refusal."""
    try:
        read = cast("T", adapter(model).validate_json(body, strict=True))
    except ValidationError as error:
        raise bad_request(_sentence(error)) from None
    json.loads(body, object_pairs_hook=_once)  # which would take the last of two (G321)
    return read


def _once(members: list[tuple[str, object]]) -> None:
    names = [name for name, _ in members]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_request(f"{twice[:64]}: this member is there twice")


def read_texts(model: type[T], given: Mapping[str, object]) -> T:
    """Parameters or headers, which are texts, as their model; raises Refusal.

    The model is not to be changed: those without any are one.
    """
    try:
        if not given:
            return cast("T", _without_any(cast("Hashable", model)))
        _check_numbers(model, given)
        return cast("T", adapter(model).validate_python(dict(given)))
    except ValidationError as error:
        raise bad_request(_sentence(error)) from None


def _check_numbers(model: type, given: Mapping[str, object]) -> None:
    """Numbers are written as in JSON, not in all the ways that Python reads; raises Refusal."""
    for name in _numbers(cast("Hashable", model)) & given.keys():
        if not _INTEGER.fullmatch(str(given[name])):
            raise bad_request(f"{name}: a whole number in decimal digits is wanted")


_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,19})", re.ASCII)


@functools.cache
def _numbers(model: Hashable) -> frozenset[str]:
    """The members of a model that are numbers, null or not."""
    members = adapter(cast("type", model)).json_schema().get("properties", {})
    return frozenset(
        name
        for name, schema in members.items()
        if any(each.get("type") == "integer" for each in (schema, *schema.get("anyOf", ())))
    )


@functools.cache
def _without_any(model: Hashable) -> object:
    return adapter(cast("type", model)).validate_python({})


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def write_json(value: object) -> bytes:
    """An answer's body; half a surrogate pair is told as `?`, as JSON has none."""
    return _encode(value).encode("utf-8", "replace")


def _sentence(error: ValidationError) -> str:
    """The first mistake, with its place."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
