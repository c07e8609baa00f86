"""How two answers to the same question are compared: field by field, under a rule for each."""

import functools
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.ndr_fields import StubField
from rpcqm.capture.packet_fields import packet_fields
from rpcqm.capture.replay import objects
from rpcqm.capture.replay.mapping import NO_HANDLE, Mapping
from rpcqm.capture.srmp_fields import element, leaves
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.interface import Value
from rpcqm.codec.packet.base import SIGNATURE_OCTETS
from rpcqm.codec.packet.fields import SIGNATURE
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.packet.srmp import CompoundMessageHeader, SRMPEnvelopeHeader
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.mqvalues import VT_DATE
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.rpc.tower import Tower
from rpcqm.srmp.reading import read_envelope


@dataclass(frozen=True, slots=True)
class Rule:
    """`kind` is exact, mapped (to what `detail` is) or ignored (because of `detail`)."""

    kind: str
    detail: str = ""


_URL = re.compile("(?i)https?://([^/?]*)(.*)", re.DOTALL)
_QUEUE_NAMES = tuple(f"UserHeader.{name}Queue" for name in ("Destination", "Admin", "Response"))
_MESSAGE_ID, _SOURCE = "UserHeader.MessageID", "UserHeader.SourceQueueManager"

_OF_HTTP = ("SRMPEnvelopeHeader", "CompoundMessageHeader")
"""Headers of a message that came by HTTP: its request, whose host and dates are other ones."""

EXACT = Rule("exact")
HANDLE = Rule("mapped", "handle")


def _mapped(what: str) -> Rule:
    return Rule("mapped", what)


def _ignored(reason: str) -> Rule:
    return Rule("ignored", reason)


