"""The identity of a node: a random identifier in the data directory, in no backup of it."""

import secrets
from pathlib import Path

from rpcqm.base.files import read_at_most
from rpcqm.replica.following import INSTANCE_SIZE
from rpcqm.store.directory_mark import owned_draft
from rpcqm.store.errors import StoreError

INSTANCE_NAME = "node"


def instance_of(directory: Path) -> bytes:
    """The identifier, created durably if it is missing.

    Raises StoreError for a damaged one, or OSError.
    """
    path = directory / INSTANCE_NAME
    try:
        with path.open("rb") as file:
            text = read_at_most(file, 4 * INSTANCE_SIZE)
    except FileNotFoundError:  # a new node, or one that begins from a copy of another's data
        instance = secrets.token_bytes(INSTANCE_SIZE)
        with owned_draft(path) as file:
            file.write(instance.hex().encode() + b"\n")
        return instance
    try:
        instance = bytes.fromhex(text.decode("ascii"))
        if len(instance) == INSTANCE_SIZE:
            return instance
    except ValueError:
        pass
    raise StoreError(f"{path} is damaged: delete it, and this node counts as a new one.")
