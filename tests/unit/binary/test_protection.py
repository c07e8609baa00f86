"""Signatures, encrypted bodies and their keys ([MS-MQQB] 2.4, 3.1.5.8.3, 3.1.7.1.4, .5)."""

from dataclasses import replace
from functools import lru_cache
from uuid import UUID

import pytest
from Cryptodome.Hash import MD2, MD4
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

from rpcqm.base.errors import DecodeError
from rpcqm.binary import blobs, ciphers
from rpcqm.binary.caches import AgingCache
from rpcqm.binary.signatures import sign, verified_level
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageAuthenticationLevel,
    PrivacyLevel,
)
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.signature import signed_properties
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage
from tests.support.certificates import certificate_of
from tests.support.clock import SimulatedClock

MINUTE = 60_000


@lru_cache
def rsa_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


def message(several: bool = False, algorithm: int = HashAlgorithm.SHA_512) -> MessageAttributes:
    names = ("DIRECT=OS:bob\\private$\\a", "DIRECT=OS:bob\\private$\\b")
    return MessageAttributes(
        destination_queue_format_name=FormatName.parse(names[0]),
        destination_multi_queue_format_name=tuple(map(FormatName.parse, names)) if several else (),
        identifier=MessageIdentifier(UUID(int=1), 7),
        sent_time=1_750_000_000,
        body=b"content",
        label="label",
        hash_algorithm=algorithm,
        sender_certificate=certificate_of(rsa_key()),
    )


def signed(
    level: MessageAuthenticationLevel,
    algorithm: int = HashAlgorithm.SHA_512,
    reverse: bool = False,
) -> bytes:
    unsigned = message(level is MessageAuthenticationLevel.SIG30, algorithm)
    signature = sign(UserMessage(build_user_message(unsigned)), rsa_key(), level, algorithm)
    signature = signature[::-1] if reverse else signature
    if level is MessageAuthenticationLevel.SIG30:
        return build_user_message(replace(unsigned, multiple_destination_signature=signature))
    return build_user_message(replace(unsigned, signature=signature))


@pytest.mark.conformance("MQQB-rule-3.1.7.1.4", "MQQB-rule-3.1.5.8.3")
@pytest.mark.parametrize("reverse", [False, True], ids=["little-endian", "big-endian"])
@pytest.mark.parametrize(
    "level",
    [
        MessageAuthenticationLevel.SIG10,
        MessageAuthenticationLevel.SIG20,
        MessageAuthenticationLevel.SIG30,
    ],
)
def test_each_kind_of_signature_is_told_apart(
    level: MessageAuthenticationLevel, reverse: bool
) -> None:
    assert verified_level(PacketMessage(signed(level, reverse=reverse))) is level


@pytest.mark.parametrize(
    "algorithm",
    [HashAlgorithm.MD5, HashAlgorithm.SHA1, HashAlgorithm.SHA_256, HashAlgorithm.SHA_512],
)
def test_each_hash_is_understood(algorithm: HashAlgorithm) -> None:
    packet = signed(MessageAuthenticationLevel.SIG20, algorithm)
    assert verified_level(PacketMessage(packet)) is MessageAuthenticationLevel.SIG20


@pytest.mark.parametrize(
    ("algorithm", "number", "digest"),
    [(HashAlgorithm.MD2, 2, MD2), (HashAlgorithm.MD4, 4, MD4)],
)
def test_old_hashes_are_understood_but_not_made(
    algorithm: HashAlgorithm, number: int, digest: object
) -> None:
    unsigned = message(algorithm=algorithm)
    packet = UserMessage(build_user_message(unsigned))
    with pytest.raises(DecodeError):
        sign(packet, rsa_key(), MessageAuthenticationLevel.SIG20, algorithm)
    data = signed_properties(packet, MessageAuthenticationLevel.SIG20)
    hashed = (MD2 if number == 2 else MD4).new(data).digest()
    oid = bytes.fromhex(f"06082a864886f70d020{number}0500")
    info = b"\x30\x20\x30\x0c" + oid + b"\x04\x10" + hashed
    signature = pkcs1_signature(info)
    complete = build_user_message(replace(unsigned, signature=signature))
    assert verified_level(PacketMessage(complete)) is MessageAuthenticationLevel.SIG20