_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (
            r"SRMPEnvelopeHeader\.(.*\.)?(sent_at|expires_at|ttrq|received_at|decided_at)$",
            _ignored("the message was sent at another time"),
        ),
        (r"SRMPEnvelopeHeader\.(id|.*_receipt\.id)$", _mapped("identifier over HTTP")),
        (r"SRMPEnvelopeHeader\..*\.stream_id$", _mapped("stream")),
        (r"SRMPEnvelopeHeader\..*\.source_qm_guid$", _mapped("queue manager over HTTP")),
        (r"(SRMPEnvelopeHeader\..*|Queue)\.host$", _mapped("host over HTTP")),
        (r"pdwArriveTime$", _ignored("the time of arrival is another one")),
        (r"\.SentTime$", _ignored("the message was sent at another time")),
        (r"\.TimeToReachQueue$", _ignored("it is absolute, from the time of sending on")),
        (r"\.QueueManagerAddress$", _ignored("it holds the address of the sender")),
        (r"\.extension\.subqueue\.last_move_time$", _ignored("the move was at another time")),
        (
            r"\.extension\.subqueue\.abort_counter$",
            _ignored("not every server counts what is given back"),  # G180
        ),
        (r"\.extension\.address", _ignored("it holds the address of the sender")),
        (r"\.BaseHeader\.Reserved$", _ignored("any value is allowed, and nobody reads it")),
        (r"EstablishConnectionHeader\.TimeStamp$", _ignored("it is the client's clock")),
        (r"\.RecoverableAckTimeout$", _ignored("the client measures it")),
        (r"\.tx_previous_sequence_number$", _ignored("it depends on which messages came before")),
        (r"\.(SourceQueueManager|ClientGuid|ServerGuid|source_guid)$", _mapped("queue manager")),
        (r"\.MessageID$", _mapped("message number")),
        (r"\.TxSequenceID$", _mapped("transaction sequence")),
        (r"\.(Lineage|Uniquifier)$", _mapped("message identifier")),
        (r"\.(pSequenceId|SequentialId)$", _mapped("sequence number")),
        (r"\.(dwArriveTime|pArrivedTime)$", _ignored("the time of arrival is another one")),
        (r"\.pSentTime$", _ignored("the message was sent at another time")),
        (
            r"\.(ulAbsoluteTimeToQueue|pulRelativeTime\w+)$",
            _ignored("it is absolute, from the time of sending on"),
        ),
        (r"\.ppSenderID$", _mapped("sender")),
        (r"\.ppSrcQMID$", _mapped("queue manager")),
        (r"\.(phCursor|hCursor|Cursor)$", _mapped("cursor")),
        (r"\.(dwpQueue|phQueue|hRemoteQueue|dwQueue)$", _mapped("queue handle")),
        (r"\.pMoveContext$", _mapped("move context")),
        (r"\.(pdwContext|dwpContext|pdwQMContext)$", _mapped("context")),
        (r"^R\w+ServerPort\.result$", _mapped("port")),
        (r"\.tower\.port$", _mapped("port")),
        (r"\.(authnHint|pAuthnHint)$", _ignored("it tells what protection the server asks for")),
        (r"\.\w*dsa\w+\.", _ignored("it tells the server's own addresses and ports")),
        (r"\.date$", _ignored("it is the time of another message or queue")),
        (r"\.(pOxid|Oxid|oxid)$", _mapped(objects.OXID)),
        (r"\.oid$", _mapped(objects.OID)),
        (r"\.(ipid|ipidRemUnknown|pipidRemUnknown)$", _mapped(objects.IPID)),
        (r"\.pSetId$", _mapped(objects.PING_SET)),
        (r"^get_LookupId\.\w+\.value$", _mapped(objects.LOOKUP_TEXT)),
        (r"^get_(Id|SenderId|SourceMachineGuid|Handle2?|TransactionId)\.", _mapped("property")),
        (r"\.tower\.host$", _mapped("host")),
        (r"\.machine$", _mapped("machine name")),
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which two answers differ although they should not."""

    field: str
    captured: object
    live: object
    rule: str


class Comparison:
    """Compares answers and counts what was not compared, by reason."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self.ignored: dict[str, int] = {}

    def compare(self, call: CapturedCall, captured: object, live: object) -> list[Difference]:
        """The differences of two decoded responses."""
        operation = call.operation
        handles = {h.name for h in operation.context_handles} if operation else set()
        one = dict(_fields(captured, call.name))
        other = dict(_fields(live, call.name))
        return self.compare_fields(one, other, handles)

    def compare_fields(
        self, one: dict[str, object], other: dict[str, object], handles: Collection[str] = ()
    ) -> list[Difference]:
        """The differences of two answers, given as fields by path; `handles` are their handles."""
        found = []
        for path in dict.fromkeys((*one, *other)):
            pair = one.get(path, "(absent)"), other.get(path, "(absent)")
            rule = HANDLE if path.rpartition(".")[2] in handles else rule_of(path)
            if path.endswith(_MESSAGE_ID):
                # Every queue manager counts its own.
                source = one.get(path.removesuffix(_MESSAGE_ID) + _SOURCE, "")
                rule = Rule(rule.kind, f"{rule.detail} of {source}")
            if not self._fits(rule, *pair):
                found.append(Difference(path, *pair, rule.kind))
        return found

    def ignore(self, reason: str, count: int = 1) -> None:
        """Note that something was not compared."""
        if count:
            self.ignored[reason] = self.ignored.get(reason, 0) + count

    def _fits(self, rule: Rule, captured: object, live: object) -> bool:
        if rule.kind == "ignored":
            self.ignore(rule.detail)
            return True
        if rule.kind == "exact" or not captured or not live or NO_HANDLE in (captured, live):
            return bool(captured == live)
        return self._mapping.agrees(rule.detail, captured, live)


@functools.lru_cache(maxsize=1 << 14)
def rule_of(path: str) -> Rule:
    """The rule for a field, by its path."""
    for pattern, rule in _RULES:
        if pattern.search(path):
            return rule
    return EXACT


