"""NTLM message protection against [MS-NLMP] section 4.2, pyspnego and impacket."""

from itertools import product
from typing import Any

import pytest
from impacket import ntlm
from spnego._ntlm_raw.crypto import rc4init, sealkey, signkey
from spnego._ntlm_raw.security import seal, sign

from rpcqm.base.errors import DecodeError
from rpcqm.rpc.security.ntlm_protection import (
    NegotiateFlags,
    NtlmProtection,
    ProtectionDirection,
    sealing_key,
    signing_key,
)

SIGN = 0x00000010
SEAL = 0x00000020
LM_KEY = 0x00000080
ESS = 0x00080000
KEY_128 = 0x20000000
KEY_EXCH = 0x40000000
KEY_56 = 0x80000000

PLAINTEXT = "Plaintext".encode("utf-16-le")
SESSION_KEY = bytes([0x55] * 16)
"""RandomSessionKey of [MS-NLMP] 4.2.1."""

FLAG_SETS = [
    SIGN | SEAL | ESS | keys | exchange
    for keys, exchange in product((KEY_128 | KEY_56, KEY_128, KEY_56, 0), (KEY_EXCH, 0))
] + [SIGN | SEAL | keys for keys in (0, KEY_56, LM_KEY, LM_KEY | KEY_56, KEY_EXCH | KEY_128)]

flag_sets = pytest.mark.parametrize("flags", FLAG_SETS, ids=hex)


def pair(flags: int) -> tuple[NtlmProtection, NtlmProtection]:
    return (
        NtlmProtection(flags, SESSION_KEY, ProtectionDirection.CLIENT),
        NtlmProtection(flags, SESSION_KEY, ProtectionDirection.SERVER),
    )


def test_the_sample_of_ntlm_v1_without_extended_session_security() -> None:
    """[MS-NLMP] 4.2.2.4."""
    key = bytes.fromhex("55" * 16)
    client = NtlmProtection(SIGN | SEAL | KEY_EXCH | KEY_128, key, ProtectionDirection.CLIENT)
    sealed, signature = client.seal(b"", PLAINTEXT, b"")
    assert sealed.hex() == "56fe04d861f9319af0d7238a2e3b4d457fb8"
    # The first four octets after the version are random in the sample.
    assert signature[8:].hex() == "09dcd1df2e459d36"


def test_the_sample_of_ntlm_v1_with_extended_session_security() -> None:
    """[MS-NLMP] 4.2.3.4, where keys have 56 bits and are not exchanged."""
    key = bytes.fromhex("eb93429a8bd952f8b89c55b87f475edc")
    flags = SIGN | SEAL | ESS | KEY_56
    client = NtlmProtection(flags, key, ProtectionDirection.CLIENT)
    assert (
        sealing_key(flags, key, ProtectionDirection.CLIENT).hex()
        == "04dd7f014d8504d265a25cc86a3a7c06"
    )
    assert (
        signing_key(flags, key, ProtectionDirection.CLIENT).hex()
        == "60e799be5c72fc92922ae8ebe961fb8d"
    )
    sealed, signature = client.seal(b"", PLAINTEXT, b"")
    assert sealed.hex() == "a02372f6530273f3aa1eb90190ce5200c99d"
    assert signature.hex() == "01000000ff2aeb52f681793a00000000"


def test_the_sample_of_ntlm_v2() -> None:
    """[MS-NLMP] 4.2.4.4."""
    flags = SIGN | SEAL | ESS | KEY_128 | KEY_56 | KEY_EXCH
    client = NtlmProtection(flags, SESSION_KEY, ProtectionDirection.CLIENT)
    sealed, signature = client.seal(b"", PLAINTEXT, b"")
    assert sealed.hex() == "54e50165bf1936dc996020c1811b0f06fb5f"
    assert signature.hex() == "010000007fb38ec5c55d497600000000"