def pkcs1_signature(digest_info: bytes) -> bytes:
    """RSA over a DigestInfo of our own making ([RFC8017] 9.2)."""
    numbers = rsa_key().private_numbers()
    size = rsa_key().key_size // 8
    padding = b"\xff" * (size - len(digest_info) - 3)
    block = b"\x00\x01" + padding + b"\x00" + digest_info
    value = pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n)
    return value.to_bytes(size, "big")


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
@pytest.mark.parametrize(
    "change",
    [
        {"body": b"contents"},
        {"label": "lab"},
        {"signature": b"x" * 256},
        {"sender_certificate": b""},
        {"sender_certificate": b"no certificate"},
        {"hash_algorithm": HashAlgorithm.SHA1},
        {"hash_algorithm": 0x1234},
    ],
    ids=str,
)
def test_a_signature_of_something_else_proves_nothing(change: dict[str, object]) -> None:
    unsigned = message()
    packet = UserMessage(build_user_message(unsigned))
    signature = sign(packet, rsa_key(), MessageAuthenticationLevel.SIG20)
    attributes = replace(unsigned, signature=signature)
    for attribute, value in change.items():
        setattr(attributes, attribute, value)
    assert verified_level(PacketMessage(build_user_message(attributes))) is None


def test_no_signature_is_no_wrong_one() -> None:
    packet = build_user_message(replace(message(), sender_certificate=b""))
    assert verified_level(PacketMessage(packet)) is MessageAuthenticationLevel.NONE


# Keys


@pytest.mark.conformance("MQQB-packet-PUBLICKEYBLOB", "MQQB-rule-3.1.7.1.5.2")
def test_a_public_key_survives_its_blob() -> None:
    key = rsa_key().public_key()
    blob = blobs.encode_public_key(key)
    assert blob[:12] == bytes.fromhex("0602000000a4000052534131")
    assert blobs.decode_public_key(blob).public_numbers() == key.public_numbers()
    keys = {blobs.BASE_PROVIDER: key, blobs.AES_PROVIDER: key}
    read = blobs.decode_public_keys(blobs.encode_public_keys(keys))
    assert {name: each.public_numbers() for name, each in read.items()} == {
        name: each.public_numbers() for name, each in keys.items()
    }


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5.2")
def test_one_bad_key_does_not_spoil_the_others() -> None:
    key = rsa_key().public_key()
    listed = blobs.encode_public_keys({blobs.BASE_PROVIDER: key, blobs.AES_PROVIDER: key})
    damaged = listed.replace(b"RSA1", b"RSA2", 1)
    assert set(blobs.decode_public_keys(damaged)) == {blobs.AES_PROVIDER}


@pytest.mark.conformance("MQQB-packet-PUBLICKEYBLOB")
def test_damaged_keys_are_refused() -> None:
    keys = blobs.encode_public_keys({blobs.AES_PROVIDER: rsa_key().public_key()})
    blob = blobs.encode_public_key(rsa_key().public_key())
    for damaged in (b"", blob[:-1], b"\7" + blob[1:], blob[:8] + b"RSA2" + blob[12:]):
        with pytest.raises(DecodeError):
            blobs.decode_public_key(damaged)
    for size in range(len(keys)):
        with pytest.raises(DecodeError):
            blobs.decode_public_keys(keys[:size])
    with pytest.raises(DecodeError):
        blobs.decode_public_keys(len(keys).to_bytes(4, "little") + b"\2\0\0\0" + keys[8:])


@pytest.mark.conformance("MQQB-packet-SIMPLEBLOB")
def test_a_symmetric_key_is_as_long_as_the_modulus_and_little_endian() -> None:
    blob = blobs.SimpleBlob(EncryptionAlgorithm.RC4, bytes(range(255)) + b"\xff")
    encoded = blob.encode()
    assert encoded[:12] == bytes.fromhex("010200000168000000a40000")
    assert encoded[12:] == blob.encrypted_key[::-1]
    assert blobs.SimpleBlob.decode(encoded) == blob
    for damaged in (encoded[:12], b"\2" + encoded[1:]):
        with pytest.raises(DecodeError):
            blobs.SimpleBlob.decode(damaged)


