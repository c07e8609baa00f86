"""Certificates that prove nothing: with messages, of clients, and of servers that are sent to."""

import base64
import http.client
import math
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from Cryptodome.Hash import MD2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from rpcqm.binary.signatures import MD2_OCTETS, sign
from rpcqm.codec.packet.enums import (
    HashAlgorithm,
    MessageAuthenticationLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import build_user_message, read_attributes
from rpcqm.codec.packet.signature import signed_properties
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.security.verifying_keys import EXPONENT_BITS
from rpcqm.http.client import HttpClient
from rpcqm.http.tls import client_context, server_context
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.binary.stranger import Stranger, Victim
from tests.support.certificates import certificate_of, write_tls_files
from tests.support.clock import SimulatedClock
from tests.support.http.http_server import serving_http
from tests.support.waiting import PATIENCE

# With messages, at port 1801.

ALICE, BOB = "S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3-1002"
SIGNED = f"O:BAD:(A;;0xf003f;;;BA)(A;;0x4;;;{ALICE})(A;;0x4;;;{BOB})"
LONGEST, TOO_LONG = 1 << EXPONENT_BITS - 1, 1 << EXPONENT_BITS


@cache
def key_of(_: str) -> rsa.RSAPrivateKey:
    """Somebody's key."""
    return rsa.generate_private_key(65537, 2048)


@cache
def key_with_exponent(least: int) -> rsa.RSAPrivateKey:
    """A key with the first public exponent behind `least`, so that its signatures are good."""
    numbers = key_of(f"of {least}").private_numbers()
    p, q = numbers.p, numbers.q
    order = math.lcm(p - 1, q - 1)
    exponent = least + 1
    while math.gcd(exponent, order) > 1:
        exponent += 2
    secret = pow(exponent, -1, order)
    made = rsa.RSAPrivateNumbers(
        p,
        q,
        secret,
        rsa.rsa_crt_dmp1(secret, p),
        rsa.rsa_crt_dmq1(secret, q),
        numbers.iqmp,
        rsa.RSAPublicNumbers(exponent, p * q),
    )
    return made.private_key(unsafe_skip_rsa_key_validation=True)


@cache
def expired(key: rsa.RSAPrivateKey) -> bytes:
    """A certificate whose days are over."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "alice")])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(start).not_valid_after(start + timedelta(days=1))
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def registered() -> str:
    """The directory: alice has four certificates, bob one."""
    keys = [key_of("alice"), key_with_exponent(LONGEST), key_with_exponent(TOO_LONG)]
    of_alice = [*map(certificate_of, keys), expired(key_of("old"))]
    users = {ALICE: of_alice, BOB: [certificate_of(key_of("bob"))]}
    lines = ['[enterprise]\nname = "example"\n']
    for sid, certificates in users.items():
        texts = [base64.b64encode(each).decode() for each in certificates]
        lines.append(f'[[user]]\nname = "{sid}"\nsid = "{sid}"\ncertificates = {texts}\n')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    place = tmp_path_factory.mktemp("directory") / "directory.toml"
    place.write_text(registered(), "utf-8")
    settings = f'name = "here"\ndirectory_file = "{place}"\n'
    with private_queue_manager(configuration=settings) as running:
        yield Victim(running)


@dataclass(frozen=True)
class Shown:
    """Whose certificate comes with a message, whose key has signed it, and whom it names."""

    certificate: bytes
    key: rsa.RSAPrivateKey
    sid: str = ALICE


def send(stranger: Stranger, to: str, shown: Shown) -> None:
    """A message that is signed like that; without a SID it names no sender."""
    kind = SenderIdentifierType.SID if shown.sid else SenderIdentifierType.NONE
    packet = stranger.message(
        to,
        body=b"signed",
        sender_certificate=shown.certificate,
        sender_identifier_type=kind,
        sender_identifier=sid_bytes(shown.sid) if shown.sid else b"",
        hash_algorithm=HashAlgorithm.SHA_512,
    )
    signature = sign(UserMessage(packet), shown.key, MessageAuthenticationLevel.SIG20)
    stranger.send_packet(build_user_message(replace(read_attributes(packet), signature=signature)))


def own(name: str) -> Shown:
    return Shown(certificate_of(key_of(name)), key_of(name))


def with_exponent(least: int) -> Shown:
    key = key_with_exponent(least)
    return Shown(certificate_of(key), key)


MESSAGES: dict[str, tuple[Callable[[], Shown], bool]] = {
    "alice's own": (lambda: own("alice"), True),
    "by somebody else's key": (lambda: replace(own("alice"), key=key_of("mallory")), False),
    "of the same name, and nobody's": (lambda: own("mallory"), False),
    "of another account": (lambda: own("bob"), False),
    "alice's, for another account": (lambda: replace(own("alice"), sid=BOB), False),
    "of nobody, naming nobody": (lambda: replace(own("mallory"), sid=""), False),
    "the longest exponent": (lambda: with_exponent(LONGEST), True),
    "an exponent that takes long": (lambda: with_exponent(TOO_LONG), False),
    "over, and in the directory": (lambda: Shown(expired(key_of("old")), key_of("old")), True),
    "over, and nobody's": (lambda: Shown(expired(key_of("mallory")), key_of("mallory")), False),
}


@pytest.mark.parametrize("label", list(MESSAGES))
def test_a_message_is_from_whom_the_directory_has_its_certificate(
    victim: Victim, label: str
) -> None:
    """G190: the days of a certificate do not count, being in the directory does."""
    made, taken = MESSAGES[label]
    name = victim.create("signed", "--authenticate", "--sddl", SIGNED)
    with Stranger(victim.address) as stranger:
        send(stranger, name, made())
        victim.await_all(stranger)
    assert victim.bodies(name) == ([b"signed"] if taken else [])


def by_md2(key: rsa.RSAPrivateKey, data: bytes) -> bytes:
    """A signature by MD2, which no library makes any more ([RFC8017] 9.2)."""
    info = bytes.fromhex("3020300c06082a864886f70d020205000410") + MD2.new(data).digest()
    size = key.key_size // 8
    block = b"\0\1" + b"\xff" * (size - len(info) - 3) + b"\0" + info
    numbers = key.private_numbers()
    value = pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n)
    return value.to_bytes(size, "big")


@pytest.mark.bound("signatures.md2_octets")
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_hash_that_takes_long_is_made_of_so_many_octets(victim: Victim, beyond: int) -> None:
    name = victim.create("old", "--authenticate", "--sddl", SIGNED)
    level, key = MessageAuthenticationLevel.SIG20, key_of("alice")
    with Stranger(victim.address) as stranger:
        packet = stranger.message(
            name,
            sender_certificate=certificate_of(key),
            sender_identifier_type=SenderIdentifierType.SID,
            sender_identifier=sid_bytes(ALICE),
            hash_algorithm=HashAlgorithm.MD2,
        )
        others = len(signed_properties(UserMessage(packet), level))
        message = replace(read_attributes(packet), body=bytes(MD2_OCTETS - others + beyond))
        data = signed_properties(UserMessage(build_user_message(message)), level)
        assert len(data) == MD2_OCTETS + beyond
        message.signature = by_md2(key, data)
        stranger.send_packet(build_user_message(message))
        victim.await_all(stranger)
    assert len(victim.bodies(name)) == 1 - beyond


# Of clients.


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateQueueManager, Path]]:
    certificate, key = write_tls_files(tmp_path_factory.mktemp("console"))
    settings = f'[console]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    with private_queue_manager(("--console-port", "0"), settings) as running:
        words = ("user", "add", "alice", "--group", "administrators", "--password-stdin")
        running.run(*words, input="secret\n")
        yield running, certificate


@pytest.mark.parametrize("issuer", ["itself", "the server's own key"])
@pytest.mark.parametrize("path", ["/api/v1/queues", "/console/queues"])
def test_a_client_proves_nothing_by_a_certificate(
    console: tuple[PrivateQueueManager, Path], tmp_path: Path, issuer: str, path: str
) -> None:
    """None is asked for; one that is shown is nobody's, whoever has signed it."""
    running, certificate = console
    shown = write_tls_files(tmp_path, "client")
    if issuer != "itself":
        shown = certificate, certificate.with_suffix(".key")
    context = ssl.create_default_context(cafile=certificate)
    context.load_cert_chain(*shown)
    port = running.endpoint("console")[1]
    asking = http.client.HTTPSConnection("localhost", port, context=context, timeout=PATIENCE)
    asking.request("GET", path)
    answer = asking.getresponse()
    body = answer.read()
    asking.close()
    assert answer.status in (302, 303, 401), body


# Of servers.


@dataclass
class Issuer:
    """A key and the certificate in which it stands."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


NOW = datetime.now(UTC)
DAY = timedelta(days=1)
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


def issued(
    by: Issuer | None,
    name: str = "localhost",
    start: datetime = NOW - DAY,
    end: datetime = NOW + DAY,
    usage: x509.ObjectIdentifier | None = SERVER,
    authority: bool = False,
) -> Issuer:
    """A certificate for a name, signed by somebody or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    above = subject if by is None else by.certificate.subject
    signing = key if by is None else by.key
    builder = (
        x509.CertificateBuilder(above, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    if not authority:
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        builder = builder.add_extension(names, critical=False)
    if usage is not None and not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return Issuer(key, builder.sign(signing, hashes.SHA256()))


@cache
def authority() -> Issuer:
    return issued(None, "an authority", authority=True)


def through_a_server() -> list[Issuer]:
    """Signed by a certificate that is for a server, and no authority."""
    middle = issued(authority())
    return [issued(middle), middle]


SERVERS: dict[str, tuple[Callable[[], list[Issuer]], bool]] = {
    "good": (lambda: [issued(authority())], True),
    "without a purpose": (lambda: [issued(authority(), usage=None)], True),
    "over": (lambda: [issued(authority(), end=NOW - timedelta(hours=1))], False),
    "not yet begun": (lambda: [issued(authority(), start=NOW + timedelta(hours=1))], False),
    "of another host": (lambda: [issued(authority(), "localhost.example")], False),
    "for clients only": (lambda: [issued(authority(), usage=CLIENT)], False),
    "of itself": (lambda: [issued(None)], False),
    "of another authority": (
        lambda: [issued(issued(None, "an authority", authority=True))],
        False,
    ),
    "of a server": (through_a_server, False),
}


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("label", list(SERVERS))
def test_nothing_is_posted_to_a_server_with_a_certificate_that_proves_nothing(
    tmp_path: Path, label: str
) -> None:
    made, good = SERVERS[label]
    chain = made()
    (tmp_path / "authority.pem").write_bytes(pem(authority().certificate))
    (tmp_path / "server.pem").write_bytes(b"".join(pem(each.certificate) for each in chain))
    (tmp_path / "server.key").write_bytes(
        chain[0].key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    served = server_context(tmp_path / "server.pem", tmp_path / "server.key")
    trusted = client_context(tmp_path / "authority.pem")
    with serving_http(context=served) as running:
        client = running.do(lambda: HttpClient(SimulatedClock(), trusted, lambda _: ""))
        url = f"https://localhost:{running.secure_port}/"
        posting = client.post(url, "", (), b"body", seconds=PATIENCE)
        if good:
            assert running.run(posting).status == 200
        else:
            with pytest.raises(OSError, match="certificate"):
                running.run(posting)
        assert len(running.requests) == good
        running.run(client.stop())
