"""GUIDs as clients of COM write them."""

from uuid import UUID


def braced(identifier: object) -> str:
    """A GUID in braces and upper case; any other text unchanged."""
    return f"{{{identifier}}}".upper() if isinstance(identifier, UUID) else str(identifier)


def guid_of(given: str) -> UUID | None:
    """The GUID of a text with or without braces; None where it is none."""
    if given[:1] == "{" and given[-1:] == "}":
        given = given[1:-1]
    try:
        return UUID(given)
    except ValueError:
        return None
