"""The messages that were taken last, for comparison with repeated ones (G493).

A message that comes again is the same one, unless two queue managers have one identity. Taken
messages are only noted here; they are examined when one comes again.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat

from rpcqm.adm.message import Message
from rpcqm.binary.connection.peer_connection import PeerConnection, plain
from rpcqm.codec.packet.fields import MESSAGE_ID, SOURCE_QUEUE_MANAGER
from rpcqm.qm.identity_conflicts import OTHER_CONTENT, IdentityConflicts

MOST_OCTETS = 8 << 20
"""Messages at port 1801 that are remembered, to compare those that come again with them.

Bound `identity.recent_octets` [octets]: those that came longest ago are not compared any more.
"""
LONGEST = 64 << 10
"""Octets of a packet that is kept whole; a longer one is kept as a digest."""
DIGEST_SIZE = 16

_RUN_OCTETS, _MESSAGE_OCTETS = 500, 100
"""Octets of memory for a run, and for each message of it, besides the packets."""

Number = bytes | int
Key = tuple[bytes, Number]


@dataclass(slots=True)
class TakenRun:
    """Messages of one sequence (b"" for those in no sequence), and the address they came from.

    `numbers` are their numbers in the sequence, or their values of `identity_of`.
    """

    sequence: bytes
    numbers: Sequence[Number]
    packets: Sequence[bytes]
    octets: int

    def each_entry(self) -> Iterator[tuple[Key, bytes]]:
        """The messages by their keys; those in sequence also by their identifiers."""
        yield from zip(zip(repeat(self.sequence), self.numbers), self.packets, strict=False)
        for packet in self.packets if self.sequence else ():
            if len(packet) > DIGEST_SIZE:
                yield (b"", identifier_of(packet)), packet


class RecentMessages:
    """The latest messages of all peers, up to MOST_OCTETS."""

    def __init__(self) -> None:
        self._runs: deque[tuple[TakenRun, str]] = deque()
        self._octets = 0
        self._found: dict[Key, tuple[bytes, str]] = {}
        """Messages by key, of all runs but the last `_unsorted` ones."""
        self._unsorted = 0

    def __len__(self) -> int:
        return sum(len(run.numbers) for run, _ in self._runs)

    def note(self, run: TakenRun, address: str) -> None:
        """Note messages taken from an address."""
        longest = run.octets > LONGEST and max(map(len, run.packets)) > LONGEST
        if longest:
            run.packets = list(map(content_of, run.packets))
            run.octets = DIGEST_SIZE * len(run.packets)
        run.octets += _RUN_OCTETS + _MESSAGE_OCTETS * len(run.numbers)
        self._runs.append((run, address))
        self._unsorted += 1
        self._octets += run.octets
        while self._octets > MOST_OCTETS:
            self._forget_oldest()

    def note_one(self, sequence: bytes, number: Number, packet: bytes, address: str) -> None:
        """Note a message taken from an address."""
        self.note(TakenRun(sequence, (number,), (packet,), len(packet)), address)

    def _forget_oldest(self) -> None:
        run, _ = self._runs.popleft()
        self._octets -= run.octets
        if len(self._runs) < self._unsorted:
            self._unsorted = len(self._runs)
            return
        for key, _ in run.each_entry():
            self._found.pop(key, None)

    def differs(self, sequence: bytes, number: Number, packet: bytes) -> str | None:
        """The source address of a different message under the same key.

        None if it was the same message, or is not remembered any more.
        """
        self._sort()
        before = self._found.get((sequence, number))
        if before is None:
            return None
        kept, address = before
        known = kept if len(kept) == DIGEST_SIZE else content_of(kept)
        return None if known == content_of(packet) else address

    def _sort(self) -> None:
        newest = list(islice(reversed(self._runs), self._unsorted))
        self._unsorted = 0
        for run, address in reversed(newest):
            self._found.update((key, (packet, address)) for key, packet in run.each_entry())


class ComparedMessages(RecentMessages):
    """RecentMessages that report a message unlike the one taken under its name (G493)."""

    def __init__(self, conflicts: IdentityConflicts) -> None:
        super().__init__()
        self._conflicts = conflicts

    def compare(
        self, connection: PeerConnection, message: Message, sequence: bytes, number: Number
    ) -> None:
        """Report a repeated message if it differs from the one that was taken."""
        before = self.differs(sequence, number, message.packet)
        if before is not None:
            source = message.attributes.identifier.queue_manager_guid
            places = plain(before), plain(connection.address)
            self._conflicts.note(source, *places, OTHER_CONTENT)


def content_of(packet: bytes) -> bytes:
    """A digest of the parts of a message that its sender has written and no hop changes.

    An encrypted message has another key for its body each time that it is sent.
    """
    attributes = Message(packet).attributes
    body = attributes.body
    written = (
        attributes.sent_time,
        attributes.message_class,
        attributes.label,
        attributes.body_type,
        len(body),
    )
    digest = hashlib.blake2b(repr(written).encode("utf-8", "surrogatepass"), digest_size=16)
    if not attributes.symmetric_key:
        digest.update(body)
    return digest.digest()


def in_sequence(transfer: bytes, sequence: int) -> bytes:
    """The key of one sequence of a transfer, which no other sequence has."""
    return transfer + sequence.to_bytes(8, "little")


def identifier_of(packet: bytes) -> bytes:
    """The octets of a message's identifier: its source, and its number there."""
    return packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID]
