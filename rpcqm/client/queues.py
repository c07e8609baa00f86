"""Creating, changing and deleting queues, through qmcomm ([MS-MQMP] 3.2.4.1 to .6).

Public queues, which qmcomm does not create, are created and listed through rpcqm_admin.
"""

from typing import Any
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.connection import Connections, require_value
from rpcqm.client.queue_settings import PublicQueue, QueueProperties, QueueSettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.names.queue_format import format_name_of, queue_format_of
from rpcqm.codec.properties import NULL_VARIANT, QueueProperty
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.security.descriptor import (
    OWNER_GROUP_AND_DACL,
    SecurityDescriptor,
    parts_of,
)
from rpcqm.codec.types import qmcomm, rpcqm_admin
from rpcqm.codec.types.mqmq import PROPVARIANT
from rpcqm.codec.types.mqvalues import QUEUE_OBJECT

_DESCRIPTOR_SIZE = 4096
"""Bytes for a descriptor in the first call, in which most fit."""
_LARGEST_DESCRIPTOR = 524288
"""Bytes for one that does not fit: the most that the IDL lets a caller ask for."""

_QUERY_IDENTIFIER = 4

_SETTING_PROPERTIES = {
    "transactional": QueueProperty.PROPID_Q_TRANSACTION,
    "journal": QueueProperty.PROPID_Q_JOURNAL,
    "authenticate": QueueProperty.PROPID_Q_AUTHENTICATE,
    "quota": QueueProperty.PROPID_Q_QUOTA,
    "journal_quota": QueueProperty.PROPID_Q_JOURNAL_QUOTA,
    "label": QueueProperty.PROPID_Q_LABEL,
    "privacy": QueueProperty.PROPID_Q_PRIV_LEVEL,
    "base_priority": QueueProperty.PROPID_Q_BASEPRIORITY,
}
_SHOWN_PROPERTIES = {
    "label": QueueProperty.PROPID_Q_LABEL,
    "journal": QueueProperty.PROPID_Q_JOURNAL,
    "quota": QueueProperty.PROPID_Q_QUOTA,
    "journal_quota": QueueProperty.PROPID_Q_JOURNAL_QUOTA,
    "base_priority": QueueProperty.PROPID_Q_BASEPRIORITY,
    "authenticate": QueueProperty.PROPID_Q_AUTHENTICATE,
    "privacy": QueueProperty.PROPID_Q_PRIV_LEVEL,
    "create_time": QueueProperty.PROPID_Q_CREATE_TIME,
    "modify_time": QueueProperty.PROPID_Q_MODIFY_TIME,
}


