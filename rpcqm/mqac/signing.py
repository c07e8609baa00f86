"""Signatures that Send makes for its caller ([MC-MQAC] 3.17.4.1.48, 2.2.2.16)."""

from typing import Self

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.enums import MessageAuthenticationLevel
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.patch import set_authentication_level
from rpcqm.codec.types.mqacvalues import MQMSGAUTHLEVEL
from rpcqm.qm.protection import Protection

_AUTHENTICATION_LEVELS = {
    int(MQMSGAUTHLEVEL.MQMSG_AUTH_LEVEL_ALWAYS): MessageAuthenticationLevel.SIG30,
    int(MQMSGAUTHLEVEL.MQMSG_AUTH_LEVEL_SIG10): MessageAuthenticationLevel.SIG10,
    int(MQMSGAUTHLEVEL.MQMSG_AUTH_LEVEL_SIG20): MessageAuthenticationLevel.SIG20,
    int(MQMSGAUTHLEVEL.MQMSG_AUTH_LEVEL_SIG30): MessageAuthenticationLevel.SIG30,
}
"""The signature levels for MQMSGAUTHLEVEL ([MC-MQAC] 2.2.2.16)."""


class Signer:
    """Signs a message as its sender asks for, unless a connector has.

    `xml_signature` is that of messages for HTTP, whatever level is asked for (G297). A message sent
    by RPC has none (G191).
    """

    def __init__(self, protection: Protection, level: MessageAuthenticationLevel) -> None:
        self._protection = protection
        self._level = level
        self.xml_signature = b""

    @classmethod
    def of(cls, protection: Protection, requested: int) -> Self | None:
        """The signer for a RequestedAuthenticationLevel; None if no signature is wanted."""
        level = _AUTHENTICATION_LEVELS.get(requested)
        return None if level is None else cls(protection, level)

    def __call__(self, message: MessageAttributes) -> None:
        """Sign in place; raises MQError."""
        if message.signature:
            return
        if message.symmetric_key:
            raise MQError(HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX, "an encrypted body (G298)")
        single, several = (
            message.destination_queue_format_name,
            message.destination_multi_queue_format_name,
        )
        names = several or (() if single is None else (single,))
        by_http = [name.is_http for name in names]
        if any(by_http):
            self.xml_signature = self._protection.xml_signature(message)
        if not all(by_http):
            # A signature of level 1.0 takes the place of that for HTTP.
            level = MessageAuthenticationLevel.SIG30 if any(by_http) else self._level
            self._protection.sign_sent(message, level)
        else:
            message.signature = self.xml_signature
            message.authentication_level = MessageAuthenticationLevel.XMLSIG


def mark_signed(
    protection: Protection,
    descriptor: OpenQueueDescriptor,
    composed: Message,
    signer: Signer | None,
) -> None:
    """Record in a message how it is signed, for local readers and for HTTP.

    Messages signed for a local queue are checked by this queue manager itself.
    """
    if signer is not None and signer.xml_signature:
        composed.xml_signature = signer.xml_signature
    if descriptor.format_name.is_http and not descriptor.multiple:
        if composed.xml_signature:
            packet = bytearray(composed.packet)
            set_authentication_level(packet, MessageAuthenticationLevel.XMLSIG)
            composed.packet = bytes(packet)
        return
    leaves = isinstance(descriptor.queue_reference, OutgoingQueue)  # some of several may not
    if protection.verify is not None and not leaves:
        protection.verify(composed)
