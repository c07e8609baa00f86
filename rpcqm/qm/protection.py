"""Checks that messages are signed and encrypted as their queues demand."""

from collections.abc import Callable

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.enums import MessageAuthenticationLevel, MessageClass
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

_SENDER_UNPROVED = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
    }
)


class RejectedError(Exception):
    """A message is not taken; `reason` is the class of its negative acknowledgement.

    Of one whose `sender_is_unproved` a forger must not make a duplicate of somebody's next message
    (G106).
    """

    def __init__(self, reason: MessageClass) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.sender_is_unproved = reason in _SENDER_UNPROVED


class Protection:
    """Checks of messages against the protection that their queue demands."""

    def __init__(self) -> None:
        self.verify: Callable[[Message], bool] | None = None
        """Checks the signature of a message; a protocol with keys sets it."""
        self.sign: Callable[[MessageAttributes, MessageAuthenticationLevel], None] | None = None
        """Signs a message of an application in place, or raises MQError; a protocol sets it."""
        self.sign_octets: Callable[[MessageAttributes, bytes], bytes] | None = None
        """Signs octets for the sender of a message, or raises MQError; a protocol sets it."""
        self.signed_info: Callable[[MessageAttributes], bytes] | None = None
        """The octets that an XML signature of a message covers; the protocol that sends it sets it.
        """
        self.certificate_of: Callable[[bytes], bytes] | None = None
        """The certificate of a user, by his SID's octets, for signing messages."""
        self.own_certificate = b""
        """The certificate that messages can be signed with; a protocol that has one sets it."""

    def internal_certificate(self, security_id: bytes) -> bytes:
        """The InternalCertificate of a user ([MS-MQDMPR] 3.1.1.19), b"" if there is none (G285)."""
        return b"" if self.certificate_of is None else self.certificate_of(security_id)

    def sign_sent(self, message: MessageAttributes, level: MessageAuthenticationLevel) -> None:
        """Sign a message in place, as its sender wants it.

        Raises MQ_ERROR_NO_INTERNAL_USER_CERT without a certificate,
        MQ_ERROR_CANNOT_SIGN_DATA_EX without its key, MQ_ERROR_CANNOT_HASH_DATA_EX for a hash
        that is not made any more.
        """
        if not message.sender_certificate:
            raise MQError(HResult.MQ_ERROR_NO_INTERNAL_USER_CERT)
        if self.sign is None:
            raise MQError(HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX, "no keys")
        self.sign(message, level)

    def xml_signature(self, message: MessageAttributes) -> bytes:
        """The value of a signature for a message that travels by HTTP (G297).

        Raises MQError as `sign_sent`, MQ_ERROR_CANNOT_SIGN_DATA_EX also for a certificate that the
        directory does not know as the sender's, MQ_ERROR_UNSUPPORTED_OPERATION without HTTP.
        """
        if not message.sender_certificate:
            raise MQError(HResult.MQ_ERROR_NO_INTERNAL_USER_CERT)
        if self.sign_octets is None:
            raise MQError(HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX, "no keys")
        if self.signed_info is None:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, "no messages by HTTP")
        return self.sign_octets(message, self.signed_info(message))

    def check_arrived(self, queue: Queue, authenticated: bool, encrypted: bool) -> None:
        """Check a queue's demands on signatures and encryption (G28).

        Raises RejectedError: BAD_SIGNATURE for an unsigned message to a queue that wants signed
        ones, BAD_ENCRYPTION for a clear one where bodies must be encrypted, or the other way round.
        """
        if queue.authentication and not authenticated:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE)
        wanted = queue.privacy_level
        if (wanted is QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY and not encrypted) or (
            wanted is QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE and encrypted
        ):
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION)

    def check_sent(self, queue: Queue, message: Message) -> None:
        """Check a queue's demands on a message that is sent here; errors reach its sender at once.

        Raises MQError: MESSAGE_NOT_AUTHENTICATED for an unsigned message to a queue that wants
        signed ones, FAIL_VERIFY_SIGNATURE_EX for an invalid signature, INSUFFICIENT_PROPERTIES and
        ILLEGAL_PROPERTY_VALUE for a body that is to be private, or must not (G72).
        """
        if queue.authentication and not (self.verify and self.verify(message)):
            if message.attributes.signature:
                raise MQError(HResult.MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX)
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED)
        private = bool(message.attributes.privacy_level)
        if queue.privacy_level is QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY and not private:
            raise MQError(
                HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, "the queue wants private bodies"
            )
        if queue.privacy_level is QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE and private:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "the queue wants clear bodies")
