"""Backups, disk space and event trails of a queue manager, through its administration interface."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rpcqm.client.connection import Connections, require_value
from rpcqm.client.searching import search_page
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.descriptor import (
    OWNER_GROUP_AND_DACL,
    SecurityDescriptor,
    parts_of,
)
from rpcqm.codec.types import rpcqm_admin
from rpcqm.codec.types.mqmq import OBJECTID
from rpcqm.codec.types.mqvalues import INFINITE

HAPPENINGS = {
    1: "arrived",
    2: "locked",
    3: "given back",
    4: "received",
    5: "moved",
    6: "kept",
    7: "removed",
    8: "left",
    9: "sent",
    10: "acknowledged",
    11: "refused",
}
"""Words for the numbers of what can happen to a message."""

STATES = {1: "waiting", 2: "being read", 3: "leaving", 4: "in a transaction"}
"""Words for the numbers of a message's state in its queue."""


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One thing that happened to a message; `time` is seconds since 1970.

    `detail` is the queue that the message went to, or the name of a reason.
    """

    time: float
    happening: str
    queue: str
    lookup_identifier: int
    detail: str


@dataclass(frozen=True, slots=True)
class StayingLetters:
    """How many dead letters could not be sent again for a reason, with the name of its code."""

    messages: int
    detail: str
    code: str


@dataclass(frozen=True, slots=True)
class ResentLetters:
    """What has become of some dead letters: how many were sent again, and why others stay."""

    messages: int
    staying: tuple[StayingLetters, ...]


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """What a queue does; `name` is a path name, or the format name of a queue elsewhere.

    `entered` and `left` count messages since the queue manager started. `oldest` is when the oldest
    message arrived, in seconds since 1970, 0 for an empty queue. `open_to_all` is true if every
    account may delete the queue or change its permissions.
    """

    name: str
    messages: int
    bytes: int
    entered: int
    left: int
    oldest: float
    open_handles: int
    waiting_readers: int
    open_to_all: bool


@dataclass(frozen=True, slots=True)
class Status:
    """What a queue manager and its queues do; times are seconds since 1970."""

    now: float
    started: float
    queues: tuple[QueueStatus, ...]


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A queue that has a message or a copy of it.

    `queue` is a path name, or the format name of a queue elsewhere. `arrived` is in seconds since
    1970. Both `arrived` and `lookup_identifier` are 0 while the transaction that sends the message
    is open.
    """

    queue: str
    lookup_identifier: int
    arrived: float
    label: str
    state: str = "waiting"


class MaintenanceError(Exception):
    """The queue manager could not do what was asked; the text is a sentence."""


