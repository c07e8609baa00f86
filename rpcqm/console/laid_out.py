"""XML and JSON that are one long line, in lines: only blanks between their parts are added.

What is no whole document, or would be longer than a page shows, is left as it is.
"""

import json
import re
from collections.abc import Iterator

_DEEPEST = 40
"""Levels that are set in: what is deeper stands below what is that deep."""
_PARTS_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+')
_END_OF_TAG = re.compile(r"""[>"']""")
_SPECIAL = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))


def laid_out(text: str, longest: int) -> str | None:
    """A document of one line in lines, of `longest` characters at most; None to leave it."""
    stripped = text.strip()
    if "\n" in stripped or len(text) > longest:
        return None
    if stripped[:1] in ("{", "["):
        lines = _json_lines(stripped)
    elif stripped[:1] == "<":
        lines = _xml_lines(stripped)
    else:
        return None
    found, size = [], 0
    for each in lines or ():
        found.append(each)
        size += len(each) + 1
        if size > longest:
            return None
    return "\n".join(found) if len(found) > 1 else None


def _set_in(depth: int, line: str) -> str:
    return "  " * min(depth, _DEEPEST) + line


# JSON


def _json_lines(text: str) -> Iterator[str] | None:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _of_json(_PARTS_OF_JSON.findall(text))


def _of_json(parts: list[str]) -> Iterator[str]:
    """One line for each member and each element; what is empty stays on its line."""
    depth, line = 0, ""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if part in "}]" and line and line[-1] not in "{[":
            yield _set_in(depth, line)
            line = ""
        if part in "}]":
            depth -= 1
        line += f"{part} " if part == ":" else part
        if part == "," or (part in "{[" and following not in "}]"):
            yield _set_in(depth, line.rstrip())
            line = ""
        if part in "{[":
            depth += 1
    if line:
        yield _set_in(depth, line)


# XML


def _xml_lines(text: str) -> Iterator[str] | None:
    parts = _parts_of_xml(text)
    return None if parts is None else _of_xml(parts)


def _parts_of_xml(text: str) -> list[str] | None:
    """Tags and what is between them, in order; None for what does not end."""
    parts, at = [], 0
    while at < len(text):
        end = _end_of_tag(text, at) if text[at] == "<" else text.find("<", at)
        if end < 0 and text[at] == "<":
            return None
        end = len(text) if end < 0 else end
        parts.append(text[at:end])
        at = end
    return parts


def _end_of_tag(text: str, at: int) -> int:
    """Where a tag, a comment or another part ends that begins there; -1 if it does not."""
    for begin, end in _SPECIAL:
        if text.startswith(begin, at):
            found = text.find(end, at + len(begin))
            return -1 if found < 0 else found + len(end)
    while (stop := _END_OF_TAG.search(text, at)) is not None:
        if stop[0] == ">":
            return stop.end()
        at = text.find(stop[0], stop.end()) + 1
        if not at:
            return -1
    return -1


def _of_xml(parts: list[str]) -> Iterator[str]:
    """One line for each tag; an element with nothing but text, and all mixed text, stays on one."""
    depth = line_depth = 0
    line = ""
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else ""
        closes, opens = part.startswith("</"), _opens(part)
        if closes:
            depth = max(depth - 1, 0)
        is_tag = part.startswith("<") and not part.startswith("<![CDATA[")
        beside = not is_tag or not before.startswith("<") or (closes and _opens(before))
        if line and not beside:
            yield _set_in(line_depth, line)
            line = ""
        if not line:
            line_depth = depth
        line += part
        if opens:
            depth += 1
    if line:
        yield _set_in(line_depth, line)


def _opens(part: str) -> bool:
    """Whether a part is a start tag, with an end tag somewhere behind it."""
    return part.startswith("<") and part[1:2] not in "/!?" and not part.endswith("/>")
