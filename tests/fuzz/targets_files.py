"""Targets of bodies and files: exports, notes of backups, certificates, TOML."""

import io
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from rpcqm.api.reading import write_json
from rpcqm.base.errors import DecodeError
from rpcqm.binary.signatures import sign, verified_level
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body, described_octets
from rpcqm.codec.bodies.dotnet_binary import decode_binary
from rpcqm.codec.bodies.formatters import DOTNET_BINARY, decode_body, encode_body
from rpcqm.codec.bodies.xml_documents import parse_xml
from rpcqm.codec.bodies.xml_values import value_of_xml
from rpcqm.codec.bodies.xml_writing import encode_xml
from rpcqm.codec.packet.enums import HashAlgorithm, MessageAuthenticationLevel
from rpcqm.codec.packet.export_file import ExportReader, ExportWriter
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.security.identifier import Sid
from rpcqm.config import ConfigurationError
from rpcqm.config.checking import check_file
from rpcqm.fast.formats.received_json import told_body
from rpcqm.store.backup import NOTE_NAME, read_note
from rpcqm.store.errors import StoreError
from tests.fuzz.der import mutated_der
from tests.fuzz.target import Run, Target, Violation, without_particulars
from tests.fuzz.targets_codec import _packets, fed_by
from tests.support.certificates import certificate_of
from tests.support.codec import dotnet
from tests.support.codec.costly_bodies import COSTLY

MOST_TOLD = 64 * 1024
VALUES = ("text", 7, 1.5, True, None, b"octets", 1 << 40)


def _dotnet_bodies() -> Iterable[bytes]:
    yield dotnet.body(b"\x06" + dotnet.number(1) + dotnet.text("hello"))
    yield dotnet.body(
        dotnet.array(1, 4, dotnet.nulls(2), dotnet.reference(2) * 2), dotnet.array(2, 0)
    )
    yield dotnet.body(dotnet.rectangle(1, 2, 3), dotnet.nulls(6))
    yield dotnet.body(dotnet.classes(3, 4))
    yield dotnet.body(dotnet.nested(5))
    yield dotnet.body(dotnet.doubled(5))
    for kind, octets in ((8, bytes(8)), (5, dotnet.text("1.5") * 2), (13, bytes(16))):
        yield dotnet.body(b"\x0f" + dotnet.number(1) + dotnet.number(2) + bytes([kind]) + octets)


def _read_dotnet(octets: bytes) -> Hashable:
    """Whatever is read can be written out."""
    return type(decode_binary(octets)).__name__, len(repr(decode_binary(octets))).bit_length()


def _costly_bodies() -> Iterable[bytes]:
    """Each behind the number of its type, in 16 bits."""
    for size in (100, 6_000):
        for body_type, make in COSTLY.values():
            yield body_type.to_bytes(2, "little") + make(size)
    for body in (*_dotnet_bodies(), *_xml_bodies(), b'{"a": [1, "b", null, 1e15, {}]}'):
        yield (DOTNET_BINARY if body[:1] == b"\0" else 0).to_bytes(2, "little") + body


def _tell_body(octets: bytes) -> Hashable:
    """Values and octets are counted against their bounds, and every way of telling is one."""
    body_type, body = int.from_bytes(octets[:2], "little"), octets[2:]
    budget = DecodeBudget(len(body))
    told = described_body(body, body_type, LONGEST_DECODED, budget)
    if budget.spent > budget.values and "undecoded" not in told:
        raise Violation(f"{budget.spent} values of {len(body)} octets")
    for each in (told, described_octets(body, body_type)):
        size = len(write_json(each))
        if size > 8 * len(body) + MOST_TOLD:
            raise Violation(f"{size} octets are told of {len(body)}")
        if len(body) < MOST_TOLD and each["value_type"] == "undecoded":
            raise Violation("a short body has no value")
    if told_body(body, body_type) != b"," + write_json(told)[1:-1]:
        raise Violation("a body is told in two ways")
    return told["value_type"], len(told), budget.spent.bit_length()


def _xml_bodies() -> Iterable[bytes]:
    yield from (encode_xml(value) for value in VALUES if value is not None)
    inner = b"<int>1</int><ArrayOfInt><char>65</char></ArrayOfInt>"
    yield b"<ArrayOfInt xmlns='urn:x' a='1'>" + inner + b"</ArrayOfInt>"
    yield b'<?xml version="1.0" encoding="utf-16"?><string>x</string>'
    yield b'<!DOCTYPE x [<!ENTITY a "aaa">]><string>&a;</string>'


def _read_xml(octets: bytes) -> Hashable:
    return type(value_of_xml(parse_xml(octets))).__name__


def _activex_bodies() -> Iterable[bytes]:
    for value in VALUES:
        body, kind = encode_body(value)
        yield kind.to_bytes(2, "little") + body


def _read_activex(octets: bytes) -> Hashable:
    return type(decode_body(octets[2:], int.from_bytes(octets[:2], "little"))).__name__


