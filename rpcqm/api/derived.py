"""Models of what operations tell, made of the classes that say it (`rpcqm.base.told`)."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, make_dataclass
from types import GenericAlias, UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from rpcqm.base.told import Moment, MomentOrNone, TextOrNone, member_of

_JSON: dict[object, Any] = {
    Moment: str,
    MomentOrNone: str | None,
    TextOrNone: str | None,
    UUID: str,
}
_models: dict[object, type] = {}


def model_of(
    described: type[Any], name: str, text: str, more: Mapping[str, Any] | None = None
) -> type:
    """The JSON of a class as a model with a name and a text; models within it are made before.

    `more` are members that follow, with their types in JSON.
    """
    hints = get_type_hints(described, include_extras=True)
    members = [(member_of(each.name), _json(hints[each.name])) for each in fields(described)]
    made = _models[described] = _made(name, text, [*members, *(more or {}).items()])
    return made


def list_of(
    model: type, name: str, member: str, text: str, before: Mapping[str, Any] | None = None
) -> type:
    """A model with a list of another model; `before` are the members in front of it."""
    return _made(name, text, [*(before or {}).items(), (member, GenericAlias(list, (model,)))])


def _made(name: str, text: str, members: list[tuple[str, Any]]) -> type:
    return make_dataclass(name, members, frozen=True, namespace={"__doc__": text})


def _json(hint: Any) -> Any:
    """The type in JSON of what is declared by a hint."""
    if hint in _JSON:
        return _JSON[hint]
    if is_dataclass(hint):
        return _models[hint]
    if get_origin(hint) is UnionType:
        described, none = get_args(hint)
        return _json(described) | none
    if get_origin(hint) is tuple:
        return GenericAlias(list, (_json(get_args(hint)[0]),))
    if get_origin(hint) is Mapping:
        key, value = get_args(hint)
        return GenericAlias(dict, (key, _json(value)))
    return hint