class MaintenanceClient:
    """Work on the data of a running queue manager; for administrators of its machine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def make_backup(self, directory: Path, *, secrets: bool = False) -> None:
        """Copy all durable data and the configuration to a new or empty directory.

        The path is absolute. Keys and passwords that the configuration names are copied if
        `secrets`. Raises MaintenanceError if the directory cannot be written.
        """
        problem = await self._backup(str(directory), secrets)
        if problem:
            raise MaintenanceError(problem)

    async def _backup(self, directory: str, secrets: bool) -> str | None:
        if secrets:
            whole = rpcqm_admin.R_MakeBackupWithSecretsRequest(pwszDirectory=directory)
            return (await self._connections.call(whole)).ppwszProblem
        request = rpcqm_admin.R_MakeBackupRequest(pwszDirectory=directory)
        return (await self._connections.call(request)).ppwszProblem

    async def compact(self) -> tuple[int, int]:
        """Give back the disk space of removed messages; returns the bytes used before and after."""
        request = rpcqm_admin.R_CompactRequest()
        response = await self._connections.call(request)
        return response.pBytesBefore, response.pBytesAfter

    async def quota_uses(self) -> dict[str, tuple[int | None, int | None]]:
        """Percent of the quotas of queues and their journals, by path name in lower case.

        Queues without any are left out.
        """
        response = await self._connections.call(rpcqm_admin.R_GetQuotaUsesRequest())
        told = json.loads(require_value(response.ppwszUses))
        return {name.lower(): (queue, journal) for name, (queue, journal) in told.items()}

    async def maintain(self, on: bool, reason: str = "") -> None:
        """Let the queue manager take no new message, over restarts too, or take them again."""
        request = rpcqm_admin.R_SetMaintenanceRequest(fOn=on, pwszReason=reason)
        await self._connections.call(request)

    async def disconnect(self, reason: str) -> None:
        """Let the queue manager leave the network, over restarts too, for a reason."""
        await self._connections.call(rpcqm_admin.R_DisconnectRequest(pwszReason=reason))

    async def switch_trail(self, name: FormatName, on: bool) -> None:
        """Switch on or off that the queue manager records what happens to messages of a queue."""
        request = rpcqm_admin.R_SetEventTrailRequest(pQueueFormat=queue_format_of(name), fOn=on)
        await self._connections.call(request)

    async def has_trail(self, name: FormatName) -> bool:
        """Whether a queue has an event trail."""
        request = rpcqm_admin.R_GetEventTrailStateRequest(pQueueFormat=queue_format_of(name))
        response = await self._connections.call(request)
        return bool(response.pfOn)

    async def set_max_deliveries(self, name: FormatName, limit: int, subqueue: str) -> None:
        """Let a queue move a message to a subqueue after so many failed deliveries; 0 is never."""
        request = rpcqm_admin.R_SetMaxDeliveriesRequest(
            pQueueFormat=queue_format_of(name), MaxDeliveries=limit, pwszSubqueue=subqueue
        )
        await self._connections.call(request)

    async def max_deliveries(self, name: FormatName) -> tuple[int, str]:
        """After how many failed deliveries a message goes to which subqueue; 0 is never."""
        request = rpcqm_admin.R_GetMaxDeliveriesRequest(pQueueFormat=queue_format_of(name))
        response = await self._connections.call(request)
        return response.pMaxDeliveries, response.ppwszSubqueue or ""

    async def set_journal_bounds(self, name: FormatName, max_age: int, max_messages: int) -> None:
        """Let a queue's journal keep copies so many seconds, and so many of them; 0 is no bound."""
        request = rpcqm_admin.R_SetJournalBoundsRequest(
            pQueueFormat=queue_format_of(name), MaxAge=max_age, MaxMessages=max_messages
        )
        await self._connections.call(request)

    async def journal_bounds(self, name: FormatName) -> tuple[int, int]:
        """How long a queue's journal keeps copies (seconds), and how many; 0 is no bound."""
        request = rpcqm_admin.R_GetJournalBoundsRequest(pQueueFormat=queue_format_of(name))
        response = await self._connections.call(request)
        return response.pMaxAge, response.pMaxMessages

    async def trail(self, identifier: MessageIdentifier) -> list[RecordedEvent]:
        """What happened to a message in queues that have an event trail."""
        wanted = OBJECTID(Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal)
        request = rpcqm_admin.R_GetEventTrailRequest(pMessageId=wanted)
        response = await self._connections.call(request)
        return [
            RecordedEvent(
                event.Time / 1000,
                HAPPENINGS.get(event.Happening, str(event.Happening)),
                event.pwszQueue or "",
                event.LookupId,
                event.pwszDetail or "",
            )
            for event in response.ppEvents or ()
        ]

    async def find(self, identifier: MessageIdentifier) -> list[FoundMessage]:
        """Find a message and its copies; reads all packets, a million in a few seconds."""
        wanted = OBJECTID(Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal)
        request = rpcqm_admin.R_FindMessageRequest(pMessageId=wanted)
        response = await self._connections.call(request)
        return [
            FoundMessage(
                place.pwszQueue or "",
                place.LookupId,
                place.Arrived / 1000,
                place.pwszLabel or "",
                STATES.get(place.State, str(place.State)),
            )
            for place in response.ppPlaces or ()
        ]

    async def outgoing_queues(self) -> list[FormatName]:
        """All queues to other queue managers, even if they are empty."""
        request = rpcqm_admin.R_ListOutgoingQueuesRequest()
        response = await self._connections.call(request)
        return [FormatName.parse(name) for name in response.pNames.pElems or () if name]

    async def exposed_queues(self) -> list[str]:
        """The path names of queues that callers who have not logged on may read, or own."""
        request = rpcqm_admin.R_ListExposedQueuesRequest()
        response = await self._connections.call(request)
        return [name for name in response.pNames.pElems or () if name]

    async def status(self) -> Status:
        """What the queue manager and all of its queues do."""
        response = await self._connections.call(rpcqm_admin.R_GetQueueStatusRequest())
        queues = tuple(
            QueueStatus(
                each.pwszName or "",
                each.Messages,
                each.Bytes,
                each.Entered,
                each.Left,
                each.Oldest / 1000,
                each.OpenHandles,
                each.WaitingReaders,
                bool(each.fOpenToAll),
            )
            for each in response.ppQueues or ()
        )
        return Status(response.pNow / 1000, response.pStarted / 1000, queues)

    async def overview(self) -> dict[str, Any]:
        """The totals, the last hour and what needs attention, as `/api/v1/overview` tells them."""
        response = await self._connections.call(rpcqm_admin.R_GetOverviewRequest())
        overview: dict[str, Any] = json.loads(require_value(response.ppwszOverview))
        return overview

    async def in_flight(self) -> dict[str, Any]:
        """Leases, open transactions and sessions, some rows of each, and how many there are."""
        response = await self._connections.call(rpcqm_admin.R_GetInFlightRequest())
        told: dict[str, Any] = json.loads(require_value(response.ppwszInFlight))
        return told

    async def explain_access(
        self, name: FormatName | None, account: str, token: str = ""
    ) -> dict[str, Any]:
        """What an account may do with a queue, or with the queue manager (None), and why."""
        request = rpcqm_admin.R_ExplainAccessRequest(
            pQueueFormat=None if name is None else queue_format_of(name),
            pwszAccount=account,
            pwszToken=token or None,
        )
        response = await self._connections.call(request)
        told: dict[str, Any] = json.loads(require_value(response.ppwszExplanation))
        return told

    async def search(
        self,
        name: FormatName | None,
        conditions: Mapping[str, str],
        after: str | None = None,
        limit: int = 100,
        *,
        whole: bool = True,
    ) -> dict[str, Any]:
        """A page of the messages of a queue, or of all (None), that meet conditions.

        It is what `GET …/messages` of `/api/v1` answers; unless they are told `whole`, messages
        have the beginnings of their bodies only. `after` is `next` of the page before. Raises
        MaintenanceError with a sentence about wrong conditions.
        """
        asked = {"conditions": dict(conditions), "after": after, "limit": limit, "whole": whole}
        told = await search_page(self._connections, name, asked)
        if "problem" in told:
            raise MaintenanceError(told["problem"])
        return told

    async def opened(self, name: FormatName | None, after: str, limit: int) -> dict[str, Any]:
        """Who has a queue open, or any (None): rows, and where the next ones begin."""
        request = rpcqm_admin.R_ListOpenedRequest(
            pQueueFormat=None if name is None else queue_format_of(name),
            pwszAfter=after,
            Limit=limit,
        )
        response = await self._connections.call(request)
        told: dict[str, Any] = json.loads(require_value(response.ppwszOpened))
        return told

    async def open_connections(self) -> list[dict[str, Any]]:
        """The connections of all doors."""
        response = await self._connections.call(rpcqm_admin.R_ListConnectionsRequest())
        told: list[dict[str, Any]] = json.loads(require_value(response.ppwszConnections))
        return told

    async def end_opened(self, identifier: str) -> None:
        """End a handle, a lease, a transaction or a connection."""
        await self._connections.call(rpcqm_admin.R_EndOpenedRequest(pwszIdentifier=identifier))

    async def security(self) -> SecurityDescriptor:
        """The owner and the permissions of the queue manager itself."""
        request = rpcqm_admin.R_GetMachineSecurityRequest(
            RequestedInformation=int(OWNER_GROUP_AND_DACL)
        )
        response = await self._connections.call(request)
        return SecurityDescriptor.decode(require_value(response.ppDescriptor))

    async def set_security(self, descriptor: SecurityDescriptor) -> None:
        """Replace the parts of the queue manager's security descriptor that `descriptor` has."""
        raw = descriptor.encode()
        request = rpcqm_admin.R_SetMachineSecurityRequest(
            SecurityInformation=int(parts_of(descriptor)), cbDescriptor=len(raw), pDescriptor=raw
        )
        await self._connections.call(request)

    async def resend_dead_letter(
        self, name: FormatName, lookup_identifier: int, to: FormatName | None, ttbr: int | None
    ) -> None:
        """Send a dead letter again, in one commit; `ttbr` is seconds, None leaves it as it was."""
        request = rpcqm_admin.R_ResendDeadLetterRequest(
            pQueueFormat=queue_format_of(name),
            LookupId=lookup_identifier,
            pTo=None if to is None else queue_format_of(to),
            TimeToBeReceived=INFINITE if ttbr is None else ttbr,
        )
        await self._connections.call(request)

    async def resend_dead_letters(
        self, name: FormatName, to: FormatName | None, ttbr: int | None
    ) -> AsyncIterator[ResentLetters]:
        """Send the dead letters that are in a queue now again, and tell of some at a time."""
        after = until = 0
        while True:
            request = rpcqm_admin.R_ResendDeadLettersRequest(
                pQueueFormat=queue_format_of(name),
                pTo=None if to is None else queue_format_of(to),
                TimeToBeReceived=INFINITE if ttbr is None else ttbr,
                pAfter=after,
                pUntil=until,
            )
            response = await self._connections.call(request)
            stay = json.loads(require_value(response.ppwszStay))
            staying = (StayingLetters(x["messages"], x["detail"], x["code"]) for x in stay)
            yield ResentLetters(response.pcResent, tuple(staying))
            after, until = response.pAfter, response.pUntil
            if not after:
                return

    async def import_message(self, name: FormatName, packet: bytes) -> int:
        """Put a packet into a queue unchanged; returns its lookup identifier."""
        request = rpcqm_admin.R_ImportMessageRequest(
            pQueueFormat=queue_format_of(name), cbPacket=len(packet), pPacket=packet
        )
        response = await self._connections.call(request)
        return response.pLookupId
