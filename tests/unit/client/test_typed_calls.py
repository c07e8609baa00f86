"""What a request says of its call, and what the IDL says of calling once more."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.client.maintenance import MaintenanceClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queues import QueuesClient
from rpcqm.client.sending import QueueSender
from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.interface import load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types import qmcomm, remoteread
from tests.support.rpc.scripted import Scripted

REPEATABLE = """
    R_BulkCount R_BulkList R_BulkRead R_BulkSearch R_BulkSizes R_ExplainAccess R_GetClusterStatus
    R_GetInFlight
    R_GetJournalBounds R_GetMaxDeliveries
    R_GetOverview R_GetQuotaUses R_GetRenamedQueue R_GetServerPort R_GetWay R_ListAccounts
    R_LookUpAccounts
    R_ListConnections R_ListOpened R_ListScheduledMessages R_ListTokens R_ListTriggers R_OpenQueue
    R_OpenQueueForMove
    R_QMGetObjectProperties
    R_QMGetObjectSecurityInternal R_QMGetRTQMServerPort R_QMMgmtGetInfo
    R_QMObjectPathToObjectFormat R_QMOpenRemoteQueue R_QMQueryQMRegistryInternal
    R_SearchMessages RemoteQMGetQMQMServerPort RemoteQmGetVersion
"""
HARMLESS = """
    R_BulkOpen R_CancelReceive R_CloseCursor R_CloseQueue R_CreateCursor R_SetDeadLetterQueue
    R_StartReceive
    RemoteQMCancelReceive RemoteQMCloseCursor RemoteQMCloseQueue RemoteQMOpenQueue
    RemoteQMStartReceive RemoteQMStartReceive2 RemoteQMStartReceiveByLookupId rpc_ACCloseCursor
    rpc_ACCloseHandle rpc_ACCreateCursorEx rpc_ACHandleToFormatName rpc_QMOpenQueueInternal
"""
BY_NUMBER = """
    R_SetDeadLetterQueue RemoteQMCancelReceive RemoteQMCloseCursor RemoteQMPurgeQueue
    RemoteQMStartReceive RemoteQMStartReceive2 RemoteQMStartReceiveByLookupId
"""
NAME = FormatName.parse(r"DIRECT=OS:mail\private$\orders")


@pytest.mark.parametrize(
    ("mark", "names"),
    [("repeatable", REPEATABLE), ("harmless", HARMLESS), ("by_number", BY_NUMBER)],
)
def test_the_idl_marks_exactly_the_calls_that_deserve_it(mark: str, names: str) -> None:
    marked = [
        operation.name
        for name in idl_names()
        for interface in load_idl(name).interfaces.values()
        for operation in interface.operations
        if operation is not None and mark in operation.attributes
    ]
    assert sorted(marked) == sorted(names.split())


def test_a_request_names_its_interface_and_its_operation() -> None:
    kind = remoteread.R_CloseQueueRequest
    assert kind.interface_name == "remoteread"
    assert kind.operation is load("remoteread").operation("R_CloseQueue").declaration
    assert qmcomm.rpc_ACCloseHandleRequest.interface_name == "qmcomm"


async def send(connections: Scripted) -> None:
    connections.answers |= {
        "rpc_QMOpenQueueInternal": SimpleNamespace(phQueue=b"1", pdwQMContext=1),
        "rpc_ACSendMessageEx": SimpleNamespace(pMessageID=None),
    }
    async with QueueSender(connections, NAME) as sender:
        await sender.send(OutgoingMessage(b"x"))


async def ask_for_a_format_name(connections: Scripted) -> None:
    nothing = SimpleNamespace(u=SimpleNamespace(value=None))
    connections.answers["R_QMObjectPathToObjectFormat"] = SimpleNamespace(pObjectFormat=nothing)
    await QueuesClient(connections).format_name(PathName.parse(r".\private$\orders"))


async def ask_for_a_descriptor(connections: Scripted) -> None:
    connections.answers["R_GetMachineSecurity"] = SimpleNamespace(ppDescriptor=None)
    await MaintenanceClient(connections).security()


@pytest.mark.parametrize("work", [send, ask_for_a_format_name, ask_for_a_descriptor])
def test_an_answer_without_what_was_asked_for_cannot_be_read(
    work: Callable[[Scripted], Awaitable[None]],
) -> None:
    async def main() -> None:
        await work(Scripted())

    with pytest.raises(DecodeError, match="lacks"):
        asyncio.run(main())
