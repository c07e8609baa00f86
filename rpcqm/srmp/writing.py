"""Writes envelopes: one line of UTF-8, elements in the order of [MC-MQSRM] 3.1.7.2.4.

Where that text mistypes a name, section 2.2 counts (G46).
"""

import base64
import re
from collections.abc import Callable
from functools import lru_cache
from uuid import UUID

from rpcqm.srmp.dates import format_date
from rpcqm.srmp.elements import (
    CommitmentReceipt,
    CommitmentReceiptRequest,
    Envelope,
    Eod,
    MessageId,
    Msmq,
    Provider,
    Reference,
    Services,
    Signature,
    Stream,
    StreamId,
)
from rpcqm.srmp.xml import MSMQ, SOAP, SRMP, WS_ROUTING, enclosing_signature, escaped

_START = f'<se:Envelope xmlns:se="{SOAP}" xmlns="{SRMP}"><se:Header>'
_END = "</se:Body></se:Envelope>"
_SPACE = re.compile(r"\s")

_guid: Callable[[UUID], str] = lru_cache(maxsize=256)(str)
"""[MC-MQSRM] 2.2.1.1; cached, as those of queue managers and connectors are in many envelopes."""


def write_envelope(envelope: Envelope) -> bytes:
    """The octets of an envelope."""
    parts = [
        _START,
        _path(envelope),
        _properties(envelope),
        _services(envelope.services),
        "" if envelope.stream is None else write_stream(envelope.stream),
        _receipts(envelope),
        "" if envelope.msmq is None else _msmq(envelope.msmq),
        "" if envelope.signature is None else _signature(envelope.signature),
        envelope.more_header,
        "</se:Header><se:Body>",
        envelope.more_body,
        _END,
    ]
    return "".join(parts).encode("utf-8")


def _path(envelope: Envelope) -> str:
    via = "" if envelope.via is None else f"<rev><via>{escaped(envelope.via)}</via></rev>"
    return (
        f'<path xmlns="{WS_ROUTING}" se:mustUnderstand="1">'
        f"<action>{escaped(envelope.action)}</action><to>{escaped(envelope.to)}</to>"
        f"<id>{_message_id(envelope.id)}</id>{via}</path>"
    )


def _message_id(message_id: MessageId) -> str:
    return f"uuid:{message_id.ordinal}@{_guid(message_id.guid)}"


def _properties(envelope: Envelope) -> str:
    sent = "" if envelope.sent_at is None else f"<sentAt>{format_date(envelope.sent_at)}</sentAt>"
    return (
        '<properties se:mustUnderstand="1">'
        f"<expiresAt>{format_date(envelope.expires_at)}</expiresAt>{sent}</properties>"
    )


# <services> and <stream>


def _services(services: Services) -> str:
    delivery, commitment = services.delivery_receipt_request, services.commitment_receipt_request
    entries = "<durable/>" if services.durable else ""
    if delivery is not None:
        entries += f"<deliveryReceiptRequest>{_send_to(delivery)}</deliveryReceiptRequest>"
    if commitment is not None:
        entries += _commitment_request(commitment)
    return f'<services se:mustUnderstand="1">{entries}</services>' if entries else ""


def _send_to(url: str) -> str:
    return f"<sendTo>{escaped(url)}</sendTo>"


def _commitment_request(request: CommitmentReceiptRequest) -> str:
    positive = "<positiveOnly/>" if request.positive_only else ""
    negative = "<negativeOnly/>" if request.negative_only else ""
    entries = f"{_send_to(request.send_to)}{positive}{negative}"
    return f"<commitmentReceiptRequest>{entries}</commitmentReceiptRequest>"


def write_stream(stream: Stream) -> str:
    """<previous>, except for number 1; an absent one means the number before."""
    first = stream.current == 1 and not stream.previous
    previous = "" if first else f"<previous>{stream.previous}</previous>"
    start = ""
    if stream.send_receipts_to is not None:
        url = escaped(stream.send_receipts_to)
        start = f"<start><sendReceiptsTo>{url}</sendReceiptsTo></start>"
    return (
        f'<stream se:mustUnderstand="1">{_stream_id(stream.stream_id)}'
        f"<current>{stream.current}</current>{previous}{start}</stream>"
    )


def _stream_id(stream_id: StreamId) -> str:
    return f"<streamId>uid:{_guid(stream_id.guid)}\\{stream_id.ordinal}</streamId>"


# Receipts


def _receipts(envelope: Envelope) -> str:
    text = ""
    if (delivery := envelope.delivery_receipt) is not None:
        text += (
            f"<deliveryReceipt><receivedAt>{format_date(delivery.received_at)}</receivedAt>"
            f"<id>{_message_id(delivery.id)}</id></deliveryReceipt>"
        )
    if (stream := envelope.stream_receipt) is not None:
        text += (
            f"<streamReceipt>{_stream_id(stream.stream_id)}"
            f"<lastOrdinal>{stream.last_ordinal}</lastOrdinal></streamReceipt>"
        )
    commitment = envelope.commitment_receipt
    return text if commitment is None else text + _commitment_receipt(commitment)


