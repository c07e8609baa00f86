"""The elements of an envelope ([MC-MQSRM] 2.2.4 to 2.2.7), as values.

Times are whole seconds since 1970. URLs are as they are written, without surrounding space.
"""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from rpcqm.codec.layout import NULL_GUID
from rpcqm.srmp.xml import SOAP, written

MSMQ_PREFIX = "MSMQ:"
"""The prefix of labels and of names of queues that are no URLs ([MC-MQSRM] 2.2.4.1, 2.2.4.4)."""


class MessageId(NamedTuple):
    """The <id> element: `uuid:` ordinal `@` GUID; others' ordinals have up to 64 bits."""

    guid: UUID = NULL_GUID
    ordinal: int = 1


class StreamId(NamedTuple):
    r"""The <streamId> element: `uid:` GUID `\` ordinal, of 64 bits."""

    guid: UUID
    ordinal: int


@dataclass(slots=True)
class CommitmentReceiptRequest:
    """[MC-MQSRM] 2.2.5.2.3."""

    send_to: str
    positive_only: bool = False
    negative_only: bool = False


@dataclass(slots=True)
class Services:
    """[MC-MQSRM] 2.2.5.2; `delivery_receipt_request` is the <sendTo> in it."""

    durable: bool = False
    delivery_receipt_request: str | None = None
    commitment_receipt_request: CommitmentReceiptRequest | None = None


@dataclass(slots=True)
class Stream:
    """[MC-MQSRM] 2.2.5.3; `previous` is current - 1 if it is not written.

    `send_receipts_to` is None without <start>.
    """

    stream_id: StreamId
    current: int
    previous: int
    send_receipts_to: str | None = None


@dataclass(slots=True)
class DeliveryReceipt:
    """[MC-MQSRM] 2.2.5.4."""

    received_at: int
    id: MessageId


@dataclass(slots=True)
class CommitmentReceipt:
    """[MC-MQSRM] 2.2.5.5."""

    decided_at: int
    positive: bool
    id: MessageId


@dataclass(slots=True)
class StreamReceipt:
    """[MC-MQSRM] 2.2.5.6."""

    stream_id: StreamId
    last_ordinal: int


@dataclass(slots=True)
class Eod:
    """[MC-MQSRM] 2.2.6.11."""

    first: bool = False
    last: bool = False
    connector_id: UUID | None = None


@dataclass(slots=True)
class Provider:
    """[MC-MQSRM] 2.2.6.12."""

    type: int
    name: str = ""


@dataclass(slots=True)
class Msmq:
    """[MC-MQSRM] 2.2.6; `ttrq` is None where others leave it out."""

    message_class: int = 0
    priority: int = 3
    journal: bool = False
    dead_letter: bool = False
    correlation: bytes | None = None
    trace: bool = False
    connector_type: UUID | None = None
    app: int = 0
    body_type: int = 0
    hash_algorithm: int = 0
    eod: Eod | None = None
    provider: Provider | None = None
    source_qm_guid: UUID = NULL_GUID
    destination_mqf: tuple[str, ...] = ()
    admin_mqf: tuple[str, ...] = ()
    response_mqf: tuple[str, ...] = ()
    ttrq: int | None = None


@dataclass(slots=True)
class Reference:
    """[MC-MQSRM] 2.2.7.1.2."""

    uri: str
    digest_method: str
    digest_value: bytes


@dataclass(slots=True)
class Signature:
    """[MC-MQSRM] 2.2.7; `signed_info` is the element as it was written.

    `certificate` is what <KeyInfo> of XML signatures holds, of which the text says nothing (G205).
    """

    signature_method: str
    references: tuple[Reference, ...]
    signature_value: bytes
    signed_info: bytes = b""
    certificate: bytes | None = None


@dataclass(slots=True)
class Envelope:
    """The values of an envelope.

    `more_header` and `more_body` are elements of the application, written behind ours and into
    <se:Body>, which is empty otherwise.
    """

    action: str
    to: str
    id: MessageId
    expires_at: int
    sent_at: int | None = None
    via: str | None = None
    services: Services = field(default_factory=Services)
    stream: Stream | None = None
    delivery_receipt: DeliveryReceipt | None = None
    commitment_receipt: CommitmentReceipt | None = None
    stream_receipt: StreamReceipt | None = None
    msmq: Msmq | None = None
    signature: Signature | None = None
    more_header: str = ""
    more_body: str = ""


@dataclass(slots=True)
class SrmpRequest:
    """A request with its parts ([MC-MQSRM] 2.1.1): its envelope and the attachments.

    `body` and `extension` are None without such an attachment. `compound` is the request as
    CompoundMessage keeps it, from `POST` on, and `body_offset` the place of the body in it.
    `envelope_text` is the envelope as it was written. `form` belongs to the reader of envelopes.
    """

    target: str
    envelope: Envelope
    envelope_text: str
    body: bytes | None = None
    extension: bytes | None = None
    compound: bytes = b""
    body_offset: int = 0
    form: object = field(default=None, compare=False)

    @property
    def header_text(self) -> str:
        """SoapHeader: the element <se:Header> as it was written."""
        return written(self.envelope_text, f"{SOAP}}}Envelope", f"{SOAP}}}Header")

    @property
    def body_text(self) -> str:
        """SoapBody: the element <se:Body> as it was written."""
        return written(self.envelope_text, f"{SOAP}}}Envelope", f"{SOAP}}}Body")
