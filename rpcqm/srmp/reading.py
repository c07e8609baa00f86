"""Reads requests into envelopes and attachments ([MC-MQSRM] 2.1.1, 2.2, 3.1.5.1.1).

Another form than that of section 2 is a DecodeError, which is answered by 400.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple
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
    check_alone,
    parse_xml,
    written,
)

CORRELATION_SIZE = 20
_LONGEST_CORRELATION = 64
"""Characters, with white space between them; without any they are 28."""
_MUST_UNDERSTAND = f"{{{SOAP}}}mustUnderstand"
_GUID_STRING = re.compile("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DESTINATIONS = ("http://", "https://", "msmq:multicast=")
_LONGEST_START = max(map(len, _DESTINATIONS))
_LONGEST_NUMBER = 20
"""Digits; leading zeros are read as well."""
_CACHED = 256
"""Cached values that many envelopes share; refused ones are not cached, so each is short."""
_BITS_64 = (1 << 64) - 1
_MAXIMUM_REFERENCES = 2

_Element = etree._Element
_children: Callable[[_Element], list[_Element]] = itemgetter(slice(None))
"""All children at once: with so few, lxml takes as long to begin a walk from one to the next."""
_ENVELOPE = f"{{{SOAP}}}Envelope"
_HEADER, _BODY = _USUAL = [f"{{{SOAP}}}Header", f"{{{SOAP}}}Body"]


class ReadEnvelope(NamedTuple):
    """The text of an envelope, its values, and the reader's notes for the rest of the request."""

    text: str
    envelope: Envelope
    form: object = None


def parse_envelope(octets: bytes) -> ReadEnvelope:
    """The text of an envelope and its values ([MC-MQSRM] 2.2.2); raises DecodeError."""
    return ReadEnvelope(*_parsed(octets))


def _parsed(octets: bytes) -> tuple[str, Envelope]:
    text, root = parse_xml(octets)
    if root.tag != _ENVELOPE:
        raise DecodeError("no SOAP envelope")
    tags = [child.tag for child in _children(root)]
    if tags != _USUAL and (
        tags[:2] != [_HEADER, _BODY] or _HEADER in tags[2:] or _BODY in tags[2:]
    ):
        raise DecodeError("an envelope is one <Header>, and one <Body> directly behind it")
    envelope = _header(root[0])
    if envelope.signature is not None:
        envelope.signature.signed_info = _signed_octets(text)
    return text, envelope


def read_request(
    request: HttpRequest, parse: Callable[[bytes], ReadEnvelope] = parse_envelope
) -> SrmpRequest:
    """The parts of a request ([MC-MQSRM] 3.1.5.1.1); raises DecodeError.

    A user message with attachments has a body or an extension; receipts have neither. A request
    that is only an envelope is a message without a body.
    """
    parts = split_request(request)
    text, envelope, form = parse(parts.envelope)
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
        form=form,
    )


def read_envelope(octets: bytes) -> Envelope:
    """An envelope ([MC-MQSRM] 2.2.2); raises DecodeError."""
    return _parsed(octets)[1]


def _is_receipt(envelope: Envelope) -> bool:
    return (
        envelope.delivery_receipt is not None
        or envelope.commitment_receipt is not None
        or envelope.stream_receipt is not None
    )


def _signed_octets(text: str) -> bytes:
    """The element <SignedInfo> as it was written, from which the values were read."""
    path = (f"{SOAP}}}Envelope", f"{SOAP}}}Header", f"{SIGNATURE}}}Signature")
    found = written(text, *path, f"{SIGNATURE}}}SignedInfo")
    check_alone(found)
    return found.encode("utf-8")


# Values: the text in an element, without white space around it


def _present(_: str) -> bool:
    return True


def _number(most: int) -> Callable[[str], int]:
    """[MC-MQSRM] 2.2.1.3, up to the largest number that the field holds (G204)."""

    def parsed(text: str) -> int:
        is_number = text.isdecimal() and text.isascii() and len(text) <= _LONGEST_NUMBER
        if not is_number or (number := int(text)) > most:
            raise DecodeError(f"{text!r} is no number up to {most}")
        return number

    return parsed


_ordinal = _number(_BITS_64)
"""Ordinals hardly repeat, so they are not cached."""
number_32 = lru_cache(maxsize=_CACHED)(_number(0xFFFF_FFFF))
_class = lru_cache(maxsize=_CACHED)(_number(0xFFFF))
_priority = lru_cache(maxsize=_CACHED)(_number(7))


