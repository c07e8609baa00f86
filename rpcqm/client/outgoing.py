"""Messages as a client sends them."""

from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import DEFAULT_PRIORITY
from rpcqm.codec.packet.enums import AcknowledgementsRequested, BodyType, PrivacyLevel
from rpcqm.codec.packet.trace_context import extension_of, parse_traceparent
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to send; times are in seconds, INFINITE stands for ever."""

    body: bytes = b""
    label: str = ""
    priority: int = DEFAULT_PRIORITY
    recoverable: bool = True
    body_type: int = BodyType.VT_EMPTY
    time_to_be_received: int = INFINITE
    time_to_reach_queue: int = INFINITE
    acknowledgements: AcknowledgementsRequested = AcknowledgementsRequested.NONE
    administration_queue: FormatName | None = None
    response_queue: FormatName | None = None
    correlation_identifier: MessageIdentifier = NULL_IDENTIFIER
    application_tag: int = 0
    extension: bytes = b""
    connector_type: UUID | None = None
    dead_letter: bool = False
    """Whether a dead-letter queue gets the message if it is not delivered or received in time."""
    dead_letter_queue: FormatName | None = None
    """A queue of the sending queue manager to use as dead-letter queue instead of the system's.

    Only an rpcqm server takes it.
    """
    journal: bool = False
    """Whether a copy stays in the journal of the computer that sends the message."""
    privacy: PrivacyLevel = PrivacyLevel.NONE
    """How the body is encrypted on its way; not possible for a queue that has a direct name."""
    traceparent: str = ""
    """The context of the program's trace (W3C); it is sent as the extension if that is empty.

    What is no such context is left out.
    """

    @property
    def sent_extension(self) -> bytes:
        """The extension as it goes out: that of the program, or the context of its trace."""
        if self.extension or not self.traceparent:
            return self.extension
        context = parse_traceparent(self.traceparent)
        return b"" if context is None else extension_of(context)
