"""A client of RemoteRead in tests: the calls with the arguments that most tests want."""

from typing import Any
from uuid import UUID

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, NtStatus
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.mqmq import QUEUE_FORMAT, XACTUOW
from rpcqm.interfaces import remote_read
from rpcqm.interfaces.remote_read import CallAdmission, RemoteReadSecurity
from rpcqm.service import interfaces
from tests.support.binary.binary_network import Node
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import Caller, CallServer, PendingCall, shortened

CLIENT = UUID("6f2b7a53-0c1d-4c5e-9d11-1c2b3a4d5e6f")
RECEIVE_ACCESS, MOVE_ACCESS, PEEK_ACCESS = 0x01, 0x04, 0x20
RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
LOOKUP_PEEK_CURRENT, LOOKUP_PEEK_NEXT, LOOKUP_PEEK_PREV = 0x40000010, 0x40000011, 0x40000012
LOOKUP_RECEIVE_CURRENT, LOOKUP_RECEIVE_NEXT, LOOKUP_RECEIVE_PREV = (
    0x40000020,
    0x40000021,
    0x40000022,
)
NACK, ACK = 1, 2
INFINITE = 0xFFFFFFFF
SEQUENCE = (1 << 56) - 1
NO_TRANSACTION = bytes(16)
NULL_HANDLE = bytes(20)


def served_remote_read(
    qm: RunningQueueManager | Node, security: RemoteReadSecurity | None = None
) -> CallServer:
    """RemoteRead on a queue manager, its port being 2103."""
    handlers = interfaces.remote_read(qm.engine, CallAdmission(security), lambda: 2103)
    return CallServer(qm, shortened(qm, "remoteread", handlers, remote_read.POLICY))


def format_of(name: Queue | FormatName | str) -> QUEUE_FORMAT:
    """The QUEUE_FORMAT of a queue here, or of a format name."""
    if isinstance(name, Queue):
        name = f"DIRECT=OS:{name.pathname}"
    return queue_format_of(FormatName.parse(name) if isinstance(name, str) else name)


def status_name(status: int) -> str:
    """The name of a result, like MQ_OK."""
    try:
        return HResult(status).name
    except ValueError:
        return NtStatus(status).name


class Reader:
    """The RemoteRead calls of one connection."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._requests = 100

    def open(
        self,
        name: Queue | FormatName | str,
        access: int = RECEIVE_ACCESS,
        share_mode: int = 0,
        workgroup: int = 1,
    ) -> bytes:
        """The context handle; raises Fault."""
        response = self.caller.call(
            "R_OpenQueue", **self._opening(name, access, share_mode, workgroup)
        )
        return bytes(response.pphContext)

    def open_for_move(
        self, name: Queue | FormatName | str, access: int = MOVE_ACCESS, share_mode: int = 0
    ) -> tuple[int, bytes]:
        """The move context and the context handle; raises Fault."""
        fields = self._opening(name, access, share_mode, 1)
        response = self.caller.call("R_OpenQueueForMove", **fields)
        return response.pMoveContext, bytes(response.pphContext)

    @staticmethod
    def _opening(
        name: Queue | FormatName | str, access: int, share_mode: int, workgroup: int
    ) -> dict[str, Any]:
        return {
            "pQueueFormat": format_of(name),
            "dwAccess": access,
            "dwShareMode": share_mode,
            "pClientId": CLIENT,
            "fNonRoutingServer": 1,
            "Major": 6,
            "Minor": 1,
            "BuildNumber": 7601,
            "fWorkgroup": workgroup,
        }

    def start(
        self,
        handle: bytes,
        action: int = RECEIVE,
        *,
        timeout: int = 0,
        lookup_identifier: int = 0,
        cursor: int = 0,
        request_id: int | None = None,
        maximum_body: int = INFINITE,
        transaction: bytes | None = None,
    ) -> PendingCall:
        """Send R_StartReceive, or with `transaction` R_StartTransactionalReceive."""
        self._requests += 1
        fields: dict[str, Any] = {
            "phContext": handle,
            "LookupId": lookup_identifier,
            "hCursor": cursor,
            "ulAction": action,
            "ulTimeout": timeout,
            "dwRequestId": self._requests if request_id is None else request_id,
            "dwMaxBodySize": maximum_body,
            "dwMaxCompoundMessageSize": INFINITE,
        }
        if transaction is None:
            return self.caller.send("R_StartReceive", **fields)
        identifier = XACTUOW(rgb=transaction)
        return self.caller.send("R_StartTransactionalReceive", pTransactionId=identifier, **fields)

    def read(self, handle: bytes, action: int = RECEIVE, **arguments: Any) -> Any:
        """The response of a read that need not wait."""
        call = self.start(handle, action, **arguments)
        self.caller.settle()
        return call.result()

    def body(self, handle: bytes, action: int = RECEIVE, **arguments: Any) -> bytes:
        """The body of the message that is read, or its status as bytes of its name."""
        response = self.read(handle, action, **arguments)
        return body_of(response) if response.result == 0 else status_name(response.result).encode()

    def status(self, operation: str, **fields: Any) -> str:
        """The name of what a call returns."""
        return status_name(self.caller.call(operation, **fields).result)

    def end(self, handle: bytes, request_id: int, acknowledgement: int = ACK) -> str:
        return self.status(
            "R_EndReceive", phContext=handle, dwAck=acknowledgement, dwRequestId=request_id
        )

    def receive(self, handle: bytes, **arguments: Any) -> bytes:
        """A whole receive: start and positive end."""
        body = self.body(handle, request_id=7, **arguments)
        assert self.end(handle, 7) == "MQ_OK"
        return body

    def cancel(self, handle: bytes, request_id: int) -> str:
        return self.status("R_CancelReceive", phContext=handle, dwRequestId=request_id)

    def close(self, handle: bytes) -> str:
        response = self.caller.call("R_CloseQueue", pphContext=handle)
        assert response.result or response.pphContext == NULL_HANDLE
        return status_name(response.result)

    def cursor(self, handle: bytes) -> int:
        response = self.caller.call("R_CreateCursor", phContext=handle)
        assert response.result == 0
        return int(response.phCursor)

    def move(
        self, handle: bytes, context: int, lookup_identifier: int, transaction: bytes = bytes(16)
    ) -> str:
        return self.status(
            "R_MoveMessage",
            phContextFrom=handle,
            ullContextTo=context,
            LookupId=lookup_identifier,
            pTransactionId=XACTUOW(rgb=transaction),
        )


def packet_of(response: Any) -> bytes:
    """The whole Message Packet: each section at the sum of the SectionSizeAlloc before it."""
    sections = response.ppPacketSections or []
    assert len(sections) == response.pdwNumberOfSections
    parts = []
    for section in sections:
        assert len(section.pSectionBuffer) == section.SectionSize <= section.SectionSizeAlloc
        parts.append(section.pSectionBuffer.ljust(section.SectionSizeAlloc, b"\0"))
    return b"".join(parts)


def body_of(response: Any) -> bytes:
    """The body in a response; of a cut one, the part that came."""
    packet = UserMessage(packet_of(response))
    first = response.ppPacketSections[0]
    withheld = first.SectionSizeAlloc - first.SectionSize
    return packet.body[: packet.body_size - withheld]
