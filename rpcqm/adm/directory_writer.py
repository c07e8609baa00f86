"""What a directory is asked to change, and what it answers ([MS-MQDSSM] 3.1.6.1, .2 and .7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rpcqm.adm.directory_object import DirectoryObject
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.base.completion import Completion

PUBLISHED_OF_MACHINE = (
    "queue_manager_version",
    "operating_system_type",
    "queue_manager_quota",
    "journal_quota",
    "supporting_server",
    "public_encryption_key_list",
)
"""What a queue manager decides itself; the rest is its administrators' of the domain."""


@dataclass(frozen=True, slots=True)
class DirectoryAnswer:
    """The outcome of one change.

    `identifier` is that of the object. DirectoryNotConnected means that it may have been carried
    out or not. `denied` is whether the directory refused it for want of a right, `reason` is the
    directory's sentence. `steps` are what was changed, or would be, one sentence each.
    """

    result: DirectoryOperationResult
    identifier: UUID | None = None
    denied: bool = False
    reason: str = ""
    steps: tuple[str, ...] = ()


class DirectoryWriter(Protocol):
    """Writes into a real directory, which calls objects by identifiers that it chooses itself.

    Each of its changes can be repeated: what is so already is left so. No completion fails.
    """

    @property
    def offline(self) -> bool:
        """Whether the directory has not answered for a time, so that nobody is to wait for it."""
        ...

    def creates(self, element: DirectoryObject) -> bool:
        """Whether objects like this one are written into the directory at all."""
        ...

    def create(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        """Add an object, or take over one of ours that is there and is the same."""
        ...

    def write(
        self, element: DirectoryObject, attributes: Sequence[str]
    ) -> Completion[DirectoryAnswer]:
        """Replace attributes of an object."""
        ...

    def delete(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        """Delete an object of ours: by its identifier, or else by its name."""
        ...
