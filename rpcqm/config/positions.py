"""The lines on which the keys of a TOML document stand.

The standard library's parser keeps no positions. So each beginning of the document is parsed, line
by line: a key that a longer beginning has and a shorter one lacks stands between their ends.
"""

import tomllib
from collections.abc import Iterator, Mapping

KeyPath = tuple[str, ...]


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) on which each key or table of a valid document first appears.

    The tables of a list are under their numbers, from 0.
    """
    lines = text.split("\n")
    known: dict[KeyPath, int] = {}
    begin = 0
    for end in range(1, len(lines) + 1):
        if _is_empty(lines[end - 1]) and begin == end - 1:
            begin = end
            continue
        try:
            document = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value that spans lines
        for path in _paths(document):
            known.setdefault(path, begin + 1)
        begin = end
    return known


def _is_empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _paths(table: Mapping[str, object], above: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in table.items():
        path = (*above, key)
        yield path
        if isinstance(value, dict):
            yield from _paths(value, path)
        elif isinstance(value, list):
            tables = {str(at): each for at, each in enumerate(value) if isinstance(each, dict)}
            yield from _paths(tables, path)