def current(text: str) -> int:
    """Messages of a stream are counted from 1 on ([MC-MQSRM] 2.2.5.3)."""
    number = number_32(text)
    if number == 0:
        raise DecodeError("no message of a stream has the number 0")
    return number


@lru_cache(maxsize=_CACHED)
def _guid(text: str) -> UUID:
    """[MC-MQSRM] 2.2.1.1: without braces."""
    if _GUID_STRING.fullmatch(text) is None:
        raise DecodeError(f"{text!r} is no GUID")
    return UUID(text)


def message_id(text: str) -> MessageId:
    """The element <id> ([MC-MQSRM] 2.2.4.3)."""
    ordinal, _, guid = text.removeprefix("uuid:").partition("@")
    if not text.startswith("uuid:"):
        raise DecodeError(f"{text!r} is not uuid:number@GUID")
    return MessageId(_guid(guid), _ordinal(ordinal))


def _stream_id(text: str) -> StreamId:
    guid, _, ordinal = text.removeprefix("uid:").partition("\\")
    if not text.startswith("uid:"):
        raise DecodeError(f"{text!r} is not uid:GUID\\number")
    return StreamId(_guid(guid), _ordinal(ordinal))


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError(f"{text!r} is not Base64") from error


@lru_cache(maxsize=_CACHED)
def correlation(text: str) -> bytes:
    """The element <Correlation> ([MC-MQSRM] 2.2.6.5)."""
    if len(text) > _LONGEST_CORRELATION or len(octets := _base64(text)) != CORRELATION_SIZE:
        raise DecodeError(f"{text!r} is no correlation of {CORRELATION_SIZE} bytes")
    return octets


def _format_names(text: str) -> tuple[str, ...]:
    if not text:
        raise DecodeError("no name")
    return tuple(text.split())


def _decision(text: str) -> bool:
    if text not in ("positive", "negative"):
        raise DecodeError(f"{text!r} is neither positive nor negative")
    return text == "positive"


def _destination(text: str) -> str:
    if not text[:_LONGEST_START].lower().startswith(_DESTINATIONS):
        raise DecodeError(f"{text!r} is no URL of a queue")
    return text


# Elements: each table has the fields of a class, and how they are read

_Leaf = tuple[str, Callable[[str], object]]
"""A field, and the converter of the text in an element without child elements."""
_Nested = tuple[str, Callable[[_Element], object]]
_Table = tuple[Mapping[str, _Leaf], Mapping[str, _Nested]]


def _table(namespace: str, leaves: Mapping[str, _Leaf], **nested: _Nested) -> _Table:
    """Fields and converters by the names of elements."""
    return (
        {f"{{{namespace}}}{element}": entry for element, entry in leaves.items()},
        {f"{{{namespace}}}{element}": entry for element, entry in nested.items()},
    )


def _fields(parent: _Element, table: _Table, *required: str) -> dict[str, Any]:
    """The fields whose elements are present; other elements are skipped (G48).

    DecodeError for a repeated element, and for a missing required one.
    """
    leaves, nested = table
    values: dict[str, Any] = {}
    for child in _children(parent):
        tag = child.tag
        if leaf := leaves.get(tag):
            name, parse = leaf
            if len(child):
                raise DecodeError(f"<{_local_name(child)}> holds elements")
            try:
                value: object = parse((child.text or "").strip())
            except DecodeError as error:
                raise DecodeError(f"<{_local_name(child)}>: {error.reason}") from error
        elif tag in nested:
            name, read = nested[tag]
            value = read(child)
        else:
            continue
        if name in values:
            raise DecodeError(f"<{_local_name(child)}> is there twice")
        values[name] = value
    for name in required:
        if name not in values:
            raise DecodeError(f"<{_local_name(parent)}> does not tell {name}")
    return values


def _local_name(element: _Element) -> str:
    return etree.QName(element).localname


def _text(element: _Element) -> str:
    """With the white space around it."""
    if len(element):
        raise DecodeError(f"<{_local_name(element)}> holds elements")
    return element.text or ""


# <Msmq>

_EOD = _table(
    MSMQ,
    {
        "First": ("first", _present),
        "Last": ("last", _present),
        "ConnectorId": ("connector_id", _guid),
    },
)
_PROVIDER = _table(MSMQ, {"Type": ("type", number_32)}, Name=("name", _text))


def _eod(element: _Element) -> Eod:
    return Eod(**_fields(element, _EOD))


def _provider(element: _Element) -> Provider:
    """[MC-MQSRM] 3.1.7.2.4 omits values that are 0 or empty, against 2.2.6.12."""
    return Provider(**{"type": 0, **_fields(element, _PROVIDER)})


