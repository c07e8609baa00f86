"""Requests to envelopes with their attachments ([MC-MQSRM] 2.1.1, 2.2, 3.1.5.1.1).

What does not have the form of section 2 is a DecodeError, which is answered by 400.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar
from uuid import UUID

from lxml import etree

from rpcqm.base.errors import DecodeError
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.dates import parse_date
from rpcqm.srmp.elements import (
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    Envelope,
    Eod,
    MessageId,
    Msmq,
    Provider,
    Reference,
    Services,
    Signature,
    SrmpRequest,
    Stream,
    StreamId,
    StreamReceipt,
)
from rpcqm.srmp.multipart import split_request
from rpcqm.srmp.xml import (
    MSMQ,
    SIGNATURE,
    SOAP,
    SRMP,
    WS_ROUTING,
    children,
    parse_xml,
    text_of,
    written,
)

CORRELATION_SIZE = 20
_MUST_UNDERSTAND = f"{{{SOAP}}}mustUnderstand"
_GUID = "([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
_GUID_STRING = re.compile(_GUID)
_MESSAGE_ID = re.compile(f"uuid:([0-9]{{1,20}})@{_GUID}")
_STREAM_ID = re.compile(rf"uid:{_GUID}\\([0-9]{{1,20}})")
_DESTINATION = re.compile("https?://|MSMQ:MULTICAST=", re.IGNORECASE)
_NUMBER = re.compile("[0-9]{1,20}")
_BITS_64 = (1 << 64) - 1
_BITS_32 = (1 << 32) - 1
_BITS_16 = (1 << 16) - 1
_HIGHEST_PRIORITY = 7

_T = TypeVar("_T")
_Element = etree._Element
_Found = Mapping[str, _Element]


def read_request(request: HttpRequest) -> SrmpRequest:
    """The parts of a request ([MC-MQSRM] 3.1.5.1.1); raises DecodeError.

    A user message with attachments has a body or an extension; receipts have neither. What has
    only an envelope is a message without a body.
    """
    parts = split_request(request)
    text, envelope = _parse_envelope(parts.envelope)
    has_attachment = parts.body is not None or parts.extension is not None
    if _is_receipt(envelope) and has_attachment:
        raise DecodeError("a receipt with an attachment")
    if not _is_receipt(envelope) and parts.is_multipart and not has_attachment:
        raise DecodeError("the attachment of a message is missing")
    return SrmpRequest(
        target=request.target,
        envelope=envelope,
        envelope_text=text,
        body=parts.body,
        extension=parts.extension,
        compound=parts.compound,
        body_offset=parts.body_offset,
    )


def read_envelope(octets: bytes) -> Envelope:
    """An envelope ([MC-MQSRM] 2.2.2); raises DecodeError."""
    return _parse_envelope(octets)[1]


def _is_receipt(envelope: Envelope) -> bool:
    receipts = (envelope.delivery_receipt, envelope.commitment_receipt, envelope.stream_receipt)
    return any(receipt is not None for receipt in receipts)


def _parse_envelope(octets: bytes) -> tuple[str, Envelope]:
    text, root = parse_xml(octets)
    if root.tag != f"{{{SOAP}}}Envelope":
        raise DecodeError("no SOAP envelope")
    entries = children(root, _ENVELOPE_NAMES, frozenset(_ENVELOPE_NAMES.values()))
    if root[0] is not entries["Header"] or root[1] is not entries["Body"]:
        raise DecodeError("an envelope that does not begin with <Header> and <Body>")
    envelope = _header(entries["Header"])
    if envelope.signature is not None:
        path = (f"{SOAP}}}Envelope", f"{SOAP}}}Header", f"{SIGNATURE}}}Signature")
        found = written(text, *path, f"{SIGNATURE}}}SignedInfo")
        envelope.signature.signed_info = found.encode("utf-8")
    return text, envelope


# The entries of the header


def _names(namespace: str, *names: str) -> dict[str, str]:
    return {f"{{{namespace}}}{name}": name for name in names}


_ENVELOPE_NAMES = _names(SOAP, "Header", "Body")
_RECEIPTS = ("deliveryReceipt", "commitmentReceipt", "streamReceipt")
_ENTRIES = {
    **_names(WS_ROUTING, "path"),
    **_names(SRMP, "properties", "services", *_RECEIPTS),
    **_names(MSMQ, "Msmq"),
    **_names(SIGNATURE, "Signature"),
}
_STREAM = f"{{{SRMP}}}stream"
_MARKED = frozenset(("path", "properties", "services", "stream"))


def _header(header: _Element) -> Envelope:
    found = _entries(header)
    for name in ("path", "properties"):
        if name not in found:
            raise DecodeError(f"<{name}> is missing")
    msmq = _optional(found, "Msmq", _msmq)
    path = _path(found["path"], msmq is not None)
    properties = children(found["properties"], _PROPERTIES, _NEEDED_PROPERTIES)
    stream = _optional(found, "stream", _stream)
    services = _optional(found, "services", _services) or Services()
    if stream is not None:
        if msmq is None:
            raise DecodeError("<stream> without <Msmq>")
        services.durable = True
    return Envelope(
        *path[:3],
        expires_at=_date(properties["expiresAt"]),
        sent_at=_optional(properties, "sentAt", _date),
        via=path.via,
        services=services,
        stream=stream,
        delivery_receipt=_optional(found, "deliveryReceipt", _delivery_receipt),
        commitment_receipt=_optional(found, "commitmentReceipt", _commitment_receipt),
        stream_receipt=_optional(found, "streamReceipt", _stream_receipt),
        msmq=msmq,
        signature=_optional(found, "Signature", _signature),
    )


def _entries(header: _Element) -> dict[str, _Element]:
    """The known entries by name; <Stream> is in any case (G48)."""
    found: dict[str, _Element] = {}
    for entry in header:
        name = _ENTRIES.get(entry.tag)
        if name is None:
            if entry.tag.lower() != _STREAM:
                _check_ignorable(entry)
                continue
            name = "stream"
        if name in found:
            raise DecodeError(f"<{name}> is there twice")
        if name in _MARKED and not _must_understand(entry):
            raise DecodeError(f"<{name}> is not marked by mustUnderstand")
        found[name] = entry
    return found


def _must_understand(entry: _Element) -> bool:
    return entry.get(_MUST_UNDERSTAND, "").strip() == "1"


def _check_ignorable(entry: _Element) -> None:
    mark = entry.get(_MUST_UNDERSTAND, "0").strip()
    if mark != "0":
        raise DecodeError(f"{entry.tag} is to be understood, and is not known")


# Values


def _optional(found: _Found, name: str, read: Callable[[_Element], _T]) -> _T | None:
    element = found.get(name)
    return None if element is None else read(element)


def _value(element: _Element) -> str:
    return text_of(element).strip()


def _date(element: _Element) -> int:
    return parse_date(_value(element))


def _number(element: _Element, most: int = _BITS_32) -> int:
    """[MC-MQSRM] 2.2.1.3, as far as the field that holds it reaches (G204)."""
    text = _value(element)
    if _NUMBER.fullmatch(text) is None or (number := int(text)) > most:
        raise DecodeError(f"<{etree.QName(element).localname}> is no number up to {most}")
    return number


@lru_cache(maxsize=256)
def _parsed_guid(text: str) -> UUID:
    return UUID(text)


def _guid(element: _Element) -> UUID:
    """[MC-MQSRM] 2.2.1.1: without braces."""
    text = _value(element)
    if _GUID_STRING.fullmatch(text) is None:
        raise DecodeError(f"<{etree.QName(element).localname}> is no GUID")
    return _parsed_guid(text)


def _message_id(element: _Element) -> MessageId:
    found = _MESSAGE_ID.fullmatch(_value(element))
    if found is None or (ordinal := int(found[1])) > _BITS_64:
        raise DecodeError("<id> is not uuid:number@GUID")
    return MessageId(_parsed_guid(found[2]), ordinal)


def _stream_id(element: _Element) -> StreamId:
    found = _STREAM_ID.fullmatch(_value(element))
    if found is None or (ordinal := int(found[2])) > _BITS_64:
        raise DecodeError("<streamId> is not uid:GUID\\number")
    return StreamId(_parsed_guid(found[1]), ordinal)


def _base64(element: _Element) -> bytes:
    text = "".join(text_of(element).split())
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        name = etree.QName(element).localname
        raise DecodeError(f"<{name}> is not Base64") from error


# <path> and <properties>

_PATH = _names(WS_ROUTING, "action", "to", "id", "rev")
_NEEDED_PATH = frozenset(("action", "to", "id"))
_VIA = _names(WS_ROUTING, "via")
_NEEDED_VIA = frozenset(("via",))
_PROPERTIES = _names(SRMP, "expiresAt", "sentAt")
_NEEDED_PROPERTIES = frozenset(("expiresAt",))


class _Path(NamedTuple):
    action: str
    to: str
    id: MessageId
    via: str | None


def _path(path: _Element, has_msmq: bool) -> _Path:
    """[MC-MQSRM] 2.2.4; without <Msmq> the identifier is 1@NULL, whatever <id> says."""
    found = children(path, _PATH, _NEEDED_PATH)
    to = _value(found["to"])
    if _DESTINATION.match(to) is None:
        raise DecodeError("<to> is no URL of a queue")
    via = None
    if "rev" in found:
        via = _value(children(found["rev"], _VIA, _NEEDED_VIA)["via"]) or None
    number = _message_id(found["id"]) if has_msmq else MessageId()
    return _Path(text_of(found["action"]), to, number, via)


# <services>, <stream> and receipts

_SERVICES = _names(SRMP, "durable", "deliveryReceiptRequest", "commitmentReceiptRequest")
_REQUEST = _names(SRMP, "sendTo", "positiveOnly", "negativeOnly")
_NEEDED_REQUEST = frozenset(("sendTo",))
_STREAM_NAMES = _names(SRMP, "streamId", "current", "previous", "start")
_NEEDED_STREAM = frozenset(("streamId", "current"))
_START = _names(SRMP, "sendReceiptsTo")
_NEEDED_START = frozenset(("sendReceiptsTo",))
_DELIVERY = _names(SRMP, "receivedAt", "id")
_COMMITMENT = _names(SRMP, "decidedAt", "decision", "id")
_STREAM_RECEIPT = _names(SRMP, "streamId", "lastOrdinal")
_DECISIONS = {"positive": True, "negative": False}


def _services(services: _Element) -> Services:
    found = children(services, _SERVICES)
    return Services(
        "durable" in found,
        _optional(found, "deliveryReceiptRequest", _delivery_request),
        _optional(found, "commitmentReceiptRequest", _commitment_request),
    )


def _delivery_request(request: _Element) -> str:
    return _value(children(request, _REQUEST, _NEEDED_REQUEST)["sendTo"])


def _commitment_request(request: _Element) -> CommitmentReceiptRequest:
    found = children(request, _REQUEST, _NEEDED_REQUEST)
    send_to = _value(found["sendTo"])
    return CommitmentReceiptRequest(send_to, "positiveOnly" in found, "negativeOnly" in found)


def _stream(stream: _Element) -> Stream:
    """[MC-MQSRM] 2.2.5.3; a missing <previous> is the number before (G46)."""
    found = children(stream, _STREAM_NAMES, _NEEDED_STREAM)
    current = _number(found["current"])
    if current == 0:
        raise DecodeError("<current> is 0")
    previous = _optional(found, "previous", _number)
    return Stream(
        _stream_id(found["streamId"]),
        current,
        current - 1 if previous is None else previous,
        _optional(found, "start", _start),
    )


def _start(start: _Element) -> str:
    return _value(children(start, _START, _NEEDED_START)["sendReceiptsTo"])


def _delivery_receipt(receipt: _Element) -> DeliveryReceipt:
    found = children(receipt, _DELIVERY, frozenset(_DELIVERY.values()))
    return DeliveryReceipt(_date(found["receivedAt"]), _message_id(found["id"]))


def _commitment_receipt(receipt: _Element) -> CommitmentReceipt:
    found = children(receipt, _COMMITMENT, frozenset(_COMMITMENT.values()))
    decision = _DECISIONS.get(_value(found["decision"]))
    if decision is None:
        raise DecodeError("<decision> is neither positive nor negative")
    return CommitmentReceipt(_date(found["decidedAt"]), decision, _message_id(found["id"]))


def _stream_receipt(receipt: _Element) -> StreamReceipt:
    found = children(receipt, _STREAM_RECEIPT, frozenset(_STREAM_RECEIPT.values()))
    return StreamReceipt(_stream_id(found["streamId"]), _number(found["lastOrdinal"]))


# <Msmq>

_MSMQ_NAMES = _names(
    MSMQ,
    *("Class", "Priority", "Journal", "DeadLetter", "Correlation", "Trace", "ConnectorType"),
    *("App", "BodyType", "HashAlgorithm", "Eod", "Provider", "SourceQmGuid"),
    *("DestinationMqf", "AdminMqf", "ResponseMqf", "TTrq"),
)
_NEEDED_MSMQ = frozenset(("Class", "Priority", "BodyType", "SourceQmGuid"))
_EOD = _names(MSMQ, "First", "Last", "ConnectorId")
_PROVIDER = _names(MSMQ, "Type", "Name")


def _msmq(element: _Element) -> Msmq:
    found = children(element, _MSMQ_NAMES, _NEEDED_MSMQ)
    return Msmq(
        message_class=_number(found["Class"], _BITS_16),
        priority=_number(found["Priority"], _HIGHEST_PRIORITY),
        journal="Journal" in found,
        dead_letter="DeadLetter" in found,
        correlation=_optional(found, "Correlation", _correlation),
        trace="Trace" in found,
        connector_type=_optional(found, "ConnectorType", _guid),
        app=_optional(found, "App", _number) or 0,
        body_type=_number(found["BodyType"]),
        hash_algorithm=_optional(found, "HashAlgorithm", _number) or 0,
        eod=_optional(found, "Eod", _eod),
        provider=_optional(found, "Provider", _provider),
        source_qm_guid=_guid(found["SourceQmGuid"]),
        destination_mqf=_optional(found, "DestinationMqf", _format_names) or (),
        admin_mqf=_optional(found, "AdminMqf", _format_names) or (),
        response_mqf=_optional(found, "ResponseMqf", _format_names) or (),
        ttrq=_optional(found, "TTrq", _date),
    )


def _correlation(element: _Element) -> bytes:
    correlation = _base64(element)
    if len(correlation) != CORRELATION_SIZE:
        raise DecodeError(f"<Correlation> of {len(correlation)} bytes")
    return correlation


def _eod(element: _Element) -> Eod:
    found = children(element, _EOD)
    return Eod("First" in found, "Last" in found, _optional(found, "ConnectorId", _guid))


def _provider(element: _Element) -> Provider:
    """[MC-MQSRM] 3.1.7.2.4 leaves out what is 0 or empty, against 2.2.6.12."""
    found = children(element, _PROVIDER)
    return Provider(_optional(found, "Type", _number) or 0, _optional(found, "Name", text_of) or "")


def _format_names(element: _Element) -> tuple[str, ...]:
    names = tuple(text_of(element).split())
    if not names:
        raise DecodeError(f"<{etree.QName(element).localname}> holds no name")
    return names


# <Signature>

_SIGNATURE_NAMES = _names(SIGNATURE, "SignedInfo", "SignatureValue")
_METHOD = _names(SIGNATURE, "SignatureMethod")
_REFERENCE = f"{{{SIGNATURE}}}Reference"
_MAXIMUM_REFERENCES = 2
_DIGEST = _names(SIGNATURE, "DigestMethod", "DigestValue")


def _signature(element: _Element) -> Signature:
    """[MC-MQSRM] 2.2.7, without its SignedInfo as it was written."""
    found = children(element, _SIGNATURE_NAMES, frozenset(_SIGNATURE_NAMES.values()))
    info = found["SignedInfo"]
    method = children(info, _METHOD, frozenset(_METHOD.values()))["SignatureMethod"]
    references = tuple(map(_reference, _references(info)))
    if len(references) > _MAXIMUM_REFERENCES:
        raise DecodeError(f"<SignedInfo> with {len(references)} references")
    value = _base64(found["SignatureValue"])
    return Signature(method.get("Algorithm", ""), references, value)


def _references(info: _Element) -> Iterable[_Element]:
    return (child for child in info if child.tag == _REFERENCE)


def _reference(element: _Element) -> Reference:
    found = children(element, _DIGEST, frozenset(_DIGEST.values()))
    method = found["DigestMethod"].get("Algorithm", "")
    return Reference(element.get("URI", ""), method, _base64(found["DigestValue"]))
