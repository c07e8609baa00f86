"""The captures that paths stand for, on file systems of this machine."""

import glob
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from rpcqm.pipeline.errors import SourceError

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>/.*)", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(r"(?://(?:localhost)?(?=/))?(?P<path>/[^/].*|/)", re.IGNORECASE | re.DOTALL)
_BRACES = re.compile(r"(.*?)\{([^{}]*)\}(.*)", re.DOTALL)


def given_paths(options: Mapping[str, str]) -> list[str]:
    """The paths of a data source's options, as Spark hands them on; SourceError if there are none.

    `load("a")` is the option path, `load(["a", "b"])` the option paths, which is JSON.
    """
    if several := options.get("paths", ""):
        return [str(each) for each in json.loads(several)]
    if not options.get("path", ""):
        raise SourceError("msmq_capture reads files: name them, as in load(PATH).")
    return separated(options["path"])


def separated(text: str) -> list[str]:
    """The paths between commas; a name that is there is one path, whatever it holds.

    Commas between braces separate the alternatives of one name.
    """
    if Path(text).exists():
        return [text]
    paths, depth = [""], 0
    for character in text:
        depth += (character == "{") - (character == "}" and depth > 0)
        if character == "," and not depth:
            paths.append("")
        else:
            paths[-1] += character
    return [path for path in paths if path]


def expand(paths: Iterable[str]) -> list[Path]:
    """The files that paths, globs and directories stand for, sorted, each once.

    Raises SourceError for a path that is not there, and for one of another file system.
    """
    found: set[Path] = set()
    for text in paths:
        matches = _matches(text)
        if not matches:
            raise SourceError(f"{text} is not there.")
        for path in matches:
            if path.is_dir():
                found.update(each for each in path.rglob("*") if each.is_file())
            else:
                found.add(path)
    return sorted(found)


def local_path(text: str) -> str:
    """The path of a URL with the scheme file, others unchanged; SourceError for a URL elsewhere.

    (G474)
    """
    url = None if Path(text).exists() else _URL.fullmatch(text)
    if url is None:
        return text
    found = _FILE.fullmatch(url["rest"]) if url["scheme"].lower() == "file" else None
    if found is None:
        raise SourceError(
            f"{text} is not on a file system of this machine: mount it, or copy it to a directory, "
            "and name its path."
        )
    return found["path"]


def _matches(text: str) -> list[Path]:
    """What a path or a pattern stands for; `%20` and the like only where the name has no `%`."""
    path = local_path(text)
    for each in (path, unquote(path)) if path != text else (path,):
        if Path(each).exists():
            return [Path(each)]
        if found := [Path(name) for one in _alternatives(each) for name in glob.glob(one)]:
            return found
    return []


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns that `{a,b}` stands for, as in Spark's own sources."""
    braces = _BRACES.fullmatch(pattern)
    if braces is None:
        yield pattern
        return
    before, inner, after = braces.groups()
    for each in inner.split(","):
        yield from _alternatives(f"{before}{each}{after}")
