"""What a queue manager tells about its queues, through qmmgmt ([MS-MQMR] 3.2)."""

from collections.abc import Iterable, Sequence
from typing import Any

from rpcqm.base.errors import HResult, MQError
from rpcqm.client import outgoing_queues
from rpcqm.client.connection import Connections
from rpcqm.client.outgoing_queues import OutgoingQueueInformation
from rpcqm.client.queue_settings import QueueInformation
from rpcqm.client.together import answered_together
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementMachineProperty,
    ManagementQueueProperty,
)
from rpcqm.codec.property_values import ManagementQueueLocation, ManagementQueueXact
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types import qmmgmt

_QUEUE_PROPERTIES = {
    "path_name": ManagementQueueProperty.PROPID_MGMT_QUEUE_PATHNAME,
    "format_name": ManagementQueueProperty.PROPID_MGMT_QUEUE_FORMATNAME,
    "type": ManagementQueueProperty.PROPID_MGMT_QUEUE_TYPE,
    "location": ManagementQueueProperty.PROPID_MGMT_QUEUE_LOCATION,
    "state": ManagementQueueProperty.PROPID_MGMT_QUEUE_STATE,
    "transactional": ManagementQueueProperty.PROPID_MGMT_QUEUE_XACT,
    "message_count": ManagementQueueProperty.PROPID_MGMT_QUEUE_MESSAGE_COUNT,
    "bytes_in_queue": ManagementQueueProperty.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE,
    "journal_message_count": ManagementQueueProperty.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT,
    "bytes_in_journal": ManagementQueueProperty.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL,
    "subqueues": ManagementQueueProperty.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES,
}
_ABSENT: dict[str, Any] = {
    "path_name": "",
    "format_name": "",
    "type": "",
    "location": "",
    "state": "",
    "transactional": ManagementQueueXact.MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE,
    "message_count": 0,
    "bytes_in_queue": 0,
    "journal_message_count": 0,
    "bytes_in_journal": 0,
    "subqueues": (),
}
"""Values of the properties for which the server has none."""


class ManagementClient:
    """The administrator's view of a queue manager."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def private_queues(self) -> tuple[str, ...]:
        """Path names of the private queues."""
        return await self._names(ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ)

    async def queue_information(self, name: FormatName) -> QueueInformation:
        """The kind and the content of a queue."""
        values = await self._information(name, list(_QUEUE_PROPERTIES.values()))
        found = {
            key: _ABSENT[key] if value is None else value
            for key, value in zip(_QUEUE_PROPERTIES, values, strict=True)
        }
        transactional = ManagementQueueXact.MGMT_QUEUE_TRANSACTIONAL_TYPE
        found["transactional"] = found["transactional"] == transactional
        found["subqueues"] = tuple(found["subqueues"])
        if found["journal_message_count"] and not found["bytes_in_journal"]:
            found["bytes_in_journal"] = await self._bytes_in_journal(name)
        return QueueInformation(**found)

    async def _bytes_in_journal(self, name: FormatName) -> int:
        """The octets that the journal itself tells; 0 if the server does not serve its name.

        A queue whose journal is switched off tells 0 octets beside the number of messages (G468).
        """
        wanted = [ManagementQueueProperty.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE]
        try:
            journal = FormatName.parse(f"{name};JOURNAL")
            (size,) = await self._information(journal, wanted)
        except MQError:
            return 0
        return int(size or 0)

    async def queues_information(self, names: Iterable[FormatName]) -> list[QueueInformation]:
        """The same of many queues, in their order; those that no longer exist are left out."""
        found = await answered_together(self._information_if_there(name) for name in names)
        return [queue for queue in found if queue is not None]

    async def _information_if_there(self, name: FormatName) -> QueueInformation | None:
        try:
            return await self.queue_information(name)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND:
                raise
            return None

    async def is_here(self, name: FormatName) -> bool:
        """Whether the computer of a direct name is the queue manager that is asked.

        Raises MQError if the caller may not know, or if the name is of another kind.
        """
        direct = name.direct_name
        letters = FormatName.direct(f"{direct.protocol}:{direct.host}\\system$;DEADLETTER")
        try:
            found = await self.queue_information(letters)
        except MQError as error:
            if error.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND:
                return False
            raise
        return found.location == ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION

    async def active_public_queues(self) -> list[QueueInformation]:
        """The open public queues of the machine."""
        names = [
            FormatName.parse(name)
            for name in await self._active_queues()
            if name.upper().startswith("PUBLIC=") and ";" not in name
        ]
        local = ManagementQueueLocation.MGMT_QUEUE_LOCAL_LOCATION
        return [each for each in await self.queues_information(names) if each.location == local]

    async def _active_queues(self) -> tuple[str, ...]:
        return await self._names(ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES)

    async def _names(self, wanted: ManagementMachineProperty) -> tuple[str, ...]:
        """A property of the machine that is a list of names."""
        (names,) = await self._information(None, [wanted])
        return tuple(names or ())

    async def outgoing_queues(
        self, names: Iterable[FormatName] | None = None
    ) -> list[OutgoingQueueInformation]:
        """Information on those of `names` that are elsewhere.

        Without names it is on all queues elsewhere that are open or have messages.
        """
        if names is None:
            names = map(FormatName.parse, await self._active_queues())
        found = await answered_together(self.outgoing_queue(name) for name in names)
        return [queue for queue in found if queue is not None]

    async def outgoing_queue(self, name: FormatName) -> OutgoingQueueInformation | None:
        """The messages on their way to a queue elsewhere.

        Returns None if the queue is on this machine or no longer exists.
        """
        try:
            values = await self._information(name, list(outgoing_queues.PROPERTIES.values()))
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND:
                raise
            return None
        found = dict(zip(outgoing_queues.PROPERTIES, values, strict=True))
        if found["location"] != ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION:
            return None
        return outgoing_queues.information(found)

    async def order(self, action: str, name: FormatName | None = None) -> None:
        """Order an action: PAUSE, RESUME or EOD_RESEND for the messages to a queue elsewhere, or
        CONNECT, DISCONNECT or TIDY for the machine ([MS-MQMR] 2.2.2, MgmtAction).
        """
        request = qmmgmt.R_QMMgmtActionRequest(pObjectFormat=_subject(name), lpwszAction=action)
        await self._connections.call(request)

    async def property_of(self, name: FormatName | None, identifier: int) -> object:
        """A property of a queue, or without a name of the machine; None if it has no value."""
        (value,) = await self._information(name, [identifier])
        return value

    async def _information(self, name: FormatName | None, properties: Sequence[int]) -> list[Any]:
        request = qmmgmt.R_QMMgmtGetInfoRequest(
            pObjectFormat=_subject(name),
            cp=len(properties),
            aProp=list(properties),
            apVar=[propvariant_of(NULL_VARIANT) for _ in properties],
        )
        response = await self._connections.call(request)
        return [variant_of(structure).value for structure in response.apVar]


def _subject(name: FormatName | None) -> qmmgmt.MGMT_OBJECT:
    """What is asked about: a queue, or without a name the machine."""
    kind = qmmgmt.MGMT_MACHINE if name is None else qmmgmt.MGMT_QUEUE
    value = 0 if name is None else queue_format_of(name)
    return qmmgmt.MGMT_OBJECT(type=kind, u=qmmgmt.MGMT_OBJECT_u(kind, value))
