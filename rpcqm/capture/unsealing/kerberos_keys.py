"""The key of a captured Kerberos handshake, from the keys of the service (RFC 4120).

The ticket proves which key is the right one: only that decrypts it, whatever the account was
called on the command line. The names in a ticket are those of the service; a password makes keys
with the salts that Active Directory and MIT's KDC use.
"""

import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing.accounts import UnsealingAccount

AES128, AES256, RC4 = 17, 18, 23
"""The encryption types that are understood (RFC 3961, section 8, and RFC 4757)."""

REQUEST, REPLY = 14, 15
"""What an AP-REQ and an AP-REP are in their msg-type."""

_TICKET_USAGE, _AUTHENTICATOR_USAGE, _REPLY_USAGE = 2, 11, 12
_ITERATIONS = 4096
"""What RFC 3962 takes when a KDC says nothing else."""
_LENGTH = rb"(?:[\x00-\x7f]|\x81.|\x82..|\x83...)"
_MESSAGE = re.compile(
    rb"[\x6e\x6f]"
    + _LENGTH
    + rb"\x30"
    + _LENGTH
    + rb"\xa0\x03\x02\x01\x05\xa1\x03\x02\x01([\x0e\x0f])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A key of a session with its encryption type."""

    encryption_type: int
    octets: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """What an AP-REQ says: who the client is, and the keys it gave."""

    client: str
    ticket_key: SessionKey
    subkey: SessionKey | None


def find_message(token: bytes) -> tuple[int, bytes]:
    """The Kerberos message in a token, framed or in SPNEGO or bare, and its type; (0, b"") if none.

    Its end is not looked for: it names its own length.
    """
    found = _MESSAGE.search(token)
    return (found[1][0], token[found.start() :]) if found else (0, b"")


def open_request(message: bytes, accounts: Sequence[UnsealingAccount]) -> Opened:
    """Decrypt an AP-REQ; raises DecodeError with the reason if it cannot be decrypted."""
    from impacket.krb5 import asn1

    request = _decoded(message, asn1.AP_REQ())
    ticket = request["ticket"]
    part = _decoded(_opened_ticket(ticket, accounts), asn1.EncTicketPart())
    key = _key(part["key"])
    realm, name = str(part["crealm"]), _name(part["cname"])
    proof = _decrypted(key, _AUTHENTICATOR_USAGE, request["authenticator"])
    if proof is None:
        raise DecodeError("the authenticator is not encrypted by the ticket's key")
    subkey = _decoded(proof, asn1.Authenticator())["subkey"]
    return Opened(f"{realm}\\{name}", key, _key(subkey) if subkey.hasValue() else None)


def subkey_of_reply(message: bytes, ticket_key: SessionKey) -> SessionKey | None:
    """The subkey that a server chose in its AP-REP, if it did; raises DecodeError."""
    from impacket.krb5 import asn1

    part = _decrypted(ticket_key, _REPLY_USAGE, _decoded(message, asn1.AP_REP())["enc-part"])
    if part is None:
        raise DecodeError("the server's answer is not encrypted by the ticket's key")
    subkey = _decoded(part, asn1.EncAPRepPart())["subkey"]
    return _key(subkey) if subkey.hasValue() else None


def _opened_ticket(ticket: Any, accounts: Sequence[UnsealingAccount]) -> bytes:
    sealed, realm, names = ticket["enc-part"], str(ticket["realm"]), ticket["sname"]
    service = "".join(str(each) for each in names["name-string"])
    kind = int(sealed["etype"])
    for octets in _candidates(accounts, kind, realm, service):
        clear = _decrypted(SessionKey(kind, octets), _TICKET_USAGE, sealed)
        if clear is not None:
            return clear
    told = f"{_name(names)}@{realm} (encryption type {kind})"
    given = "no key that was given is that of" if accounts else "no account was given for"
    raise DecodeError(f"{given} {told}")


def _candidates(
    accounts: Sequence[UnsealingAccount], kind: int, realm: str, service: str
) -> Iterator[bytes]:
    """Keys that may be the service's, those that cost nothing first."""
    for account in accounts:
        yield from (key.octets for key in account.keys if key.encryption_type == kind)
        if kind == RC4:
            yield from account.hashes
    if kind in (AES128, AES256):
        for account in accounts:
            if account.password:
                for salt in _salts(account, realm, service):
                    yield _password_key(account.password, salt, kind)


def _salts(account: UnsealingAccount, realm: str, service: str) -> Iterator[str]:
    """The principal's own, the account's, and a computer's ([MS-KILE] 3.1.1.2)."""
    yield realm + service
    yield realm + account.name
    if account.name.endswith("$"):
        yield f"{realm}host{account.name[:-1].lower()}.{realm.lower()}"


@functools.lru_cache(maxsize=256)
def _password_key(password: str, salt: str, kind: int) -> bytes:
    """RFC 3962, section 4."""
    profile, size = _profile(kind), 16 if kind == AES128 else 32
    seed = hashlib.pbkdf2_hmac("sha1", password.encode(), salt.encode(), _ITERATIONS, size)
    derived: bytes = profile.derive(profile.random_to_key(seed), b"kerberos").contents
    return derived


def _profile(kind: int) -> Any:
    from impacket.krb5 import crypto

    return crypto._get_enctype_profile(kind)


def _decrypted(key: SessionKey, usage: int, sealed: Any) -> bytes | None:
    """The contents of an EncryptedData; None if it was encrypted with another key."""
    from impacket.krb5 import crypto

    if key.encryption_type not in (AES128, AES256, RC4):
        raise DecodeError(f"encryption type {key.encryption_type} cannot be unsealed")
    try:
        whole = crypto.Key(key.encryption_type, key.octets)
        clear: bytes = crypto.decrypt(whole, usage, sealed["cipher"].asOctets())
    except ValueError:
        # impacket tells a wrong checksum so: the next key is tried.
        return None
    return clear


def _decoded(octets: bytes, kind: object) -> Any:
    from pyasn1.codec.der import decoder
    from pyasn1.error import PyAsn1Error

    try:
        return decoder.decode(octets, asn1Spec=kind)[0]
    except (PyAsn1Error, ValueError, IndexError) as error:
        raise DecodeError(f"{type(kind).__name__} of Kerberos cannot be read") from error


def _key(value: Any) -> SessionKey:
    return SessionKey(int(value["keytype"]), value["keyvalue"].asOctets())


def _name(value: Any) -> str:
    return "/".join(str(each) for each in value["name-string"])