CIPHERS = [
    (PrivacyLevel.BASE, EncryptionAlgorithm.RC2, 5),
    (PrivacyLevel.BASE, EncryptionAlgorithm.RC4, 5),
    (PrivacyLevel.ENHANCED, EncryptionAlgorithm.RC2, 16),
    (PrivacyLevel.ENHANCED, EncryptionAlgorithm.RC4, 16),
    (PrivacyLevel.ADVANCED, EncryptionAlgorithm.AES128, 16),
    (PrivacyLevel.ADVANCED, EncryptionAlgorithm.AES192, 24),
    (PrivacyLevel.ADVANCED, EncryptionAlgorithm.AES256, 32),
]


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5", "MQQB-rule-3.1.5.8.3")
@pytest.mark.parametrize(("level", "algorithm", "size"), CIPHERS)
@pytest.mark.parametrize("body", [b"", b"x", b"sixteen bytes ok", b"long" * 1000], ids=len)
def test_what_is_encrypted_can_be_decrypted(
    level: PrivacyLevel, algorithm: EncryptionAlgorithm, size: int, body: bytes
) -> None:
    key, blob = ciphers.new_key(rsa_key().public_key(), level, algorithm)
    assert len(key) == size
    assert ciphers.received_key(rsa_key(), blob, level, algorithm) == key
    assert ciphers.decrypt(ciphers.encrypt(body, key, algorithm), key, algorithm) == body


def test_ciphers_are_those_of_the_standards() -> None:
    """AES of [FIPS197] C.1, RC2 of [RFC2268] 5, RC4 of [RFC6229] 2; CBC begins with zeros."""
    aes = ciphers.encrypt(
        bytes.fromhex("00112233445566778899aabbccddeeff"),
        bytes(range(16)),
        EncryptionAlgorithm.AES128,
    )
    assert aes[:16].hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    rc2 = ciphers.encrypt(
        bytes(8), bytes.fromhex("88bca90e90875a7f0f79c384627bafb2"), EncryptionAlgorithm.RC2
    )
    assert rc2[:8].hex() == "2269552ab0f85ca6"
    rc4 = ciphers.encrypt(bytes(16), bytes.fromhex("0102030405"), EncryptionAlgorithm.RC4)
    assert rc4.hex() == "b2396305f03dc027ccc3524a0a1118a8"


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
@pytest.mark.parametrize(
    "body", [b"", b"x" * 15, b"x" * 16], ids=["empty", "no blocks", "no padding"]
)
def test_what_does_not_decrypt_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        ciphers.decrypt(body, bytes(32), EncryptionAlgorithm.AES256)


@pytest.mark.parametrize(
    ("level", "algorithm"),
    [
        (PrivacyLevel.ADVANCED, EncryptionAlgorithm.RC4),
        (PrivacyLevel.BASE, EncryptionAlgorithm.AES256),
        (2, EncryptionAlgorithm.RC4),
        (PrivacyLevel.BASE, EncryptionAlgorithm.DES),
    ],
)
def test_a_level_has_its_ciphers_and_no_others(level: int, algorithm: int) -> None:
    with pytest.raises(DecodeError):
        ciphers.key_length(level, algorithm)


# Caches


@pytest.mark.conformance(
    "MQQB-timer-receive_symmetric_key_cache_cleanup",
    "MQQB-timer-send_symmetric_key_cache_cleanup",
    "MQQB-timer-user_cert_cache_cleanup",
)
def test_cached_keys_grow_old() -> None:
    clock = SimulatedClock()
    cache: AgingCache[str, int] = AgingCache(clock, clock.timers, 10, 10 * MINUTE)
    cache.add("one", 1)
    clock.advance(5 * MINUTE)
    cache.add("two", 2)
    clock.advance(5 * MINUTE + 1)
    assert cache.get("one") == 1
    clock.advance(MINUTE)
    assert cache.get("one") is None
    assert cache.get("two") == 2
    clock.advance(6 * MINUTE)
    assert cache.get("two") is None
    assert not len(clock.timers)


@pytest.mark.conformance("MQQB-element-CachedSymmetricKey", "MQQB-element-CachedUserCert")
def test_a_full_cache_loses_its_older_half() -> None:
    clock = SimulatedClock()
    cache: AgingCache[int, int] = AgingCache(clock, clock.timers, 10, MINUTE)
    for number in range(11):
        cache.add(number, number)
    assert len(cache) == 6
    assert cache.get(4) is None
    assert cache.get(5) == 5
    cache.stop()
    assert not len(clock.timers)
