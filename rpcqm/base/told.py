"""Dataclasses as JSON: each class declares once which members it has, and in what form."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints
from uuid import UUID

from rpcqm.base.text import iso_time

Moment = Annotated[int, "a moment"]
"""Milliseconds since 1970; JSON has ISO 8601."""
MomentOrNone = Annotated[int, "a moment, or none"]
"""A moment, or 0 where there is no moment; JSON has null for 0."""
TextOrNone = Annotated[str, "a text, or none"]
"""A text, of which an empty one is null in JSON."""

_NAMES = {"identifier": "id"}
"""Members of JSON with another name than their attributes."""


def told(value: object) -> dict[str, Any]:
    """The members of a dataclass as JSON values; nested dataclasses are converted alike."""
    found: dict[str, Any] = _told(value)
    return found


def member_of(attribute: str) -> str:
    """The JSON name of an attribute."""
    return _NAMES.get(attribute, attribute)


def _told(value: Any) -> Any:
    if is_dataclass(value):
        kinds = _kinds(value.__class__)
        return {
            member_of(name): kinds.get(name, _told)(getattr(value, name))
            for name in (field.name for field in fields(value))
        }
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _told(each) for key, each in value.items()}
    return [_told(each) for each in value] if isinstance(value, tuple) else value


@cache
def _kinds(described: type) -> dict[str, Callable[[Any], Any]]:
    """The converters of attributes whose annotation says more than their type."""
    hints = get_type_hints(described, include_extras=True)
    return {name: _TOLD[hint] for name, hint in hints.items() if hint in _TOLD}


def _moment(milliseconds: int) -> str | None:
    return iso_time(milliseconds / 1000)


def _text(text: str) -> str | None:
    return text or None


_TOLD: dict[object, Callable[[Any], Any]] = {
    Moment: _moment,
    MomentOrNone: _moment,
    TextOrNone: _text,
}
