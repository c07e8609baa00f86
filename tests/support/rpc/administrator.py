"""An administrator who asks a queue manager over qmmgmt."""

from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.codec.properties import NULL_VARIANT, ManagementQueueProperty, PropVariant
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.management_properties import ManagementProperties
from tests.support.rpc.callers import ADMINISTRATOR, CallServer
from tests.support.rpc.remote_reader import format_of, status_name


def queue_object(name: Queue | str) -> MGMT_OBJECT:
    return MGMT_OBJECT(type=2, u=MGMT_OBJECT_u(2, format_of(name)))


def queue_property(
    engine: QueueManagerEngine, queue: Queue, identifier: ManagementQueueProperty
) -> PropVariant:
    """What administrators are told of a queue, without a connection."""
    properties = ManagementProperties(engine.queue_manager, engine.queues, engine.outgoing)
    return properties.read(queue, identifier)


class Administrator:
    """The calls of one connection."""

    def __init__(self, server: CallServer, **connection: Any) -> None:
        self.caller = server.connect(**{"identity": ADMINISTRATOR} | connection)

    def information(self, subject: MGMT_OBJECT, *identifiers: int) -> Any:
        """The values that R_QMMgmtGetInfo tells, or the name of its status."""
        response = self.caller.call(
            "R_QMMgmtGetInfo",
            pObjectFormat=subject,
            cp=len(identifiers),
            aProp=list(identifiers),
            apVar=[propvariant_of(NULL_VARIANT) for _ in identifiers],
        )
        if response.result:
            return status_name(response.result)
        return [variant_of(value) for value in response.apVar]

    def of_queue(self, name: Queue | str, identifier: ManagementQueueProperty) -> PropVariant:
        (variant,) = self.information(queue_object(name), identifier)
        assert isinstance(variant, PropVariant)
        return variant

    def act(self, subject: MGMT_OBJECT, action: str) -> str:
        response = self.caller.call("R_QMMgmtAction", pObjectFormat=subject, lpwszAction=action)
        return status_name(response.result)
