"""What traces need besides their settings: the extra, and the headers for the collector."""

import re
from importlib.util import find_spec
from pathlib import Path

from rpcqm.base.files import PermissionsTooWide, read_private
from rpcqm.config.otel_section import MOST_HEADERS, OtelSection
from rpcqm.config.values import ConfigurationError, Mistake

NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.common", "requests")
_LARGEST = 65_536
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER = re.compile(_NAME.join(("(", r"):[ \t]*([\x21-\x7e][\x20-\x7e]*)")))


def check_otel(section: OtelSection) -> list[Mistake]:
    """What hinders traces that are configured; nothing is imported for that."""
    if not section.endpoint:
        return []
    mistakes = []
    if not all(map(_is_there, NEEDED)):
        text = "needs the extra otel, which is not installed: pip install 'rpcqm[otel]'."
        mistakes.append(Mistake("otel.endpoint", text))
    try:
        read_headers(section.headers_file)
    except ConfigurationError as error:
        mistakes += error.mistakes
    return mistakes


def read_headers(file: Path | None) -> dict[str, str]:
    """The headers for the collector; ConfigurationError with the first mistake of the file.

    No sentence repeats what the file holds: it may be secret.
    """
    if file is None:
        return {}
    try:
        octets = read_private(file, _LARGEST + 1)
    except PermissionsTooWide as error:
        raise _mistake(f"{error}.") from None
    except OSError as error:
        raise _mistake(f"{file} cannot be read: {error.strerror}.") from None
    if len(octets) > _LARGEST or octets.count(b"\n") > MOST_HEADERS:
        raise _mistake(f"{file} has more than {MOST_HEADERS} lines, or than {_LARGEST} bytes.")
    headers: dict[str, str] = {}
    for number, text in enumerate(octets.decode("latin-1").splitlines(), 1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        found = _HEADER.fullmatch(line)
        if found is None:
            raise _mistake(f"{file}: line {number} is no `Name: value`.")
        headers[found[1]] = found[2]
    return headers


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _mistake(text: str) -> ConfigurationError:
    return ConfigurationError([Mistake("otel.headers_file", text)])
