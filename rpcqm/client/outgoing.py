"""Messages as a client sends them."""

from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import DEFAULT_PRIORITY, INFINITE
from rpcqm.codec.packet.enums import AcknowledgementsRequested, BodyType, PrivacyLevel
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to send; times are seconds, INFINITE for ever."""

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
    """Kept in a dead-letter queue when it cannot be delivered or is not received in time."""
    dead_letter_queue: FormatName | None = None
    """Which queue of the sending queue manager that is, if not the system's; rpcqm only."""
    journal: bool = False
    """A copy stays in the journal of the computer that it is sent from."""
    privacy: PrivacyLevel = PrivacyLevel.NONE
    """How the body is encrypted on its way; direct names lead to no key for that."""
