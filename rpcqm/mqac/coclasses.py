"""The coclasses that clients can activate ([MC-MQAC] 1.9)."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from rpcqm.dcom.com_object import ComObject
from rpcqm.mqac.application import MSMQApplication
from rpcqm.mqac.collection import MSMQCollection
from rpcqm.mqac.destination import MSMQDestination
from rpcqm.mqac.event import MSMQEvent
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.management import OF_OUTGOING_QUEUES, OF_QUEUES, MSMQManagement
from rpcqm.mqac.message import MSMQMessage
from rpcqm.mqac.query import MSMQQuery, MSMQQueueInfos
from rpcqm.mqac.queue import MSMQQueue
from rpcqm.mqac.queue_info import MSMQQueueInfo
from rpcqm.mqac.transaction import (
    MSMQCoordinatedTransactionDispenser,
    MSMQTransaction,
    MSMQTransactionDispenser,
)

MSMQ_QUEUE_INFO = UUID("d7d6e07c-dccd-11d0-aa4b-0060970debae")
MSMQ_QUEUE = UUID("d7d6e079-dccd-11d0-aa4b-0060970debae")
MSMQ_EVENT = UUID("d7d6e07a-dccd-11d0-aa4b-0060970debae")
MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
MSMQ_APPLICATION = UUID("d7d6e086-dccd-11d0-aa4b-0060970debae")
MSMQ_QUERY = UUID("d7d6e073-dccd-11d0-aa4b-0060970debae")
MSMQ_QUEUE_INFOS = UUID("d7d6e07e-dccd-11d0-aa4b-0060970debae")
MSMQ_COLLECTION = UUID("f72b9031-2f0c-43e8-924e-e6052cdc493f")
MSMQ_DESTINATION = UUID("eba96b18-2168-11d3-898c-00e02c074f6b")
MSMQ_MANAGEMENT = UUID("39ce96fe-f4c5-4484-a143-4c2d5d324229")
MSMQ_QUEUE_MANAGEMENT = UUID("33b6d07e-f27d-42fa-b2d7-bf82e11e9374")
MSMQ_OUTGOING_QUEUE_MANAGEMENT = UUID("0188401c-247a-4fed-99c6-bf14119d7055")
MSMQ_TRANSACTION = UUID("d7d6e080-dccd-11d0-aa4b-0060970debae")
MSMQ_TRANSACTION_DISPENSER = UUID("d7d6e084-dccd-11d0-aa4b-0060970debae")
MSMQ_COORDINATED_TRANSACTION_DISPENSER = UUID("d7d6e082-dccd-11d0-aa4b-0060970debae")

Coclasses = dict[UUID, Callable[[], ComObject]]
"""Makes a new object of a class, by its CLSID."""


def coclasses(machine: Machine) -> Coclasses:
    """The classes of a queue manager whose methods are all implemented."""
    machine.queue_info = partial(MSMQQueueInfo.of_names, machine)
    found: Coclasses = {
        MSMQ_QUEUE_INFO: partial(MSMQQueueInfo, machine),
        MSMQ_QUEUE: partial(MSMQQueue, machine),
        MSMQ_APPLICATION: partial(MSMQApplication, machine),
        MSMQ_QUERY: partial(MSMQQuery, machine),
        MSMQ_QUEUE_INFOS: partial(MSMQQueueInfos, machine),
        MSMQ_COLLECTION: partial(MSMQCollection, {}),
        MSMQ_MESSAGE: partial(MSMQMessage, machine),
        MSMQ_DESTINATION: partial(MSMQDestination, machine),
        MSMQ_MANAGEMENT: partial(MSMQManagement, machine),
        MSMQ_QUEUE_MANAGEMENT: partial(MSMQManagement, machine, OF_QUEUES),
        MSMQ_OUTGOING_QUEUE_MANAGEMENT: partial(MSMQManagement, machine, OF_OUTGOING_QUEUES),
        MSMQ_TRANSACTION: MSMQTransaction,
        MSMQ_TRANSACTION_DISPENSER: partial(MSMQTransactionDispenser, machine),
        MSMQ_COORDINATED_TRANSACTION_DISPENSER: MSMQCoordinatedTransactionDispenser,
    }
    if machine.outbound is not None:
        found[MSMQ_EVENT] = partial(MSMQEvent, machine.outbound)
    return found
