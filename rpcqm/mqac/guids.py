"""GUIDs in the form of COM."""

import re
from uuid import UUID

_GUID = re.compile("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def braced(identifier: object) -> str:
    """A GUID in braces and upper case; any other text unchanged."""
    return f"{{{identifier}}}".upper() if isinstance(identifier, UUID) else str(identifier)


def guid_of(given: str) -> UUID | None:
    """The GUID of a text with or without braces; None also for UUID's other forms."""
    if given[:1] == "{" and given[-1:] == "}":
        given = given[1:-1]
    return UUID(given) if _GUID.fullmatch(given) else None
