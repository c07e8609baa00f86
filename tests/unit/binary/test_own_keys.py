"""The keys of a queue manager, and what `rpcqm config key` tells of them."""

import base64
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from rpcqm.binary.blobs import decode_public_key, decode_public_keys, encode_public_key
from rpcqm.binary.ciphers import PROVIDERS
from rpcqm.binary.connection.listener import BinaryListener, read_files
from rpcqm.binary.own_keys import create_key, load_certificate, load_key, published
from rpcqm.binary.signatures import verified_level
from rpcqm.cli.main import main
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.config.schema import BinarySection
from tests.support.certificates import certificate_of
from tests.support.queue_manager import RunningQueueManager

SIGNED = MessageAttributes(
    destination_queue_format_name=FormatName.parse(r"DIRECT=OS:there\private$\orders"),
    identifier=MessageIdentifier(UUID(int=1), 1),
)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    create_key(path)
    return path


def test_a_new_key_is_for_its_owner_only_and_replaces_nothing(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    with pytest.raises(FileExistsError):
        create_key(key)
    assert key.read_bytes() == before
    assert load_key(str(key)).key_size == 2048


def test_a_certificate_of_an_unknown_version_is_none(key: Path, tmp_path: Path) -> None:
    """The library does not count that among its value errors."""
    octets = certificate_of(load_key(str(key)))
    unknown = octets.replace(bytes.fromhex("a003020102"), bytes.fromhex("a00302017b"), 1)
    assert unknown != octets
    text = base64.encodebytes(unknown).decode()
    file = tmp_path / "certificate.pem"
    file.write_text(f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n")
    with pytest.raises(ValueError, match="no certificate"):
        load_certificate(str(file))
    message = replace(
        SIGNED, sender_certificate=unknown, signature=bytes(256), sender_identifier=b"\1"
    )
    assert verified_level(PacketMessage(build_user_message(message))) is None


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5.2")
def test_a_key_is_published_for_every_provider(key: Path) -> None:
    expected = load_key(str(key)).public_key().public_numbers()
    found = decode_public_keys(published(load_key(str(key))))
    assert set(found) == set(PROVIDERS.values())
    assert all(public.public_numbers() == expected for public in found.values())


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no key")
    path.chmod(0o600)
    with pytest.raises(ValueError, match="no RSA key"):
        load_key(str(path))
    with pytest.raises(ValueError, match="no certificate"):
        load_certificate(str(path))


def test_the_command_prints_the_line_of_the_directory(
    key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "key", str(key)]) == 0
    name, _, value = capsys.readouterr().out.strip().partition(" = ")
    assert name == "encryption_key"
    assert base64.b64decode(value.strip('"')) == published(load_key(str(key)))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["key.pem", "--create"], "key.pem is there already; leave out --create."),
        (["missing"], "Cannot use missing: No such file or directory."),
        (["text"], "text holds no RSA key in PEM form that needs no password."),
    ],
)
def test_the_command_refuses_in_one_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("key.pem", "text"):
        Path(name).write_text("no key")
        Path(name).chmod(0o600)
    assert main(["config", "key", *words]) == 1
    assert capsys.readouterr().err == f"rpcqm: {sentence}\n"


@pytest.mark.conformance("MQDMPR-element-QueueManager")
def test_the_queue_manager_knows_its_own_public_keys(key: Path, tmp_path: Path) -> None:
    """After a reload the new ones."""
    qm = RunningQueueManager(tmp_path / "data")
    other = tmp_path / "other.pem"
    create_key(other)
    listener = BinaryListener(qm.engine, qm.clock, BinarySection(encryption_key=str(key)))
    own = qm.engine.queue_manager
    assert own.public_encryption_key_list == published(load_key(str(key)))
    assert own.public_signing_key_list == b""
    changed = BinarySection(encryption_key=str(other), signing_key=str(key))
    listener.adjust(changed, read_files(changed))
    assert own.public_encryption_key_list == published(load_key(str(other)))
    assert own.public_signing_key_list == published(load_key(str(key)))
    qm.stop()


@pytest.mark.conformance("MQQB-packet-PUBLICKEYBLOB")
def test_a_public_key_is_written_octet_by_octet_as_cryptoapi_does() -> None:
    """[MS-MQQB] 2.4.1: type 6, version 2, CALG_RSA_KEYX, RSA1, bits, exponent, modulus."""
    modulus = (1 << 1023) + 0x0123456789ABCDEF
    blob = encode_public_key(RSAPublicNumbers(65537, modulus).public_key())
    expected = "06 02 00 00 00 a4 00 00 52 53 41 31 00 04 00 00 01 00 01 00 ef cd ab 89 67 45 23 01"
    assert blob == bytes.fromhex(expected) + bytes(119) + b"\x80"
    assert decode_public_key(blob).public_numbers() == RSAPublicNumbers(65537, modulus)
