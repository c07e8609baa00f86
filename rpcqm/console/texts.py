"""The words of the pages, from `texts.toml`, by keys like `logon.title`."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def texts() -> dict[str, str]:
    """All of them."""
    tables = tomllib.loads((Path(__file__).parent / "texts.toml").read_text("utf-8"))
    found: dict[str, str] = {}
    for name, value in tables.items():
        given = {name: value} if isinstance(value, str) else _of_table(name, value)
        found |= given
    return found


def _of_table(name: str, table: dict[str, str]) -> dict[str, str]:
    return {f"{name}.{key}": str(value) for key, value in table.items()}


def text(key: str, **filled: object) -> str:
    """The words of a key, or those of `KEY_one` if `number` is one; raises KeyError if unknown."""
    one = f"{key}_one"
    if str(filled.get("number")) == "1" and one in texts():
        key = one
    words = texts()[key]
    return words.format(**{name: _within(words, name, value) for name, value in filled.items()})


def _within(words: str, name: str, value: object) -> object:
    """A value without its full stop where one follows in the words."""
    if isinstance(value, str) and value.endswith(".") and f"{{{name}}}." in words:
        return value.removesuffix(".")
    return value
