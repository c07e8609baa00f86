"""Offsets of a stream of messages: a batch, its lookup identifiers, and whose they are.

Lookup identifiers are numbers of one queue manager. Those of another queue, or of a queue manager
that was made anew, would be somebody else's messages, which a stream must not remove: an offset
names both, and another queue's is refused (G471).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rpcqm.base.consecutive import consecutive
from rpcqm.base.errors import MQError, RpcFault
from rpcqm.base.text import folded
from rpcqm.pipeline.errors import CheckpointError

if TYPE_CHECKING:
    from rpcqm.client.blocking import BlockingClient
    from rpcqm.codec.names.format_name import FormatName


@dataclass(frozen=True)
class Origin:
    """Which queue a stream reads.

    `queue_manager` is the identifier of the queue manager; it is empty where the queue manager
    does not tell it, which is so over the network unless it serves dependent clients. Then
    `address` counts.
    """

    queue_manager: str
    address: str
    queue: str

    @classmethod
    def of(cls, client: "BlockingClient", address: str, name: "FormatName") -> "Origin":
        """Ask the queue manager who it is; raises ServerUnreachableError."""
        try:
            identifier = str(client.run(client.queues.queue_manager_identifier()))
        except (MQError, RpcFault, ValueError):  # it serves no such calls to this caller
            identifier = ""
        return cls(identifier, address, _queue(name))

    def offset(
        self, batch: int, identifiers: Sequence[int], gone: Sequence[int] = ()
    ) -> dict[str, Any]:
        """The offset of a batch.

        `gone` are messages of earlier batches that could not be removed because they were not
        there. Somebody who had locked one may give it back; it must not be kept twice (G473).
        """
        made = {
            "batch": batch,
            "identifiers": ranges_text(identifiers),
            "queue_manager": self.queue_manager,
            "address": self.address,
            "queue": self.queue,
        }
        return made | {"gone": ranges_text(gone)} if gone else made

    def check(self, offset: Mapping[str, Any]) -> None:
        """Raise CheckpointError for an offset of another queue; earlier versions named none."""
        if "queue" not in offset:
            return
        known = offset["queue_manager"] and self.queue_manager
        member = "queue_manager" if known else "address"
        theirs = (offset[member], offset["queue"])
        ours = (getattr(self, member), self.queue)
        if theirs != ours:
            raise CheckpointError(
                f"The checkpoint is that of the queue {theirs[1]} of {theirs[0]}, and the stream "
                f"reads {ours[1]} of {ours[0]}: give this queue a checkpoint of its own."
            )


def _queue(name: "FormatName") -> str:
    """The queue without its computer, which has several names."""
    try:
        text = str(name.path_name).partition("\\")[2]
    except MQError:  # a PRIVATE= or PUBLIC= name
        text = str(name)
    return folded(text)


def as_ranges(identifiers: Sequence[int]) -> list[list[int]]:
    """Sorted identifiers as [first, last] pairs."""
    return [[first, first + count - 1] for first, count in consecutive(sorted(identifiers))]


def from_ranges(text: str) -> list[int]:
    """The identifiers of `first-last,…`."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def ranges_text(identifiers: Sequence[int]) -> str:
    return ",".join(f"{first}-{last}" for first, last in as_ranges(identifiers))
