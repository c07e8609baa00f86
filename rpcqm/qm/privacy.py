"""Bodies that applications encrypt, or ask to be encrypted ([MS-MQMP] 3.1.5.2)."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.qm.arrivals import Decrypt


def check_privacy(descriptor: OpenQueueDescriptor, wanted: bool) -> None:
    """Encryption needs the destination's key, which direct names do not lead to.

    Raises MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION.
    """
    if wanted and any(isinstance(name.value, str) for name in descriptor.format_names):
        raise MQError(
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, "no encryption by direct name"
        )


def body_in_clear(attributes: MessageAttributes, key: bytes, decrypt: Decrypt | None) -> bytes:
    """The body, decrypted with the key of this queue manager.

    Raises MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED.
    """
    level, algorithm = attributes.privacy_level, attributes.encryption_algorithm
    try:
        if decrypt is None:
            raise DecodeError("no key to decrypt")
        return decrypt(attributes.body, key, int(level), int(algorithm))
    except DecodeError as error:
        unsupported = HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED
        raise MQError(unsupported, str(error)) from error