def _commitment_receipt(receipt: CommitmentReceipt) -> str:
    decision = "positive" if receipt.positive else "negative"
    return (
        f"<commitmentReceipt><decidedAt>{format_date(receipt.decided_at)}</decidedAt>"
        f"<decision>{decision}</decision><id>{_message_id(receipt.id)}</id></commitmentReceipt>"
    )


# <Msmq>


def _msmq(msmq: Msmq) -> str:
    """The element, without the zeros that 3.1.7.2.4 omits."""
    parts = [
        f'<Msmq xmlns="{MSMQ}"><Class>{msmq.message_class}</Class>',
        f"<Priority>{msmq.priority}</Priority>",
        "<Journal/>" if msmq.journal else "",
        "<DeadLetter/>" if msmq.dead_letter else "",
        "" if msmq.correlation is None else _correlation(msmq.correlation),
        "<Trace/>" if msmq.trace else "",
        _connector_type(msmq.connector_type) if msmq.connector_type else "",
        f"<App>{msmq.app}</App>" if msmq.app else "",
        f"<BodyType>{msmq.body_type}</BodyType>",
        f"<HashAlgorithm>{msmq.hash_algorithm}</HashAlgorithm>" if msmq.hash_algorithm else "",
        "" if msmq.eod is None else _eod(msmq.eod),
        "" if msmq.provider is None else _provider(msmq.provider),
        f"<SourceQmGuid>{_guid(msmq.source_qm_guid)}</SourceQmGuid>",
        _format_names("DestinationMqf", msmq.destination_mqf),
        _format_names("AdminMqf", msmq.admin_mqf),
        _format_names("ResponseMqf", msmq.response_mqf),
        "" if msmq.ttrq is None else f"<TTrq>{format_date(msmq.ttrq)}</TTrq>",
        "</Msmq>",
    ]
    return "".join(parts)


def _connector_type(guid: UUID) -> str:
    return f"<ConnectorType>{_guid(guid)}</ConnectorType>"


@lru_cache(maxsize=256)
def _correlation(correlation: bytes) -> str:
    return f"<Correlation>{_base64(correlation)}</Correlation>"


def _eod(eod: Eod) -> str:
    first = "<First/>" if eod.first else ""
    last = "<Last/>" if eod.last else ""
    connector = ""
    if eod.connector_id is not None:
        connector = f"<ConnectorId>{_guid(eod.connector_id)}</ConnectorId>"
    return f"<Eod>{first}{last}{connector}</Eod>"


def _provider(provider: Provider) -> str:
    """Both elements, as 2.2.6.12 has it."""
    name = escaped(provider.name)
    return f"<Provider><Type>{provider.type}</Type><Name>{name}</Name></Provider>"


def _format_names(element: str, names: tuple[str, ...]) -> str:
    """Names with white space behind each; what is within a name is written as %20."""
    if not names:
        return ""
    lines = "".join(f"{escaped(_SPACE.sub('%20', name))}\n" for name in names)
    return f"<{element}>{lines}</{element}>"


# <Signature>


def signed_info(method: str, references: tuple[Reference, ...]) -> bytes:
    """The element <SignedInfo>, the octets of which are signed."""
    entries = "".join(map(_reference, references))
    start = f'<SignedInfo><SignatureMethod Algorithm="{escaped(method)}"></SignatureMethod>'
    return f"{start}{entries}</SignedInfo>".encode()


def _reference(reference: Reference) -> str:
    return (
        f'<Reference URI="{escaped(reference.uri)}">'
        f'<DigestMethod Algorithm="{escaped(reference.digest_method)}"></DigestMethod>'
        f"<DigestValue>{_base64(reference.digest_value)}</DigestValue></Reference>"
    )


def _signature(signature: Signature) -> str:
    """<SignedInfo> as it was written when it was signed, the others with its prefix."""
    info = signature.signed_info or signed_info(signature.signature_method, signature.references)
    text = info.decode("utf-8")
    start, end, prefix = enclosing_signature(text)
    value = f"<{prefix}SignatureValue>{_base64(signature.signature_value)}</{prefix}SignatureValue>"
    return f"{start}{text}{value}{_key_info(signature.certificate, prefix)}{end}"


def _key_info(certificate: bytes | None, prefix: str) -> str:
    if certificate is None:
        return ""
    text = _base64(certificate)
    for name in ("X509Certificate", "X509Data", "KeyInfo"):
        text = f"<{prefix}{name}>{text}</{prefix}{name}>"
    return text


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")