def _exports() -> Iterable[bytes]:
    for packets in ([], list(_packets())[:2]):
        file = io.BytesIO()
        writer = ExportWriter(file, {"queue": "x"})
        for packet in packets:
            writer.write(packet, {"lookup_id": "1"})
        writer.finish()
        yield file.getvalue()


def _read_export(octets: bytes) -> Hashable:
    count = 0
    for packet, _ in ExportReader(io.BytesIO(octets)):
        UserMessage(packet).validate()
        count += 1
    return count


_KEY = rsa.generate_private_key(65537, 1024)
_SIGNED = MessageAttributes(hash_algorithm=HashAlgorithm.SHA_256, body=b"content")


def _certificates() -> Iterable[bytes]:
    """Of keys of every kind, plain and with extensions; one key has signed the message."""
    for extended in (False, True):
        yield certificate_of(_KEY, extended)
        yield certificate_of(ec.generate_private_key(ec.SECP256R1()), extended)
        yield certificate_of(dsa.generate_private_key(1024), extended)


def _read_certificate(octets: bytes) -> Hashable:
    """As it comes in a signed message; the reason why it is none only guides the search."""
    packet = build_user_message(replace(_SIGNED, sender_certificate=octets, signature=_signature()))
    return verified_level(PacketMessage(packet)), _kind_of(octets)


@cache
def _signature() -> bytes:
    packet = UserMessage(build_user_message(_SIGNED))
    return sign(packet, _KEY, MessageAuthenticationLevel.SIG20, HashAlgorithm.SHA_256)


def _kind_of(certificate: bytes) -> Hashable:
    try:
        return type(x509.load_der_x509_certificate(certificate).public_key()).__name__
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        return type(error).__name__, without_particulars(str(error))


def _sids() -> Iterable[bytes]:
    for text in ("S-1-5-21-1-2-3-500", "S-1-5-32-544", "S-1-0x123456789abc-1"):
        yield b"\0" + Sid.parse(text).encode()
        yield b"\1" + text.encode()


def _read_sid(octets: bytes) -> Hashable:
    try:
        if octets[:1] == b"\0":
            sid = Sid.decode(octets[1:])
        else:
            sid = Sid.parse(octets[1:].decode("utf-8", "surrogateescape"))
    except ValueError as error:
        return type(error).__name__
    if Sid.parse(str(sid)) != sid:
        raise Violation("a SID that is written becomes another one")
    return len(str(sid)).bit_length()


def in_a_file(name: str, read: Callable[[Path], Hashable]) -> Any:
    """Opens a directory with one file that holds what is fed."""

    @contextmanager
    def opened() -> Iterator[Run]:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, name)

            def run(octets: bytes) -> Hashable:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.write(descriptor, octets)
                os.close(descriptor)
                return read(path)

            yield run

    return opened


def _notes() -> Iterable[bytes]:
    yield b'{"queue_manager": "host", "made": "2026-01-01", "messages": 3, "more": [[1], {}]}'


def _read_backup_note(path: Path) -> Hashable:
    return len(read_note(path.parent))


_DIRECTORY = b"""[enterprise]
name = "E"
[[site]]
name = "Berlin"
gates = ["A"]
[[queue_manager]]
name = "A"
identifier = "6b29fc40-ca47-1067-b31d-00dd010662da"
sites = ["Berlin"]
[[queue]]
path = 'A\\\\orders'
identifier = "5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918"
[[user]]
name = "alice"
sid = "S-1-5-21-1-2-3-1001"
[[distribution_list]]
name = "all"
identifier = "f0e1d2c3-b4a5-4687-9a8b-7c6d5e4f3a2b"
members = ['DIRECT=OS:a\\\\private$\\\\orders']
[[queue_alias]]
name = "shop"
format_name = 'DIRECT=OS:a\\\\private$\\\\orders'
"""


def _toml_files() -> Iterable[bytes]:
    yield _DIRECTORY
    yield b'host = "127.0.0.1"\nrpc_port = 0\n[limits]\nconnections = 100\n[storage]\nreserve = 1\n'


def _check_toml(path: Path) -> Hashable:
    check_file(path)
    return "good"


TARGETS = (
    Target("dotnet-body", _dotnet_bodies, fed_by(_read_dotnet), (DecodeError,), share=10),
    Target("told-body", _costly_bodies, fed_by(_tell_body), share=10),
    Target("xml-body", _xml_bodies, fed_by(_read_xml), (DecodeError,), share=5),
    Target("activex-body", _activex_bodies, fed_by(_read_activex), (DecodeError,), share=3),
    Target("export-file", _exports, fed_by(_read_export), (DecodeError,), share=5),
    Target(
        "certificate",
        _certificates,
        fed_by(_read_certificate),
        (DecodeError,),
        mutated_der,
        share=3,
    ),
    Target("sid", _sids, fed_by(_read_sid), (DecodeError,), share=2),
    Target("backup-note", _notes, in_a_file(NOTE_NAME, _read_backup_note), (StoreError,), share=2),
    Target(
        "toml-file", _toml_files, in_a_file("file", _check_toml), (ConfigurationError,), share=3
    ),
)