def _fields(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The plain values in a decoded value, each with its path."""
    if isinstance(value, SectionBuffer):
        yield from _section(value, path)
    elif isinstance(value, Value):
        for name in value.__slots__:
            yield from _fields(getattr(value, name, None), f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.#count", len(value)
        if len(value) > 1 and all(isinstance(each, SectionBuffer) for each in value):
            yield from _sections(value, path)
            return
        for index, each in enumerate(value):
            yield from _fields(each, f"{path}[{index}]")
    elif isinstance(value, bytes) and value[SIGNATURE] == SIGNATURE_OCTETS:
        yield from packet_parts(value, path)
    elif isinstance(value, bytes) and path.endswith("tower_octet_string"):
        yield from _tower(value, path)
    elif isinstance(value, str) and "\\private$\\" in value.lower():
        yield from _queue_name(value, path)
    else:
        yield from _of_automation(value, path)


def _of_automation(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The same for automation values and references to objects; other values stay unchanged."""
    if isinstance(value, Variant):
        yield f"{path}.vt", value.vt
        yield from _fields(value.value, f"{path}.{'date' if value.vt == VT_DATE else 'value'}")
    elif isinstance(value, SafeArray):
        yield from _fields(value.values, f"{path}.values")
    elif isinstance(value, bytes) and objects.is_reference(value):
        for inner, part in objects.reference_fields(value, path):
            yield from _fields(part, inner)
    else:
        yield path, value


def _sections(sections: list[SectionBuffer], path: str) -> Iterator[tuple[str, object]]:
    """The fields of one packet that was read in several sections."""
    parts = []
    for index, section in enumerate(sections):
        yield from _sizes(section, f"{path}[{index}]")
        parts.append((section.pSectionBuffer or b"").ljust(section.SectionSizeAlloc, b"\0"))
    yield from packet_parts(b"".join(parts), path)


def _section(section: SectionBuffer, path: str) -> Iterator[tuple[str, object]]:
    yield from _sizes(section, path)
    yield from _fields(section.pSectionBuffer, f"{path}.pSectionBuffer")


def _sizes(section: SectionBuffer, path: str) -> Iterator[tuple[str, object]]:
    """What a section says of itself; names of machines may be longer or shorter elsewhere."""
    octets = section.pSectionBuffer or b""
    names = _names_size(packet_fields(octets)[0]) if octets[SIGNATURE] == SIGNATURE_OCTETS else 0
    yield f"{path}.SectionBufferType", section.SectionBufferType
    for name in ("SectionSizeAlloc", "SectionSize"):
        yield f"{path}.{name}.#without_names", getattr(section, name) - names


def _names_size(fields: list[StubField]) -> int:
    varying = (*_QUEUE_NAMES, *_OF_HTTP)
    return sum(field.size for field in fields if field.path in varying)


def _queue_name(value: str, path: str) -> Iterator[tuple[str, object]]:
    machine, separator, name = value.partition("\\")
    yield f"{path}.machine", machine
    yield f"{path}.name", f"{separator}{name}"


def _tower(octets: bytes, path: str) -> Iterator[tuple[str, object]]:
    try:
        tower = Tower.unpack(octets)
    except DecodeError:
        # Octets that are no tower are compared as they are.
        yield path, octets
        return
    yield f"{path}.tower.interface", str(tower.interface)
    yield f"{path}.tower.transfer_syntax", str(tower.transfer_syntax)
    yield f"{path}.tower.protocols", tower.protocols
    yield f"{path}.tower.port", tower.tcp_port
    yield f"{path}.tower.host", tower.floors[-1].right


def packet_parts(octets: bytes, path: str) -> Iterator[tuple[str, object]]:
    """The fields of a packet, and of the headers that a remote reader gets behind it."""
    fields, why = packet_fields(octets)
    for field in fields:
        inner = f"{path}.{field.path}"
        if isinstance(field.value, str) and "\\private$\\" in field.value.lower():
            yield from _queue_name(field.value, inner)
        elif isinstance(field.value, str) and _URL.fullmatch(field.value):
            yield from _url(field.value, inner)
        elif field.path in _OF_HTTP and isinstance(field.value, bytes):
            yield from _http_parts(field.value, inner)
        elif field.path == "BaseHeader.PacketSize":
            yield f"{inner}.#without_names", field.value - _names_size(fields)
        else:
            yield inner, field.value
    if why:
        # A first section ends within the packet.
        yield f"{path}.#size", len(octets)
        return
    # Headers that cannot be read are not compared; the packet before them is.
    with suppress(DecodeError):
        size = UserMessage(octets).size
        if len(octets) > size:
            yield from _extension(MessagePacketExtension.decode(octets, size), path)


def _http_parts(octets: bytes, path: str) -> Iterator[tuple[str, object]]:
    """The elements of an envelope, hosts of URLs apart; of a whole request its body alone."""
    try:
        if path.endswith(_OF_HTTP[1]):
            yield f"{path}.body", CompoundMessageHeader.decode(octets)[0].body
            return
        text = SRMPEnvelopeHeader.decode(octets)[0].data
        envelope = read_envelope(text.encode())
    except (DecodeError, UnicodeEncodeError):
        # What cannot be read is compared as it is.
        yield path, octets
        return
    for name, value in leaves("", element(envelope)):
        if isinstance(value, str) and _URL.fullmatch(value):
            yield from _url(value, f"{path}.{name}")
        else:
            yield f"{path}.{name}", value


def _url(value: str, path: str) -> Iterator[tuple[str, object]]:
    _, host, rest = _URL.split(value)[:3]
    yield f"{path}.host", host.lower()
    yield f"{path}.path", rest


def _extension(extension: MessagePacketExtension, path: str) -> Iterator[tuple[str, object]]:
    for name in ("subqueue", "dead_letter", "address"):
        header = getattr(extension, name, None)
        if header is None:
            continue
        for part in getattr(header, "__slots__", ()):
            yield f"{path}.extension.{name}.{part}", getattr(header, part)
