"""Messages over HTTP that have been taken, so that each is taken once ([MC-MQSRM] 3.1.5.1.11)."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from rpcqm.adm.message import Message
from rpcqm.base.addresses import owner_of
from rpcqm.base.completion import Completion
from rpcqm.base.text import folded
from rpcqm.qm.identity_conflicts import OTHER_CONTENT, IdentityConflicts
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.srmp.connection.signed_senders import Signed
from rpcqm.srmp.elements import SrmpRequest
from rpcqm.srmp.incoming import identity_of, is_exempt

HISTORY_PREFIX = b"srmp history:"
MOST_RECENT = 4096
"""Messages over HTTP of which a digest is remembered, to compare those that come again with them.

Bound `identity.recent_over_http` [messages]: the one that came longest ago is not compared any
more.
"""

Changes = dict[bytes, bytes | None]


@dataclass(eq=False)
class Arrived:
    """A message that has come, the address that it came from, and its signer."""

    request: SrmpRequest
    message: Message
    peer: str
    sender: Signed
    listener: str = ""
    """The queue that this copy is for, of several with one multicast address."""

    def __post_init__(self) -> None:
        self.envelope = self.request.envelope
        guid, ordinal = self.number = identity_of(self.envelope)
        to = folded(self.envelope.to + self.listener).encode("utf-8", "surrogatepass")
        destination = hashlib.blake2b(to, digest_size=8).digest()
        self.identity = guid.bytes_le + ordinal.to_bytes(8, "little") + destination
        """Identifies the message: source, number and destination, as written."""

    @cached_property
    def content(self) -> bytes:
        """The parts that its sender repeats each time, whatever the stream."""
        envelope, request = self.envelope, self.request
        body, extension = request.body or b"", request.extension or b""
        said = f"{len(body)} {len(extension)} {envelope.sent_at} {envelope.action}"
        printed = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16)
        printed.update(body)
        printed.update(extension)
        return printed.digest()


class KnownMessages:
    """The history of messages, and the contents of the latest ones."""

    def __init__(
        self, history: MessageIDHistory, records: ProtocolRecords, conflicts: IdentityConflicts
    ) -> None:
        self._history, self._records, self._conflicts = history, records, conflicts
        self._history.restore(records.records(HISTORY_PREFIX))
        self._recent: OrderedDict[bytes, tuple[bytes, str]] = OrderedDict()
        """Contents and senders of the messages that were taken last (G493)."""

    def stop(self) -> None:
        """Stop the timers."""
        self._history.stop()

    def includes(self, arrived: Arrived) -> bool:
        """Whether a message has been taken before."""
        is_known = arrived.identity in self._history
        if is_known:
            self._compare(arrived)
        return is_known

    def is_same(self, arrived: Arrived) -> bool:
        """Whether the message taken earlier had the same content."""
        return self._history.knows(arrived.identity, arrived.content)

    def repeated(self, arrived: Arrived) -> Completion[None]:
        """A completion of the message that comes again: done when the earlier one is durable."""
        return self._records.write(self.refresh(arrived))

    def refresh(self, arrived: Arrived) -> Changes:
        """Remember a message longer; returns the changes that forget others."""
        self._history.refresh(arrived.identity)
        return self._history.take_stale()

    def remember(self, arrived: Arrived) -> tuple[Changes, Callable[[], None]]:
        """The changes that remember a message, for its commit; and a function that undoes them."""
        changes: Changes = {}
        if is_exempt(arrived.number):
            return changes, nothing
        self._remember_content(arrived)
        identity, recoverable = arrived.identity, arrived.message.envelope.recoverable
        content = b"" if arrived.envelope.stream is None else arrived.content
        kept = changes if recoverable else None
        self._history.add(identity, kept, owner_of(arrived.peer), content)
        return changes, partial(self._history.remove, identity, changes)

    def _remember_content(self, arrived: Arrived) -> None:
        self._recent[arrived.identity] = arrived.content, arrived.peer
        self._recent.move_to_end(arrived.identity)
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)

    def _compare(self, arrived: Arrived) -> None:
        """Report a repeated message if its content differs from that of the one taken."""
        content, peer = self._recent.get(arrived.identity, (arrived.content, ""))
        if content != arrived.content:
            self._conflicts.note(arrived.number[0], peer, arrived.peer, OTHER_CONTENT)


def nothing() -> None:
    """Undo nothing."""
