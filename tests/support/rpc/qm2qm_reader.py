"""A client of qm2qm in tests: the supporting server's side of a remote read."""

from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.qm2qm import REMOTEREADDESC, REMOTEREADDESC2
from rpcqm.interfaces import qm2qm, qmcomm
from rpcqm.interfaces._authentication import CallAdmission, RemoteReadSecurity
from rpcqm.rpc.limits import Limits
from rpcqm.service import interfaces
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import Caller, CallServer, PendingCall, Served
from tests.support.rpc.dependent_client import Client, create_remote_cursor, open_remote
from tests.support.rpc.remote_reader import CLIENT, RECEIVE, RECEIVE_ACCESS, status_name


def served_qm2qm(
    qm: RunningQueueManager,
    security: RemoteReadSecurity | None = None,
    limits: Limits | None = None,
) -> CallServer:
    """qmcomm and qm2qm on a queue manager, with the ports 2103 and 2105."""
    handles = interfaces.client_handles(qm.engine, admission=CallAdmission(security))
    comm = interfaces.qmcomm(qm.engine, handles, lambda: 2103, lambda: 2105)
    reading = interfaces.qm2qm(qm.engine, handles, lambda: 2103, lambda: 2105)
    return CallServer(
        qm,
        Served("qmcomm", comm, qmcomm.POLICY),
        Served("qm2qm", reading, qm2qm.POLICY),
        limits=limits,
    )


class Qm2QmReader:
    """The calls of one connection."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._requests = 500

    def open_by_qmcomm(
        self, name: Queue | FormatName | str, access: int = RECEIVE_ACCESS, share: int = 0
    ) -> Any:
        """R_QMOpenRemoteQueue; its response."""
        return open_remote(Client(self.caller), name, access, share)

    def adopt(self, number: int, **fields: Any) -> Any:
        """RemoteQMOpenQueue; its response."""
        values: dict[str, Any] = {
            "pLicGuid": CLIENT,
            "dwMQS": 0,
            "hQueue": number,
            "pQueue": number,
            "dwpContext": number,
        }
        return self.caller.call("RemoteQMOpenQueue", **values | fields)

    def open(
        self, name: Queue | FormatName | str, access: int = RECEIVE_ACCESS
    ) -> tuple[int, bytes]:
        """The number and the session handle of an open queue."""
        opened = self.open_by_qmcomm(name, access)
        assert status_name(opened.result) == "MQ_OK"
        adopted = self.adopt(opened.phQueue)
        assert status_name(adopted.result) == "MQ_OK"
        self.caller.call("R_QMCloseRemoteQueueContext", pphContext=opened.pphContext)
        return opened.phQueue, bytes(adopted.phContext)

    def cursor(self, number: int) -> int:
        response = create_remote_cursor(Client(self.caller), number)
        assert response.result == 0
        return int(response.phCursor)

    def description(
        self, number: int, action: int, request_id: int | None = None, **fields: Any
    ) -> REMOTEREADDESC:
        self._requests += 1
        values: dict[str, Any] = {
            "hRemoteQueue": number,
            "dwQueue": number,
            "ulAction": action,
            "dwRequestID": self._requests if request_id is None else request_id,
        }
        return REMOTEREADDESC(**values | fields)

    def start(self, number: int, action: int = RECEIVE, **fields: Any) -> PendingCall:
        """Send RemoteQMStartReceive2."""
        inner = self.description(number, action, **fields)
        outer = REMOTEREADDESC2(pRemoteReadDesc=inner)
        return self.caller.send("RemoteQMStartReceive2", lpRemoteReadDesc2=outer)

    def read(self, number: int, action: int = RECEIVE, **fields: Any) -> Any:
        """RemoteQMStartReceive2 that need not wait; its response."""
        call = self.start(number, action, **fields)
        self.caller.settle()
        return call.result()

    def read_old(self, number: int, action: int = RECEIVE, **fields: Any) -> Any:
        """RemoteQMStartReceive; its response."""
        description = self.description(number, action, **fields)
        return self.caller.call("RemoteQMStartReceive", lpRemoteReadDesc=description)

    def read_by_id(self, number: int, action: int, identifier: int, **fields: Any) -> Any:
        """RemoteQMStartReceiveByLookupId; its response."""
        inner = self.description(number, action, **fields)
        return self.caller.call(
            "RemoteQMStartReceiveByLookupId",
            LookupId=identifier,
            lpRemoteReadDesc2=REMOTEREADDESC2(pRemoteReadDesc=inner),
        )

    def end(self, handle: bytes, acknowledgement: int = 2) -> str:
        response = self.caller.call("RemoteQMEndReceive", pphContext=handle, dwAck=acknowledgement)
        assert response.pphContext == bytes(20)
        return status_name(response.result)

    def cancel(self, number: int, request_id: int, second: int | None = None) -> str:
        fields = {"pQueue": number if second is None else second, "dwRequestID": request_id}
        return self.status("RemoteQMCancelReceive", hQueue=number, **fields)

    def close(self, handle: bytes) -> str:
        response = self.caller.call("RemoteQMCloseQueue", pphContext=handle)
        assert response.result or response.pphContext == bytes(20)
        return status_name(response.result)

    def status(self, operation: str, **fields: Any) -> str:
        """The name of what a call returns."""
        return status_name(self.caller.call(operation, **fields).result)


def description_in(response: Any) -> REMOTEREADDESC:
    """The REMOTEREADDESC of the response to any kind of read."""
    if hasattr(response, "lpRemoteReadDesc"):
        inner = response.lpRemoteReadDesc
    else:
        inner = response.lpRemoteReadDesc2.pRemoteReadDesc
    assert isinstance(inner, REMOTEREADDESC)
    return inner


def body_or_status(response: Any) -> bytes:
    """The body of the message that was read, or its status as bytes of its name."""
    if response.result:
        return status_name(response.result).encode()
    inner = description_in(response)
    assert inner.lpBuffer is not None
    assert len(inner.lpBuffer) == inner.dwSize
    return bytes(UserMessage(inner.lpBuffer).body)