class QueuesClient:
    """The queues of a queue manager."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def create(
        self,
        path: PathName,
        settings: QueueSettings,
        descriptor: SecurityDescriptor | None,
    ) -> None:
        """Create a queue; raises MQError(MQ_ERROR_QUEUE_EXISTS) if it exists.

        A public queue can be created on its own machine only. Raises MQError(MQ_ERROR_NO_DS) for
        a public queue if the queue manager has no directory.
        """
        identifiers, values = _properties(settings)
        identifiers.insert(0, QueueProperty.PROPID_Q_PATHNAME)
        values.insert(0, propvariant_of(QueueProperty.PROPID_Q_PATHNAME.variant(str(path))))
        raw = None if descriptor is None else descriptor.encode()
        described: dict[str, Any] = {
            "SDSize": len(raw or b""),
            "pSecurityDescriptor": raw,
            "cp": len(identifiers),
            "aProp": identifiers,
            "apVar": values,
        }
        if path.kind is QueueKind.PUBLIC:
            public = rpcqm_admin.R_CreatePublicQueueRequest(pwszPathName=str(path), **described)
            await self._connections.call(public)
            return
        private = qmcomm.R_QMCreateObjectInternalRequest(
            dwObjectType=QUEUE_OBJECT, lpwcsPathName=str(path), **described
        )
        await self._connections.call(private)

    async def queue_manager_identifier(self) -> UUID:
        """The identifier of the queue manager that has the queues.

        Raises ValueError if the answer is none. Source: [MS-MQMP] 3.1.4.23
        R_QMQueryQMRegistryInternal (Opnum 28).
        """
        request = qmcomm.R_QMQueryQMRegistryInternalRequest(dwQueryType=_QUERY_IDENTIFIER)
        return UUID((await self._connections.call(request)).lplpMQISServer or "")

    async def public(self) -> list[PublicQueue]:
        """All public queues that this queue manager knows; callers on its own machine may ask."""
        request = rpcqm_admin.R_ListPublicQueuesRequest()
        response = await self._connections.call(request)
        return [
            PublicQueue(
                queue.pwszPathName or "",
                queue.pwszFormatName or "",
                queue.pwszLabel or "",
                bool(queue.fHere),
                bool(queue.fFixed),
            )
            for queue in response.ppQueues or ()
        ]

    async def delete(self, name: FormatName) -> None:
        """Delete a queue with its messages."""
        await self._connections.call(qmcomm.R_QMDeleteObjectRequest(pObjectFormat=_object(name)))

    async def rename(self, name: FormatName, path: PathName) -> None:
        """Give a private queue of this machine another name; rpcqm only.

        Raises MQError(MQ_ERROR_QUEUE_EXISTS) if there is one of that name.
        """
        request = rpcqm_admin.R_RenameQueueRequest(
            pQueueFormat=queue_format_of(name), pwszPathName=str(path)
        )
        await self._connections.call(request)

    async def renamed_to(self, name: FormatName) -> str:
        """What a queue is called now that had this name before; "" if nobody tells."""
        request = rpcqm_admin.R_GetRenamedQueueRequest(pQueueFormat=queue_format_of(name))
        return (await self._connections.call(request)).ppwszName or ""

    async def properties(self, name: FormatName) -> QueueProperties:
        """The properties of a queue."""
        wanted: list[int] = list(_SHOWN_PROPERTIES.values())
        response = await self._connections.call(
            qmcomm.R_QMGetObjectPropertiesRequest(
                pObjectFormat=_object(name),
                cp=len(wanted),
                aProp=wanted,
                apVar=[propvariant_of(NULL_VARIANT) for _ in wanted],
            ),
        )
        values = [variant_of(structure).value for structure in response.apVar]
        found: dict[str, Any] = dict(zip(_SHOWN_PROPERTIES, values, strict=True))
        found["journal"] = bool(found["journal"])
        found["authenticate"] = bool(found["authenticate"])
        return QueueProperties(**found)

    async def set_properties(self, name: FormatName, settings: QueueSettings) -> None:
        """Change the settings that are not None, of which there must be at least one."""
        identifiers, values = _properties(settings)
        await self._connections.call(
            qmcomm.R_QMSetObjectPropertiesRequest(
                pObjectFormat=_object(name), cp=len(identifiers), aProp=identifiers, apVar=values
            ),
        )

    async def security(
        self, name: FormatName, parts: int = OWNER_GROUP_AND_DACL
    ) -> SecurityDescriptor:
        """The owner and the permissions of a queue; `parts` are bits of SecurityInformation."""
        size = _DESCRIPTOR_SIZE
        while True:
            request = qmcomm.R_QMGetObjectSecurityInternalRequest(
                pObjectFormat=_object(name), RequestedInformation=int(parts), nLength=size
            )
            try:
                response = await self._connections.call(request)
            except MQError as error:
                too_small = HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
                if error.status is not too_small or size >= _LARGEST_DESCRIPTOR:
                    raise
                size = _LARGEST_DESCRIPTOR
            else:
                return SecurityDescriptor.decode(
                    response.pSecurityDescriptor[: response.lpnLengthNeeded]
                )

    async def set_security(self, name: FormatName, descriptor: SecurityDescriptor) -> None:
        """Replace the parts of the queue's security descriptor that `descriptor` has."""
        raw = descriptor.encode()
        await self._connections.call(
            qmcomm.R_QMSetObjectSecurityInternalRequest(
                pObjectFormat=_object(name),
                SecurityInformation=int(parts_of(descriptor)),
                SDSize=len(raw),
                pSecurityDescriptor=raw,
            ),
        )

    async def format_name(self, path: PathName) -> FormatName:
        """The format name of a queue; raises MQError if the queue does not exist."""
        unknown = qmcomm.OBJECT_FORMAT(
            ObjType=QUEUE_OBJECT, u=qmcomm.OBJECT_FORMAT_u(QUEUE_OBJECT, queue_format_of(None))
        )
        response = await self._connections.call(
            qmcomm.R_QMObjectPathToObjectFormatRequest(
                lpwcsPathName=str(path), pObjectFormat=unknown
            ),
        )
        return format_name_of(require_value(response.pObjectFormat.u.value))


def _object(name: FormatName) -> qmcomm.OBJECT_FORMAT:
    return qmcomm.OBJECT_FORMAT(
        ObjType=QUEUE_OBJECT, u=qmcomm.OBJECT_FORMAT_u(QUEUE_OBJECT, queue_format_of(name))
    )


def _properties(settings: QueueSettings) -> tuple[list[int], list[PROPVARIANT]]:
    identifiers: list[int] = []
    values: list[PROPVARIANT] = []
    for setting, value in settings.given():
        identifier = _SETTING_PROPERTIES[setting]
        plain = int(value) if isinstance(value, bool) else value
        identifiers.append(identifier)
        values.append(propvariant_of(identifier.variant(plain)))
    return identifiers, values