_MSMQ = _table(
    MSMQ,
    {
        "Class": ("message_class", _class),
        "Priority": ("priority", _priority),
        "Journal": ("journal", _present),
        "DeadLetter": ("dead_letter", _present),
        "Correlation": ("correlation", correlation),
        "Trace": ("trace", _present),
        "ConnectorType": ("connector_type", _guid),
        "App": ("app", number_32),
        "BodyType": ("body_type", number_32),
        "HashAlgorithm": ("hash_algorithm", number_32),
        "SourceQmGuid": ("source_qm_guid", _guid),
        "DestinationMqf": ("destination_mqf", _format_names),
        "AdminMqf": ("admin_mqf", _format_names),
        "ResponseMqf": ("response_mqf", _format_names),
        "TTrq": ("ttrq", parse_date),
    },
    Eod=("eod", _eod),
    Provider=("provider", _provider),
)


def _msmq(element: _Element) -> Msmq:
    needed = ("message_class", "priority", "body_type", "source_qm_guid")
    return Msmq(**_fields(element, _MSMQ, *needed))


# <services> and <stream>

_SEND_TO = _table(
    SRMP,
    {
        "sendTo": ("send_to", str),
        "positiveOnly": ("positive_only", _present),
        "negativeOnly": ("negative_only", _present),
    },
)


def _delivery_request(request: _Element) -> str:
    return str(_fields(request, _SEND_TO, "send_to")["send_to"])


def _commitment_request(request: _Element) -> CommitmentReceiptRequest:
    return CommitmentReceiptRequest(**_fields(request, _SEND_TO, "send_to"))


_SERVICES = _table(
    SRMP,
    {"durable": ("durable", _present)},
    deliveryReceiptRequest=("delivery_receipt_request", _delivery_request),
    commitmentReceiptRequest=("commitment_receipt_request", _commitment_request),
)


def _services(services: _Element) -> Services:
    return Services(**_fields(services, _SERVICES))


_START = _table(SRMP, {"sendReceiptsTo": ("url", str)})


def _start(start: _Element) -> str:
    return str(_fields(start, _START, "url")["url"])


_STREAM = _table(
    SRMP,
    {
        "streamId": ("stream_id", _stream_id),
        "current": ("current", current),
        "previous": ("previous", number_32),
    },
    start=("send_receipts_to", _start),
)


def _stream(stream: _Element) -> Stream:
    """[MC-MQSRM] 2.2.5.3; a missing <previous> is the number before (G46)."""
    values = _fields(stream, _STREAM, "stream_id", "current")
    return Stream(**{"previous": values["current"] - 1, **values})


# Receipts

_DELIVERY_RECEIPT = _table(
    SRMP, {"receivedAt": ("received_at", parse_date), "id": ("id", message_id)}
)
_COMMITMENT_RECEIPT = _table(
    SRMP,
    {
        "decidedAt": ("decided_at", parse_date),
        "decision": ("positive", _decision),
        "id": ("id", message_id),
    },
)
_STREAM_RECEIPT = _table(
    SRMP, {"streamId": ("stream_id", _stream_id), "lastOrdinal": ("last_ordinal", number_32)}
)


def _delivery_receipt(receipt: _Element) -> DeliveryReceipt:
    return DeliveryReceipt(**_fields(receipt, _DELIVERY_RECEIPT, "received_at", "id"))


def _commitment_receipt(receipt: _Element) -> CommitmentReceipt:
    needed = ("decided_at", "positive", "id")
    return CommitmentReceipt(**_fields(receipt, _COMMITMENT_RECEIPT, *needed))


def _stream_receipt(receipt: _Element) -> StreamReceipt:
    return StreamReceipt(**_fields(receipt, _STREAM_RECEIPT, "stream_id", "last_ordinal"))


# <Signature>


def _algorithm(element: _Element) -> str:
    return element.get("Algorithm") or ""


_REFERENCE = _table(
    SIGNATURE,
    {"DigestValue": ("digest_value", _base64)},
    DigestMethod=("digest_method", _algorithm),
)
_SIGNED_INFO = _table(SIGNATURE, {}, SignatureMethod=("signature_method", _algorithm))
_REFERENCE_TAG = f"{{{SIGNATURE}}}Reference"


def _signed_info(info: _Element) -> tuple[str, tuple[Reference, ...]]:
    method = _fields(info, _SIGNED_INFO, "signature_method")["signature_method"]
    references = tuple(
        _reference(child) for child in _children(info) if child.tag == _REFERENCE_TAG
    )
    if len(references) > _MAXIMUM_REFERENCES:
        raise DecodeError(f"<SignedInfo> with {len(references)} references")
    return method, references


