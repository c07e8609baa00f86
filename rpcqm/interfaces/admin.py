"""rpcqm_admin: what MSMQ's own interfaces lack, for administrators of this machine."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqmq import CALPWSTR
from rpcqm.codec.types.rpcqm_admin import (
    ACCOUNT,
    PLACE,
    PUBLIC_QUEUE,
    QUEUE_STATUS,
    TRAIL_EVENT,
    R_AddAccountRequest,
    R_AddAccountResponse,
    R_CompactRequest,
    R_CompactResponse,
    R_CreatePublicQueueRequest,
    R_FindMessageRequest,
    R_FindMessageResponse,
    R_GetEventTrailRequest,
    R_GetEventTrailResponse,
    R_GetEventTrailStateRequest,
    R_GetEventTrailStateResponse,
    R_GetMachineSecurityRequest,
    R_GetMachineSecurityResponse,
    R_GetMaxDeliveriesRequest,
    R_GetMaxDeliveriesResponse,
    R_GetQueueStatusRequest,
    R_GetQueueStatusResponse,
    R_ImportMessageRequest,
    R_ImportMessageResponse,
    R_ListAccountsRequest,
    R_ListAccountsResponse,
    R_ListExposedQueuesRequest,
    R_ListExposedQueuesResponse,
    R_ListOutgoingQueuesRequest,
    R_ListOutgoingQueuesResponse,
    R_ListPublicQueuesRequest,
    R_ListPublicQueuesResponse,
    R_MakeBackupRequest,
    R_MakeBackupResponse,
    R_MakeBackupWithSecretsRequest,
    R_MakeBackupWithSecretsResponse,
    R_RemoveAccountRequest,
    R_SetAccountPasswordRequest,
    R_SetEventTrailRequest,
    R_SetMachineSecurityRequest,
    R_SetMaxDeliveriesRequest,
)
from rpcqm.interfaces._queue_properties import attributes_of
from rpcqm.qm.access import require_administrator
from rpcqm.qm.message_lookup import MessageLocation
from rpcqm.qm.queue_status import QueueStatus
from rpcqm.qm.trail import TrailEvent
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy

MOST_EVENTS = 10_000
"""Events that one call tells of a message, which bounds the response."""

POLICY = InterfacePolicy(transports=frozenset({NCALRPC}))
"""Nothing of this interface can be reached from another machine."""


class AccountView(Protocol):
    """The attributes of an account that administrators see."""

    @property
    def name(self) -> str: ...
    @property
    def sid(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


class AccountAdministration(Protocol):
    """Keeps the accounts; its methods raise MQError if they refuse."""

    def add(self, name: str, nt_hash: bytes, groups: Sequence[str] = ()) -> Completion[str]: ...
    def set_password(self, name: str, nt_hash: bytes) -> None: ...
    def remove(self, name: str) -> Completion[None]: ...
    def list(self) -> Sequence[AccountView]: ...


class PublicQueueView(Protocol):
    """The attributes of a public queue that administrators see."""

    @property
    def path_name(self) -> str: ...
    @property
    def format_name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def here(self) -> bool: ...
    @property
    def fixed(self) -> bool: ...


class DataMaintenance(Protocol):
    """What can be done with the data while it is in use."""

    def make_backup(self, directory: str, secrets: bool = False) -> Completion[str]: ...
    def compact(self) -> Completion[None]: ...
    def disk_bytes(self) -> int: ...
    def switch_trail(self, name: FormatName, on: bool) -> Completion[None]: ...
    def has_trail(self, name: FormatName) -> bool: ...
    def trail(self, identifier: MessageIdentifier) -> Iterable[TrailEvent]: ...
    def max_deliveries(self, name: FormatName) -> tuple[int, str]: ...
    def set_max_deliveries(
        self, name: FormatName, limit: int, subqueue: str, identity: Identity
    ) -> Completion[None]: ...
    def import_message(self, name: FormatName, packet: bytes) -> Completion[int]: ...
    def find_message(self, identifier: MessageIdentifier) -> Completion[list[MessageLocation]]: ...
    def public_queues(self) -> Iterable[PublicQueueView]: ...
    def outgoing_queues(self) -> list[str]: ...
    def exposed_queues(self) -> list[str]: ...
    def queue_statuses(self) -> Iterable[QueueStatus]: ...
    def now(self) -> int: ...
    @property
    def started(self) -> int: ...
    def create_public_queue(
        self, path: str, attributes: Mapping[str, object], identity: Identity
    ) -> Completion[Queue]: ...
    def machine_security(self, parts: int, identity: Identity) -> bytes: ...
    def set_machine_security(
        self, parts: int, change: bytes, identity: Identity
    ) -> Completion[None]: ...


class Admin:
    """The handlers of the interface; others than administrators get MQ_ERROR_ACCESS_DENIED.

    The descriptor of the machine itself names the callers that may see and change it.
    """

    def __init__(self, accounts: AccountAdministration, maintenance: DataMaintenance) -> None:
        self._accounts = accounts
        self._maintenance = maintenance

    async def R_AddAccount(self, call: Call, request: R_AddAccountRequest) -> R_AddAccountResponse:
        """Create an account; its SID is told once it is durable (Opnum 0)."""
        require_administrator(call.identity)
        groups = _texts(request.pGroups)
        sid = await self._accounts.add(request.pwszName, request.NtHash, groups)
        return R_AddAccountResponse(ppwszSid=sid, result=0)

    def R_SetAccountPassword(self, call: Call, request: R_SetAccountPasswordRequest) -> HResult:
        """Give an account another password (Opnum 1)."""
        require_administrator(call.identity)
        self._accounts.set_password(request.pwszName, request.NtHash)
        return HResult.MQ_OK

    def R_RemoveAccount(self, call: Call, request: R_RemoveAccountRequest) -> Completion[None]:
        """Delete an account (Opnum 2)."""
        require_administrator(call.identity)
        return self._accounts.remove(request.pwszName)

    def R_ListAccounts(self, call: Call, request: R_ListAccountsRequest) -> R_ListAccountsResponse:
        """All accounts, by name (Opnum 3)."""
        require_administrator(call.identity)
        accounts = [_structure(account) for account in self._accounts.list()]
        return R_ListAccountsResponse(pcAccounts=len(accounts), ppAccounts=accounts, result=0)

    async def R_MakeBackup(self, call: Call, request: R_MakeBackupRequest) -> R_MakeBackupResponse:
        """Copy everything that is durable to a directory of this machine (Opnum 4)."""
        require_administrator(call.identity)
        problem = await self._maintenance.make_backup(request.pwszDirectory)
        return R_MakeBackupResponse(ppwszProblem=problem, result=HResult.MQ_OK)

    async def R_MakeBackupWithSecrets(
        self, call: Call, request: R_MakeBackupWithSecretsRequest
    ) -> R_MakeBackupWithSecretsResponse:
        """The same, with the keys and passwords that the configuration names (Opnum 18)."""
        require_administrator(call.identity)
        problem = await self._maintenance.make_backup(request.pwszDirectory, secrets=True)
        return R_MakeBackupWithSecretsResponse(ppwszProblem=problem, result=HResult.MQ_OK)

    async def R_Compact(self, call: Call, request: R_CompactRequest) -> R_CompactResponse:
        """Give the disk space of removed messages back; tells what is used (Opnum 5)."""
        require_administrator(call.identity)
        before = self._maintenance.disk_bytes()
        await self._maintenance.compact()
        after = self._maintenance.disk_bytes()
        return R_CompactResponse(pBytesBefore=before, pBytesAfter=after, result=HResult.MQ_OK)

    def R_SetEventTrail(self, call: Call, request: R_SetEventTrailRequest) -> Completion[None]:
        """Begin or end the event trail of a queue (Opnum 6)."""
        require_administrator(call.identity)
        name = format_name_of(request.pQueueFormat)
        return self._maintenance.switch_trail(name, bool(request.fOn))

    def R_GetEventTrailState(
        self, call: Call, request: R_GetEventTrailStateRequest
    ) -> R_GetEventTrailStateResponse:
        """Whether a queue has an event trail (Opnum 7)."""
        require_administrator(call.identity)
        on = self._maintenance.has_trail(format_name_of(request.pQueueFormat))
        return R_GetEventTrailStateResponse(pfOn=on, result=0)

    def R_SetMaxDeliveries(
        self, call: Call, request: R_SetMaxDeliveriesRequest
    ) -> Completion[None]:
        """Let a queue put poison messages aside, if the caller may set properties (Opnum 19)."""
        return self._maintenance.set_max_deliveries(
            format_name_of(request.pQueueFormat),
            request.MaxDeliveries,
            request.pwszSubqueue,
            call.identity,
        )

    def R_GetMaxDeliveries(
        self, call: Call, request: R_GetMaxDeliveriesRequest
    ) -> R_GetMaxDeliveriesResponse:
        """After how many failed deliveries a queue puts a message aside, and where (Opnum 20)."""
        require_administrator(call.identity)
        limit, subqueue = self._maintenance.max_deliveries(format_name_of(request.pQueueFormat))
        return R_GetMaxDeliveriesResponse(pMaxDeliveries=limit, ppwszSubqueue=subqueue, result=0)

    def R_GetEventTrail(
        self, call: Call, request: R_GetEventTrailRequest
    ) -> R_GetEventTrailResponse:
        """What happened to a message, in order (Opnum 8)."""
        require_administrator(call.identity)
        wanted = MessageIdentifier(request.pMessageId.Lineage, request.pMessageId.Uniquifier)
        events = [_event(event) for event in islice(self._maintenance.trail(wanted), MOST_EVENTS)]
        return R_GetEventTrailResponse(pcEvents=len(events), ppEvents=events, result=0)

    async def R_ImportMessage(
        self, call: Call, request: R_ImportMessageRequest
    ) -> R_ImportMessageResponse:
        """Put a message that was exported into a queue, as it was (Opnum 9)."""
        require_administrator(call.identity)
        name = format_name_of(request.pQueueFormat)
        key = await self._maintenance.import_message(name, bytes(request.pPacket))
        return R_ImportMessageResponse(pLookupId=key, result=0)

    async def R_FindMessage(
        self, call: Call, request: R_FindMessageRequest
    ) -> R_FindMessageResponse:
        """Where a message and its copies are (Opnum 10)."""
        require_administrator(call.identity)
        wanted = MessageIdentifier(request.pMessageId.Lineage, request.pMessageId.Uniquifier)
        places = [_place(place) for place in await self._maintenance.find_message(wanted)]
        return R_FindMessageResponse(pcPlaces=len(places), ppPlaces=places, result=0)

    def R_ListPublicQueues(
        self, call: Call, request: R_ListPublicQueuesRequest
    ) -> R_ListPublicQueuesResponse:
        """The public queues that are known, of all machines (Opnum 11)."""
        require_administrator(call.identity)
        found = [_public_queue(queue) for queue in self._maintenance.public_queues()]
        return R_ListPublicQueuesResponse(pcQueues=len(found), ppQueues=found, result=0)

    async def R_CreatePublicQueue(self, call: Call, request: R_CreatePublicQueueRequest) -> HResult:
        """Create a public queue, once it is published and durable (Opnum 12)."""
        require_administrator(call.identity)
        attributes = attributes_of(request.aProp, request.apVar, creating=True)
        attributes.pop("pathname", None)
        if request.pSecurityDescriptor is not None:
            attributes["security"] = request.pSecurityDescriptor
        path = request.pwszPathName
        await self._maintenance.create_public_queue(path, attributes, call.identity)
        return HResult.MQ_OK

    def R_ListOutgoingQueues(
        self, call: Call, request: R_ListOutgoingQueuesRequest
    ) -> R_ListOutgoingQueuesResponse:
        """The queues to other queue managers, also those that are not active (Opnum 13)."""
        require_administrator(call.identity)
        names: list[str | None] = list(self._maintenance.outgoing_queues())
        found = CALPWSTR(cElems=len(names), pElems=names)
        return R_ListOutgoingQueuesResponse(pNames=found, result=0)

    def R_ListExposedQueues(
        self, call: Call, request: R_ListExposedQueuesRequest
    ) -> R_ListExposedQueuesResponse:
        """Name the queues that Anonymous owns, or may read (Opnum 14)."""
        require_administrator(call.identity)
        names: list[str | None] = list(self._maintenance.exposed_queues())
        found = CALPWSTR(cElems=len(names), pElems=names)
        return R_ListExposedQueuesResponse(pNames=found, result=0)

    def R_GetQueueStatus(
        self, call: Call, request: R_GetQueueStatusRequest
    ) -> R_GetQueueStatusResponse:
        """What all queues do (Opnum 17)."""
        require_administrator(call.identity)
        found = [_status(status) for status in self._maintenance.queue_statuses()]
        return R_GetQueueStatusResponse(
            pNow=self._maintenance.now(),
            pStarted=self._maintenance.started,
            pcQueues=len(found),
            ppQueues=found,
            result=0,
        )

    def R_GetMachineSecurity(
        self, call: Call, request: R_GetMachineSecurityRequest
    ) -> R_GetMachineSecurityResponse:
        """Tell the security descriptor of the queue manager itself (Opnum 15)."""
        parts = request.RequestedInformation
        descriptor = self._maintenance.machine_security(parts, call.identity)
        return R_GetMachineSecurityResponse(
            pcbDescriptor=len(descriptor), ppDescriptor=descriptor, result=0
        )

    def R_SetMachineSecurity(
        self, call: Call, request: R_SetMachineSecurityRequest
    ) -> Completion[None]:
        """Change the security descriptor of the queue manager itself (Opnum 16)."""
        return self._maintenance.set_machine_security(
            request.SecurityInformation, bytes(request.pDescriptor), call.identity
        )


def _place(place: MessageLocation) -> PLACE:
    return PLACE(
        LookupId=place.lookup_identifier,
        Arrived=place.arrived,
        State=place.whereabouts,
        pwszQueue=place.queue,
        pwszLabel=place.label,
    )


def _public_queue(queue: PublicQueueView) -> PUBLIC_QUEUE:
    return PUBLIC_QUEUE(
        pwszPathName=queue.path_name,
        pwszFormatName=queue.format_name,
        pwszLabel=queue.label,
        fHere=queue.here,
        fFixed=queue.fixed,
    )


def _event(event: TrailEvent) -> TRAIL_EVENT:
    return TRAIL_EVENT(
        Time=event.time,
        LookupId=event.lookup_identifier,
        Happening=event.happening,
        pwszQueue=event.queue,
        pwszDetail=event.detail,
    )


def _texts(array: CALPWSTR) -> list[str]:
    """The texts of an array that may have null pointers in it."""
    return [text for text in array.pElems or () if text is not None]


def _structure(account: AccountView) -> ACCOUNT:
    groups: list[str | None] = list(account.groups)
    return ACCOUNT(
        pwszName=account.name,
        pwszSid=account.sid,
        Groups=CALPWSTR(cElems=len(groups), pElems=groups),
    )


def _status(status: QueueStatus) -> QUEUE_STATUS:
    return QUEUE_STATUS(
        pwszName=status.name,
        Messages=status.messages,
        Bytes=status.bytes,
        Entered=status.entered,
        Left=status.left,
        Oldest=status.oldest,
        OpenHandles=status.open_handles,
        WaitingReaders=status.waiting_readers,
        fOpenToAll=status.open_to_all,
    )
