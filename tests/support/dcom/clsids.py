"""The CLSIDs of [MC-MQAC] 1.9 as its IDL has them, which is not where the product has them."""

from uuid import UUID

from rpcqm.codec.idl.load import load_idl


def _of(name: str) -> UUID:
    return load_idl("mqac").coclasses[name].uuid


MSMQ_QUEUE_INFO = _of("MSMQQueueInfo")
MSMQ_APPLICATION = _of("MSMQApplication")
MSMQ_MESSAGE = _of("MSMQMessage")
MSMQ_DESTINATION = _of("MSMQDestination")
MSMQ_MANAGEMENT = _of("MSMQManagement")
MSMQ_QUEUE_MANAGEMENT = _of("MSMQQueueManagement")
MSMQ_OUTGOING_QUEUE_MANAGEMENT = _of("MSMQOutgoingQueueManagement")
MSMQ_TRANSACTION = _of("MSMQTransaction")
MSMQ_TRANSACTION_DISPENSER = _of("MSMQTransactionDispenser")
MSMQ_COORDINATED_TRANSACTION_DISPENSER = _of("MSMQCoordinatedTransactionDispenser")
MSMQ_EVENT = _of("MSMQEvent")
