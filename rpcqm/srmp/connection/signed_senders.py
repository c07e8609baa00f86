"""The signers of messages that came by HTTP ([MC-MQSRM] 3.1.5.1.6.1).

A signature proves possession of a key, and the directory names the key's owner: a good signature
without an entry there proves nothing (G165).
"""

from collections.abc import Callable
from typing import NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.codec.packet.enums import MessageAuthenticationLevel, SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.security.identifier import Sid, is_account
from rpcqm.qm.directory import Directory
from rpcqm.qm.sender_rights import identity_of
from rpcqm.srmp.elements import SrmpRequest
from rpcqm.srmp.signature import SignatureResult, check


class Signed(NamedTuple):
    """The proof of a signature; `sid` and `certificate` are empty where it proves no account."""

    is_wrong: bool = False
    identity: Identity = ANONYMOUS
    sid: bytes = b""
    certificate: bytes = b""


NOBODY = Signed()


def signed(
    request: SrmpRequest,
    directory: Directory,
    signer_of: Callable[[str], Identity] = identity_of,
) -> Signed:
    """The proof that the signature of a request gives of its sender."""
    signature = request.envelope.signature
    if signature is None:
        return NOBODY
    result = check(request.envelope, request.body, request.extension)
    if result is SignatureResult.WRONG:
        return Signed(is_wrong=True)
    if result is not SignatureResult.VERIFIED or signature.certificate is None:
        return NOBODY
    sid = _owner(signature.certificate, directory)
    if sid is None:
        return NOBODY
    signer = signer_of(str(sid))
    if signer.is_anonymous:
        return NOBODY
    return Signed(False, signer, sid.encode(), signature.certificate)


def _owner(certificate: bytes, directory: Directory) -> Sid | None:
    """The one account to which the directory assigns a certificate (G190).

    None for a certificate without a user, of several users, and of a user whose SID is no
    account's.
    """
    owners = directory.certificate_owners(certificate)
    if len(owners) != 1:
        return None
    try:
        sid = Sid.decode(owners.pop())
    except DecodeError:  # a user without a SID in the directory
        return None
    return sid if is_account(sid) else None


def packet_of(attributes: MessageAttributes, sender: Signed, body_offset: int = -1) -> bytes:
    """The packet of a message, which names its signer for readers. Raises MQError."""
    if not sender.sid:
        return build_user_message(attributes, body_offset)
    attributes.sender_identifier = sender.sid
    attributes.sender_identifier_type = SenderIdentifierType.SID
    attributes.sender_certificate = sender.certificate
    packet = bytearray(build_user_message(attributes, body_offset))
    set_authentication_level(packet, MessageAuthenticationLevel.XMLSIG)
    return bytes(packet)
