"""Values of message attributes, under the names that the specifications give them."""

import enum

from rpcqm.codec.types.mqvalues import VARENUM


class MessageClass(enum.IntEnum):
    """Why a message exists.

    Source: [MS-MQMQ] 2.2.18.1.6, and [MC-MQAC] 2.2.2.9 for the three values missing there.
    Applications may also use values of their own, which stay plain integers.
    """

    MQMSG_CLASS_NORMAL = 0x0000
    MQMSG_CLASS_REPORT = 0x0001
    MQMSG_CLASS_ACK_REACH_QUEUE = 0x0002
    MQMSG_CLASS_ORDER_ACK = 0x00FF
    MQMSG_CLASS_ACK_RECEIVE = 0x4000
    MQMSG_CLASS_NACK_BAD_DST_Q = 0x8000
    MQMSG_CLASS_NACK_DELETED = 0x8001
    MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT = 0x8002
    MQMSG_CLASS_NACK_Q_EXCEED_QUOTA = 0x8003
    MQMSG_CLASS_NACK_ACCESS_DENIED = 0x8004
    MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED = 0x8005
    MQMSG_CLASS_NACK_BAD_SIGNATURE = 0x8006
    MQMSG_CLASS_NACK_BAD_ENCRYPTION = 0x8007
    MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT = 0x8008
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q = 0x8009
    MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG = 0x800A
    MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    MQMSG_CLASS_NACK_SOURCE_COMPUTER_GUID_CHANGED = 0x800C
    MQMSG_CLASS_NACK_Q_DELETED = 0xC000
    MQMSG_CLASS_NACK_Q_PURGED = 0xC001
    MQMSG_CLASS_NACK_RECEIVE_TIMEOUT = 0xC002
    MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER = 0xC003
    MQMSG_CLASS_NACK_RECEIVE_REJECTED = 0xC004


CUSTOM_CLASS_MASK = 0xE1FF
"""The bits that an application's own class may have."""


class DeliveryGuarantee(enum.IntEnum):
    """UserHeader.Flags.DM: whether a message outlives a restart."""

    EXPRESS = 0
    RECOVERABLE = 1


class AcknowledgementsRequested(enum.IntFlag):
    """MessagePropertiesHeader.Flags ([MS-MQDMPR] 3.1.1.12, [MC-MQAC] 2.2.2.11)."""

    NONE = 0x00
    ACK_POS_ARRIVAL = 0x01
    ACK_POS_RECEIVE = 0x02
    ACK_NEG_ARRIVAL = 0x04
    ACK_NEG_RECEIVE = 0x08
    ACK_NACK_REACH_QUEUE = 0x04
    ACK_FULL_REACH_QUEUE = 0x05
    ACK_NACK_RECEIVE = 0x0C
    ACK_FULL_RECEIVE = 0x0E


EVERY_ACKNOWLEDGEMENT = 0x0F
"""The bits of MessagePropertiesHeader.Flags that ask for acknowledgements."""


class PrivacyLevel(enum.IntEnum):
    """How the body is encrypted on its way."""

    NONE = 0
    BASE = 1
    ENHANCED = 3
    ADVANCED = 5


class MessageAuthenticationLevel(enum.IntEnum):
    """How a message is signed: SecurityHeader.Flags.AS once it has been checked (G16)."""

    NONE = 0
    SIG10 = 1
    SIG20 = 3
    SIG30 = 5
    XMLSIG = 9


class HashAlgorithm(enum.IntEnum):
    """MessagePropertiesHeader.HashAlgorithm (G16)."""

    MD2 = 0x8001
    MD4 = 0x8002
    MD5 = 0x8003
    SHA1 = 0x8004
    SHA_256 = 0x800C
    SHA_512 = 0x800E


class EncryptionAlgorithm(enum.IntEnum):
    """MessagePropertiesHeader.EncryptionAlgorithm."""

    DSS = 0x2200
    RSA = 0x2400
    DES = 0x6601
    RC2 = 0x6602
    AES128 = 0x660E
    AES192 = 0x660F
    AES256 = 0x6610
    RC4 = 0x6801
    SEAL = 0x6802
    RSA_KEYS = 0xA400


class SenderIdentifierType(enum.IntEnum):
    """SecurityHeader.Flags.ST: what the sender's identifier is."""

    NONE = 0
    SID = 1
    QUEUE_MANAGER_IDENTIFIER = 2


class BodyType(enum.IntEnum):
    """Types of a body that applications commonly mark ([MS-MQMQ] 2.2.12).

    VT_BSTR is what the example of [MS-MQQB] 4.1.7 carries for UTF-16 text.
    """

    VT_EMPTY = VARENUM.VT_EMPTY
    VT_NULL = VARENUM.VT_NULL
    VT_I2 = VARENUM.VT_I2
    VT_I4 = VARENUM.VT_I4
    VT_BSTR = VARENUM.VT_BSTR
    VT_BOOL = VARENUM.VT_BOOL
    VT_I1 = VARENUM.VT_I1
    VT_UI1 = VARENUM.VT_UI1
    VT_UI2 = VARENUM.VT_UI2
    VT_UI4 = VARENUM.VT_UI4
    VT_I8 = VARENUM.VT_I8
    VT_UI8 = VARENUM.VT_UI8
    VT_LPSTR = VARENUM.VT_LPSTR
    VT_LPWSTR = VARENUM.VT_LPWSTR
    VT_BLOB = VARENUM.VT_BLOB
    VT_CLSID = VARENUM.VT_CLSID
    VT_VECTOR_UI1 = VARENUM.VT_VECTOR | VARENUM.VT_UI1
