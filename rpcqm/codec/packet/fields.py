"""Where the fixed fields of packets lie, worked out from the structures that declare them.

Nothing outside this package writes an offset, a width or a mask of a packet as a number. The
places count from the packet's first byte; those of headers that move, from their own.
"""

import struct

from rpcqm.codec.packet.base import BASE_HEADER_SIZE, BaseFlags, BaseHeader
from rpcqm.codec.packet.internal import InternalFlags, InternalHeader
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.transaction import TransactionHeaderStart
from rpcqm.codec.packet.user import USER_HEADER_SIZE, UserFlags, UserHeaderStart

BASE_FLAGS = BaseHeader.place("flags")
SIGNATURE = BaseHeader.place("signature")
PACKET_SIZE = BaseHeader.place("packet_size")
TIME_TO_REACH_QUEUE = BaseHeader.place("time_to_reach_queue")

SOURCE_QUEUE_MANAGER = UserHeaderStart.place("source_queue_manager", BASE_HEADER_SIZE)
QUEUE_MANAGER_ADDRESS = UserHeaderStart.place("queue_manager_address", BASE_HEADER_SIZE)
TIME_TO_BE_RECEIVED = UserHeaderStart.place("time_to_be_received", BASE_HEADER_SIZE)
SENT_TIME = UserHeaderStart.place("sent_time", BASE_HEADER_SIZE)
MESSAGE_ID = UserHeaderStart.place("message_id", BASE_HEADER_SIZE)
USER_FLAGS = UserHeaderStart.place("flags", BASE_HEADER_SIZE)
NAMES_OFFSET = BASE_HEADER_SIZE + USER_HEADER_SIZE

INTERNAL_FLAGS = InternalHeader.place("flags", BASE_HEADER_SIZE)

# The octet that holds a flag, and the flag's bits in it.
PRIORITY = BaseFlags.PR.octet(BASE_FLAGS)
INTERNAL = BaseFlags.IN.octet(BASE_FLAGS)
SESSION_HEADER = BaseFlags.SH.octet(BASE_FLAGS)
DEBUG_HEADER = BaseFlags.DH.octet(BASE_FLAGS)
TRACING = BaseFlags.TR.octet(BASE_FLAGS)
HOP_COUNT = UserFlags.RC.octet(USER_FLAGS)
DELIVERY_MODE = UserFlags.DM.octet(USER_FLAGS)
NEGATIVE_JOURNALING = UserFlags.JN.octet(USER_FLAGS)
POSITIVE_JOURNALING = UserFlags.JP.octet(USER_FLAGS)
PACKET_TYPE = InternalFlags.PT.octet(INTERNAL_FLAGS)
CONNECTION_REFUSED = InternalFlags.CS.octet(INTERNAL_FLAGS)

# Shifts and mask of the queue names' types in UserHeader.Flags.
DESTINATION_TYPE = UserFlags.DQ.offset
ADMINISTRATION_TYPE = UserFlags.AQ.offset
RESPONSE_TYPE = UserFlags.RQ.offset
QUEUE_TYPE = UserFlags.DQ.mask

# Within TransactionHeader and MessagePropertiesHeader.
TX_SEQUENCE_ID = TransactionHeaderStart.place("tx_sequence_id")
TX_SEQUENCE_NUMBER = TransactionHeaderStart.place("tx_sequence_number")
PREVIOUS_TX_SEQUENCE_NUMBER = TransactionHeaderStart.place("previous_tx_sequence_number")
ACKNOWLEDGEMENTS = MessagePropertiesStart.place("flags")
CLASS = MessagePropertiesStart.place("message_class")
CORRELATION_ID = MessagePropertiesStart.place("correlation_id")
BODY_TYPE = MessagePropertiesStart.place("body_type")
APPLICATION_TAG = MessagePropertiesStart.place("application_tag")
PRIVACY_LEVEL = MessagePropertiesStart.place("privacy_level")
HASH_ALGORITHM = MessagePropertiesStart.place("hash_algorithm")
ENCRYPTION_ALGORITHM = MessagePropertiesStart.place("encryption_algorithm")


def head_reader(base: tuple[str, ...] = (), user: tuple[str, ...] = ()) -> struct.Struct:
    """Reads some fields, or all, of BaseHeader and of the fixed part of UserHeader."""
    return struct.Struct("<" + BaseHeader.reading(*base) + UserHeaderStart.reading(*user))
