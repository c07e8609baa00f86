"""Who has signed what came by HTTP ([MC-MQSRM] 3.1.5.1.6.1).

A signature proves its key, and the directory whose that key is: of everybody else a good signature
proves nothing (G165).
"""

import hashlib
from typing import NamedTuple

from rpcqm.adm.directory_object import User
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity, authenticated
from rpcqm.codec.packet.enums import MessageAuthenticationLevel, SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.security.identifier import Sid
from rpcqm.qm.directory import Directory
from rpcqm.srmp.elements import SrmpRequest
from rpcqm.srmp.signature import SignatureResult, check


class Signed(NamedTuple):
    """What a signature proves; `sid` and `certificate` are empty where that is nothing."""

    is_wrong: bool = False
    identity: Identity = ANONYMOUS
    sid: bytes = b""
    certificate: bytes = b""


def signed(request: SrmpRequest, directory: Directory) -> Signed:
    """What the signature of a request proves of its sender."""
    signature = request.envelope.signature
    if signature is None:
        return Signed()
    result = check(request.envelope, request.body, request.extension)
    if result is SignatureResult.WRONG:
        return Signed(is_wrong=True)
    if result is not SignatureResult.VERIFIED or signature.certificate is None:
        return Signed()
    sid = _owner(signature.certificate, directory)
    try:
        text = str(Sid.decode(sid))
    except DecodeError:
        return Signed()
    return Signed(False, authenticated(text, text), sid, signature.certificate)


def _owner(certificate: bytes, directory: Directory) -> bytes:
    """The SID of the user whose certificate the directory says that it is, b"" for nobody's."""
    digest = hashlib.md5(certificate, usedforsecurity=False).digest()
    attributes = ("security_identifier", "certificate_digest_list", "certificates")
    status, query = directory.read_directory_begin(User, attributes=attributes)
    if status is not DirectoryOperationResult.SUCCESS:
        return b""
    try:
        while True:
            status, user = directory.read_directory_next(query)
            if not isinstance(user, User):
                return b""
            if digest in user.certificate_digest_list and certificate in user.certificates:
                return user.security_identifier
    finally:
        directory.read_directory_end(query)


def packet_of(attributes: MessageAttributes, sender: Signed) -> bytes:
    """The packet of a message, which tells readers who has signed it. Raises MQError."""
    if not sender.sid:
        return build_user_message(attributes)
    attributes.sender_identifier = sender.sid
    attributes.sender_identifier_type = SenderIdentifierType.SID
    attributes.sender_certificate = sender.certificate
    packet = bytearray(build_user_message(attributes))
    set_authentication_level(packet, MessageAuthenticationLevel.XMLSIG)
    return bytes(packet)