@flag_sets
def test_several_messages_agree_with_pyspnego(flags: int) -> None:
    ours = NtlmProtection(flags, SESSION_KEY, ProtectionDirection.CLIENT)
    handle = rc4init(sealkey(flags, SESSION_KEY, "initiate"))
    key = signkey(flags, SESSION_KEY, "initiate")
    head, tail = (b"header", b"trailer") if flags & ESS else (b"", b"")
    for sequence in range(4):
        body = bytes([sequence]) * (100 * sequence + 7)
        whole = head + body + tail
        if sequence % 2:
            theirs: Any = seal(flags, handle, key, sequence, body, to_sign=whole)
            assert ours.seal(head, body, tail) == theirs
        else:
            assert ours.sign(head, body, tail) == sign(flags, handle, key, sequence, whole)


@pytest.mark.parametrize("flags", [each for each in FLAG_SETS if each & ESS], ids=hex)
def test_several_messages_agree_with_impacket(flags: int) -> None:
    ours = NtlmProtection(flags, SESSION_KEY, ProtectionDirection.SERVER)
    key = ntlm.SIGNKEY(flags, SESSION_KEY, "Server")
    sealing = ntlm.SEALKEY(flags, SESSION_KEY, "Server")
    cipher = ntlm.ARC4.new(sealing).encrypt
    for sequence in range(3):
        body = bytes([sequence]) * (64 * sequence + 5)
        whole = b"head" + body + b"tail"
        sealed, signature = ntlm.SEAL(flags, key, sealing, whole, body, sequence, cipher)
        assert ours.seal(b"head", body, b"tail") == (sealed, signature.getData())


@flag_sets
def test_what_one_party_sends_the_other_can_read(flags: int) -> None:
    client, server = pair(flags)
    for sender, receiver in ((client, server), (server, client), (client, server)):
        sealed, signature = sender.seal(b"h", b"a sealed body", b"t")
        assert receiver.unseal(b"h", sealed, b"t", signature) == b"a sealed body"
        receiver.verify(b"h", b"signed", b"t", sender.sign(b"h", b"signed", b"t"))


@flag_sets
def test_a_changed_body_is_refused(flags: int) -> None:
    client, server = pair(flags)
    sealed, signature = client.seal(b"h", b"body", b"t")
    with pytest.raises(DecodeError):
        server.unseal(b"h", b"\xff" + sealed[1:], b"t", signature)


@pytest.mark.parametrize(("head", "tail"), [(b"H", b"t"), (b"h", b"T")])
def test_a_changed_header_or_trailer_is_refused(head: bytes, tail: bytes) -> None:
    client, server = pair(SIGN | SEAL | ESS | KEY_128 | KEY_EXCH)
    signature = client.sign(b"h", b"body", b"t")
    with pytest.raises(DecodeError):
        server.verify(head, b"body", tail, signature)


@flag_sets
def test_a_replayed_message_is_refused(flags: int) -> None:
    client, server = pair(flags)
    signature = client.sign(b"h", b"body", b"t")
    server.verify(b"h", b"body", b"t", signature)
    with pytest.raises(DecodeError):
        server.verify(b"h", b"body", b"t", signature)


@pytest.mark.parametrize("length", [0, 1, 15, 17])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    client, server = pair(SIGN | ESS | KEY_128)
    signature = client.sign(b"h", b"body", b"t")
    with pytest.raises(DecodeError):
        server.verify(b"h", b"body", b"t", (signature * 2)[:length])


def test_the_flags_are_those_of_the_specification() -> None:
    assert NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY == ESS
    assert NegotiateFlags.NTLMSSP_NEGOTIATE_KEY_EXCH == KEY_EXCH


def test_random_pad_means_nothing() -> None:
    """[MS-NLMP] 3.4.4.1; Samba leaves what it has encrypted there."""
    key, flags = bytes(16), NegotiateFlags.NTLMSSP_NEGOTIATE_SIGN
    signature = bytearray(
        NtlmProtection(flags, key, ProtectionDirection.CLIENT).sign(b"", b"body", b"")
    )
    signature[4:8] = b"1234"
    NtlmProtection(flags, key, ProtectionDirection.SERVER).verify(
        b"", b"body", b"", bytes(signature)
    )
    signature[8] ^= 1
    with pytest.raises(DecodeError):
        NtlmProtection(flags, key, ProtectionDirection.SERVER).verify(
            b"", b"body", b"", bytes(signature)
        )
