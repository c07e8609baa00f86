"""The place of a backup that a caller asks for over the network (G419)."""

import os
from pathlib import Path

REFUSED = (
    "The backup cannot be made: it goes to a new directory below `storage.backup_directory`, which "
    "must be set; the log says more."
)
"""What everybody is told who gets none: nothing of what exists, and nothing of why."""


def new_place(base: Path | None, wanted: str) -> Path:
    """Make the new, empty directory that `wanted` means below `base`, by a name or a whole path.

    No link is followed below `base`, and nothing that exists is used. Raises ValueError with the
    reason, OSError where it cannot be made.
    """
    if base is None:
        raise ValueError("storage.backup_directory is not set")
    parts = _parts(base, wanted)
    base.mkdir(mode=0o700, exist_ok=True)
    place = base
    for part in parts[:-1]:
        place /= part
        if place.is_symlink() or not place.is_dir():
            raise ValueError(f"{place} is no directory")
    place /= parts[-1]
    place.mkdir(mode=0o700)
    return place


def _parts(base: Path, wanted: str) -> tuple[str, ...]:
    """The names from `base` on; raises ValueError for a path that is not below it."""
    path = Path(wanted)
    if "\0" in wanted or ".." in path.parts:
        raise ValueError("it is no plain path")
    if path.is_absolute():
        path = path.relative_to(base)  # ValueError
    if not path.parts:
        raise ValueError("it is the directory itself")
    return path.parts


def remove_place(place: Path) -> None:
    """Remove a place to which nothing was written."""
    try:
        os.rmdir(place)
    except OSError:  # what could not be removed is for the operator to see
        return
