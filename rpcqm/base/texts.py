"""Texts from outside, so that they neither move a cursor nor hide or turn what stands beside them.

What Unicode does not count as printable is dangerous on a terminal: control characters of both
sets, marks of the direction of writing, separators of lines, and what has no width.
"""

import json
from typing import Any


def printable(text: str, keep: str = "") -> str:
    """The text, each character that is not printable as `·`, but for those of `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else "·" for c in text)


def json_text(value: Any, indent: int | None = None) -> str:
    """A value in JSON, with escapes for what is not printable and nothing else."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    strange = {ord(c): _escape(c) for c in set(text) if not c.isprintable() and c != "\n"}
    return text.translate(strange)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
