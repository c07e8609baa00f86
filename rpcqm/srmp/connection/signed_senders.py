"""Who has signed what came by HTTP ([MC-MQSRM] 3.1.5.1.6.1).

A signature proves its key, and the directory whose that key is: of everybody else a good signature
proves nothing (G165).
"""

from typing import NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity, authenticated
from rpcqm.codec.packet.enums import MessageAuthenticationLevel, SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.security.identifier import Sid, is_account
from rpcqm.qm.directory import Directory
from rpcqm.srmp.elements import SrmpRequest
from rpcqm.srmp.signature import SignatureResult, check


class Signed(NamedTuple):
    """What a signature proves; `sid` and `certificate` are empty where that is nothing."""

    is_wrong: bool = False
    identity: Identity = ANONYMOUS
    sid: bytes = b""
    certificate: bytes = b""


NOBODY = Signed()


def signed(request: SrmpRequest, directory: Directory) -> Signed:
    """What the signature of a request proves of its sender."""
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
    return Signed(False, authenticated(str(sid), str(sid)), sid.encode(), signature.certificate)


def _owner(certificate: bytes, directory: Directory) -> Sid | None:
    """The one account whose certificate the directory says that it is (G190).

    None for nobody's, for that of several users, and of a user whose SID is no account's.
    """
    owners = directory.certificate_owners(certificate)
    if len(owners) != 1:
        return None
    try:
        sid = Sid.decode(owners.pop())
    except DecodeError:  # a user whose SID nobody has told yet
        return None
    return sid if is_account(sid) else None


def packet_of(attributes: MessageAttributes, sender: Signed, body_offset: int = -1) -> bytes:
    """The packet of a message, which tells readers who has signed it. Raises MQError."""
    if not sender.sid:
        return build_user_message(attributes, body_offset)
    attributes.sender_identifier = sender.sid
    attributes.sender_identifier_type = SenderIdentifierType.SID
    attributes.sender_certificate = sender.certificate
    packet = bytearray(build_user_message(attributes, body_offset))
    set_authentication_level(packet, MessageAuthenticationLevel.XMLSIG)
    return bytes(packet)
