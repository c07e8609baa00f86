"""Targets of the codecs: packets, names, security descriptors, and the stubs of every method."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.interface import load
from rpcqm.codec.names.format_name import (
    FormatName,
    format_names,
    parse_format_names,
)
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.ndr.compile import MessageCodec, Wire
from rpcqm.codec.packet.internal import PingPacket, decode_internal_packet
from rpcqm.codec.packet.message import (
    MessageAttributes,
    PacketMessage,
    build_user_message,
    read_attributes,
)
from rpcqm.codec.packet.remote_read import (
    HostAddress,
    MessagePacketExtension,
    message_packet,
)
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.sddl import format_sddl, parse_sddl
from tests.fuzz import captures
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Run, Target, Violation
from tests.support.codec.idl_values import messages
from tests.support.codec.interfaces import INTERFACES
from tests.support.codec.packets import split_message_packet

PACKETS = Path(__file__).parents[1] / "vectors" / "packets"
SOURCE = UUID("c626ea11-e6b6-9749-9595-9150557358d1")


def fed_by(function: Callable[[bytes], Hashable]) -> Any:
    """Opens nothing: the function is fed as it is."""

    @contextmanager
    def opened() -> Iterator[Run]:
        yield function

    return opened


# Packets.


def _printed() -> list[bytes]:
    return [bytes.fromhex(path.read_text("ascii")) for path in sorted(PACKETS.glob("*.hex"))]


def _packets() -> Iterable[bytes]:
    """The user message of the specification, completed, and some of our own."""
    yield next(each for each in _printed() if len(each) > 1000) + b"a\0" * 286 + bytes(2)
    name = FormatName.parse(r"DIRECT=OS:host\private$\orders")
    for more in (
        {},
        {"label": "label", "extension": b"more", "body": b"octets", "priority": 7},
        {"response_queue_format_name": name, "administration_queue_format_name": name},
        {"signature": b"s" * 64, "hash_algorithm": 0x8004, "sender_certificate": b"c" * 40},
        {"destination_multi_queue_format_name": (name, FormatName.private(SOURCE, 7))},
        {"transaction_identifier": 9, "first_in_transaction": True},
    ):
        values: dict[str, Any] = {
            "destination_queue_format_name": name,
            "identifier": MessageIdentifier(SOURCE, 4711),
            "sent_time": 1700000000,
        }
        yield build_user_message(MessageAttributes(**values | more))


def _read_packet(octets: bytes) -> Hashable:
    """All attributes of a packet; what passes validation has each of them."""
    packet = PacketMessage(octets)
    read_attributes(packet)
    shape = tuple(bool(getattr(packet, name)) for name in _HEADERS)
    packet.validate()
    message_packet(octets, host=HostAddress.parse("192.0.2.7"))
    return shape


_HEADERS = (
    "user_header",
    "transaction_header",
    "security_header",
    "debug_header",
    "srmp_envelope_header",
    "compound_message_header",
    "soap",
    "multi_queue_format_header",
    "session_header",
)


def _remote_packets() -> Iterable[bytes]:
    for octets in _packets():
        yield message_packet(octets, host=HostAddress.parse("192.0.2.7"))
        yield message_packet(octets, MessagePacketExtension().encode())


def _read_remote_packet(octets: bytes) -> Hashable:
    packet, extension = split_message_packet(octets)
    host = extension.extended_address and extension.extended_address.host
    return packet.label == "", extension.subqueue is None, extension.dead_letter is None, str(host)


def _read_internal(octets: bytes) -> Hashable:
    if octets[:1] and octets[0] & 1:
        PingPacket.decode(octets[1:]).validate()
        return "ping"
    return type(decode_internal_packet(octets[1:])).__name__


def _internal_packets() -> Iterable[bytes]:
    for octets in _printed():
        yield (b"\1" if len(octets) == 24 else b"\0") + octets


# Names and descriptors; text comes as UTF-8.


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _read_format_name(octets: bytes) -> Hashable:
    names = parse_format_names(_text(octets))
    if parse_format_names(format_names(names)) != names:
        raise Violation("a format name that is written becomes another one")
    return len(names), tuple(sorted({(each.type, each.suffix) for each in names}))


FORMAT_NAMES = (
    r"DIRECT=OS:host\private$\orders;journal",
    r"DIRECT=TCP:192.0.2.7\orders;sub",
    r"DIRECT=HTTPS://host:8080/msmq/private$/orders",
    "PUBLIC=c626ea11-e6b6-9749-9595-9150557358d1;JOURNAL",
    "PRIVATE=c626ea11-e6b6-9749-9595-9150557358d1\\0000000a",
    "MACHINE=c626ea11-e6b6-9749-9595-9150557358d1;DEADXACT",
    "DL=c626ea11-e6b6-9749-9595-9150557358d1,example.org",
    "MULTICAST=224.0.0.1:8001",
    r"DIRECT=OS:a\b,PUBLIC=c626ea11-e6b6-9749-9595-9150557358d1,MULTICAST=234.1.1.1:80",
)
PATH_NAMES = (r".\private$\orders", r"host\orders;sub", r"host\private$\a;journal", r".\SYSTEM$;x")


def _read_path_name(octets: bytes) -> Hashable:
    path = PathName.parse(_text(octets))
    if PathName.parse(str(path)) != path:
        raise Violation("a path name that is written becomes another one")
    return path.kind, path.is_journal, path.subqueue == ""


SDDL = (
    "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)S:P(AU;FA;GR;;;WD)",
    "O:SYD:(OA;;0x1f;c626ea11-e6b6-9749-9595-9150557358d1;;S-1-5-21-1-2-3-500)(D;;GA;;;AN)",
    "D:NO_ACCESS_CONTROL",
)


def _read_sddl(octets: bytes) -> Hashable:
    descriptor = parse_sddl(_text(octets))
    if SecurityDescriptor.decode(descriptor.encode()).encode() != descriptor.encode():
        raise Violation("a descriptor that is encoded becomes another one")
    return _shape(descriptor)


def _read_descriptor(octets: bytes) -> Hashable:
    descriptor = SecurityDescriptor.decode(octets)
    try:
        format_sddl(descriptor)
    except MQError as error:
        return error.status, _shape(descriptor)
    return _shape(descriptor)


def _shape(descriptor: SecurityDescriptor) -> Hashable:
    aces = descriptor.dacl.aces if descriptor.dacl else ()
    return tuple(sorted({each.type for each in aces})), descriptor.sacl is None


# Stubs: the first octets of an input say whose, and in which representation.

WIRES = (Wire(), Wire(ndr64=True), Wire(big_endian=True))


@cache
def codecs() -> tuple[tuple[str, MessageCodec], ...]:
    """The codecs of all requests and responses in all representations."""
    return tuple(
        (f"{name}.{operation.name}", load(name).compiler(wire).codec(operation, response))
        for name, operation in OPERATIONS
        for wire in WIRES
        for response in (False, True)
    )


OPERATIONS = [
    (name, operation)
    for name in INTERFACES
    for operation in load(name).declaration.operations
    if operation is not None
]


def _read_stub(octets: bytes) -> Hashable:
    """A value that is decoded is encoded and decoded again: the same one."""
    known = codecs()
    name, codec = known[int.from_bytes(octets[:2], "little") % len(known)]
    value = codec.decode(octets[2:])
    if codec.decode(codec.encode(value)) != value:
        raise Violation(f"a value of {name} that is encoded becomes another one")
    return name


def _stubs() -> Iterable[bytes]:
    """What real clients sent; three values of each request and response in each representation."""
    names = [name for name, _ in codecs()]
    for name, stub in captures.requests():
        if name in names:
            yield names.index(name).to_bytes(2, "little") + stub
    at = 0
    for _, operation in OPERATIONS:
        values = {response: examples(operation, response) for response in (False, True)}
        for _ in WIRES:
            for response in (False, True):
                for value in values[response]:
                    yield at.to_bytes(2, "little") + codecs()[at][1].encode(value)
                at += 1


def examples(operation: Any, response: bool, count: int = 3) -> list[Any]:
    """Some values of a request or response, the same each time, the largest among them."""
    found: list[Any] = []

    @settings(
        max_examples=4 * count,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(messages(operation, response))
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return sorted(found, key=lambda value: len(repr(value)))[-count:]


def _stub_mutated(random: Random, octets: bytes, others: Any) -> bytes:
    """Mostly the same method in the same representation."""
    if random.random() < 0.02:
        return mutated(random, octets, others)
    return octets[:2] + mutated(random, octets[2:], [octets[2:]])


TARGETS = (
    Target("packet", _packets, fed_by(_read_packet), (DecodeError,), share=15),
    Target("remote-packet", _remote_packets, fed_by(_read_remote_packet), (DecodeError,), share=10),
    Target("internal-packet", _internal_packets, fed_by(_read_internal), (DecodeError,), share=5),
    Target(
        "format-name",
        lambda: [each.encode() for each in FORMAT_NAMES],
        fed_by(_read_format_name),
        (MQError,),
    ),
    Target(
        "path-name",
        lambda: [each.encode() for each in PATH_NAMES],
        fed_by(_read_path_name),
        (MQError,),
        share=5,
    ),
    Target("sddl", lambda: [each.encode() for each in SDDL], fed_by(_read_sddl), (MQError,)),
    Target(
        "descriptor",
        lambda: [parse_sddl(each).encode() for each in SDDL],
        fed_by(_read_descriptor),
        (DecodeError,),
    ),
    Target("stub", _stubs, fed_by(_read_stub), (DecodeError,), mutate=_stub_mutated, share=40),
)