def _reference(element: _Element) -> Reference:
    values = _fields(element, _REFERENCE, "digest_method", "digest_value")
    return Reference(element.get("URI") or "", **values)


_X509_DATA = _table(SIGNATURE, {"X509Certificate": ("certificate", _base64)})


def _x509_data(element: _Element) -> bytes | None:
    return _fields(element, _X509_DATA).get("certificate")


_KEY_INFO = _table(SIGNATURE, {}, X509Data=("certificate", _x509_data))


def _key_info(element: _Element) -> bytes | None:
    return _fields(element, _KEY_INFO).get("certificate")


_SIGNATURE = _table(
    SIGNATURE,
    {"SignatureValue": ("signature_value", _base64)},
    SignedInfo=("signed_info", _signed_info),
    KeyInfo=("certificate", _key_info),
)


def _signature(element: _Element) -> Signature:
    """[MC-MQSRM] 2.2.7; the caller, which has the text, adds SignedInfo as it was written."""
    values = _fields(element, _SIGNATURE, "signed_info", "signature_value")
    method, references = values.pop("signed_info")
    return Signature(method, references, **values)


# The header and its entries

_REV = _table(WS_ROUTING, {"via": ("via", str)})


def _rev(rev: _Element) -> str | None:
    """[MC-MQSRM] 2.2.4.4: an empty <via> counts as absent."""
    return _fields(rev, _REV, "via")["via"] or None


_PATH = _table(
    WS_ROUTING,
    {"to": ("to", _destination), "id": ("id", str)},
    action=("action", _text),
    rev=("via", _rev),
)
_PROPERTIES = _table(
    SRMP, {"expiresAt": ("expires_at", parse_date), "sentAt": ("sent_at", parse_date)}
)


def _path(path: _Element) -> dict[str, Any]:
    return _fields(path, _PATH, "action", "to", "id")


def _properties(properties: _Element) -> dict[str, Any]:
    return _fields(properties, _PROPERTIES, "expires_at")


_ENTRIES: Mapping[str, _Nested] = {
    f"{{{WS_ROUTING}}}path": ("path", _path),
    f"{{{SRMP}}}properties": ("properties", _properties),
    f"{{{SRMP}}}services": ("services", _services),
    f"{{{SRMP}}}stream": ("stream", _stream),
    f"{{{SRMP}}}deliveryReceipt": ("delivery_receipt", _delivery_receipt),
    f"{{{SRMP}}}commitmentReceipt": ("commitment_receipt", _commitment_receipt),
    f"{{{SRMP}}}streamReceipt": ("stream_receipt", _stream_receipt),
    f"{{{MSMQ}}}Msmq": ("msmq", _msmq),
    f"{{{SIGNATURE}}}Signature": ("signature", _signature),
}
_MARKED = frozenset(("path", "properties", "services", "stream"))
_STREAM_TAG = f"{{{SRMP}}}stream"


def _header(header: _Element) -> Envelope:
    """[MC-MQSRM] 3.1.5.1.1; without <Msmq> the identifier is 1@NULL, whatever <id> says."""
    values = _entries(header)
    if "path" not in values or "properties" not in values:
        raise DecodeError("<path> or <properties> is missing")
    path = values.pop("path")
    path["id"] = message_id(path["id"]) if "msmq" in values else MessageId()
    envelope = Envelope(**path, **values.pop("properties"), **values)
    if envelope.stream is not None:
        if envelope.msmq is None:
            raise DecodeError("<stream> without <Msmq>")
        envelope.services.durable = True
    return envelope


def _entries(header: _Element) -> dict[str, Any]:
    """The recognised entries; optional ones are skipped (G48)."""
    values: dict[str, Any] = {}
    for element in _children(header):
        known = _ENTRIES.get(element.tag) or _with_another_case(element)
        if known is None:
            continue
        name, read = known
        if name in values:
            raise DecodeError(f"<{name}> is there twice")
        if name in _MARKED and not _is_marked(element):
            raise DecodeError(f"<{name}> is not marked by mustUnderstand")
        values[name] = read(element)
    return values


def _is_marked(element: _Element) -> bool:
    mark = element.get(_MUST_UNDERSTAND)
    return mark is not None and mark.strip() != "0"


def _with_another_case(element: _Element) -> _Nested | None:
    """<Stream>, as the samples write it; DecodeError for an unknown element that must be
    understood."""
    if element.tag.lower() == _STREAM_TAG:
        return _ENTRIES[_STREAM_TAG]
    if _is_marked(element):
        raise DecodeError(f"{element.tag} is to be understood, and is not known")
    return None
