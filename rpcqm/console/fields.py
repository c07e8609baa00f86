"""The fields of forms that pages are filled with."""

from collections.abc import Iterable
from dataclasses import dataclass

from rpcqm.base.errors import HResult, MQError
from rpcqm.console.texts import text


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `line`, `number`, `text` of several lines, `check` or `choice`."""

    name: str
    words: str
    value: object = ""
    kind: str = "line"
    hint: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()


def field(
    page: str,
    name: str,
    value: object = "",
    kind: str = "line",
    hint: bool = False,
    required: bool = False,
    choices: tuple[str, ...] = (),
) -> Field:
    """A field whose words are those of a page, with a hint if that has one."""
    said = text(f"{page}.{name}_hint") if hint else ""
    return Field(name, text(f"{page}.{name}"), value, kind, said, required, choices)


def check_choice(page: str, name: str, given: str, choices: Iterable[str]) -> None:
    """Raise MQError unless a field, which is called as a page calls it, has one of its choices."""
    known = tuple(choices)
    if given not in known:
        words = text("wrong.choice", name=text(f"{page}.{name}"), choices=", ".join(known))
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, words)
