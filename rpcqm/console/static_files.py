"""The style sheet and the script of the pages, under names that change with what is in them."""

import hashlib
from functools import cache
from pathlib import Path

from rpcqm.base.look import LOOK

BASE = "/console/static/"
_FILES = {"console.css": LOOK, "console.js": Path(__file__).parent / "assets" / "console.js"}
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """Octets and type by path: what is not among these paths is not served."""
    return {
        path: (octets, _TYPES[Path(path).suffix])
        for name, file in _FILES.items()
        for octets in [file.read_bytes()]
        for path in [_path(name, octets)]
    }


@cache
def asset_path(name: str) -> str:
    """The path of a file, as pages have it."""
    return _path(name, _FILES[name].read_bytes())


def _path(name: str, octets: bytes) -> str:
    stem, _, ending = name.partition(".")
    return f"{BASE}{stem}.{hashlib.sha256(octets).hexdigest()[:16]}.{ending}"
