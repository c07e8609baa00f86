"""A client of qmcomm, qmcomm2, qmmgmt and rpcqm_admin in tests."""

from typing import Any
from uuid import UUID

from rpcqm.adm.queue import Queue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import PropVariant, QueueProperty
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.mqmq import OBJECTID, PROPVARIANT, QUEUE_FORMAT, XACTUOW
from rpcqm.codec.types.qmcomm import (
    OBJECT_FORMAT,
    CACCreateRemoteCursor,
    CACTransferBufferV1,
    CACTransferBufferV1_Receive,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
    OBJECT_FORMAT_u,
)
from rpcqm.interfaces import qmcomm, qmcomm2, qmmgmt, sending
from rpcqm.interfaces._authentication import CallAdmission, RemoteReadSecurity
from rpcqm.rpc.limits import Limits
from rpcqm.service import interfaces
from tests.support.binary.binary_network import Node
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import Caller, CallServer, PendingCall, Served, shortened
from tests.support.rpc.remote_reader import CLIENT, format_of, status_name

RECEIVE_ACCESS, SEND_ACCESS, PEEK_ACCESS = 0x01, 0x02, 0x20
NULL_GUID = UUID(int=0)


def served_clients(
    qm: RunningQueueManager | Node,
    security: RemoteReadSecurity | None = None,
    limits: Limits | None = None,
) -> CallServer:
    """qmcomm, qmcomm2, qmmgmt and rpcqm_sending, with the ports 2103 and 2105."""
    handles = interfaces.client_handles(qm.engine, admission=CallAdmission(security))
    comm = interfaces.qmcomm(qm.engine, handles, lambda: 2103, lambda: 2105)
    return CallServer(
        qm,
        Served("qmcomm", comm, qmcomm.POLICY),
        shortened(qm, "qmcomm2", interfaces.qmcomm2(qm.engine, handles), qmcomm2.POLICY),
        Served("qmmgmt", interfaces.qmmgmt(qm.engine), qmmgmt.POLICY),
        Served("rpcqm_sending", interfaces.sending(qm.engine, handles), sending.POLICY),
        limits=limits,
    )


def object_of(name: Queue | FormatName | str) -> OBJECT_FORMAT:
    """The OBJECT_FORMAT of a queue here, or of a format name."""
    return OBJECT_FORMAT(ObjType=1, u=OBJECT_FORMAT_u(1, format_of(name)))


def variants(*values: PropVariant) -> list[PROPVARIANT]:
    return [propvariant_of(value) for value in values]


class Client:
    """The calls of one connection."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def status(self, operation: str, **fields: Any) -> str:
        """The name of what a call returns."""
        return status_name(self.caller.call(operation, **fields).result)

    # Objects

    def create(
        self,
        path: str,
        properties: dict[QueueProperty, PropVariant | Any] | None = None,
        descriptor: bytes | None = None,
        **fields: Any,
    ) -> str:
        """R_QMCreateObjectInternal; a plain value has its property's own type."""
        given = properties or {QueueProperty.PROPID_Q_LABEL: "label"}
        values = {
            "dwObjectType": 1,
            "lpwcsPathName": path,
            "SDSize": len(descriptor or b""),
            "pSecurityDescriptor": descriptor,
            "cp": len(given),
            "aProp": list(given),
            "apVar": _values(given),
        }
        return self.status("R_QMCreateObjectInternal", **values | fields)

    def set_properties(
        self, name: Queue | str, properties: dict[QueueProperty, PropVariant | Any]
    ) -> str:
        return self.status(
            "R_QMSetObjectProperties",
            pObjectFormat=object_of(name),
            cp=len(properties),
            aProp=list(properties),
            apVar=_values(properties),
        )

    def get_properties(
        self, name: Queue | str, *identifiers: int, given: PropVariant | None = None
    ) -> Any:
        """R_QMGetObjectProperties; the variants, or the name of its status."""
        structure = propvariant_of(given or PropVariant.of(1))
        response = self.caller.call(
            "R_QMGetObjectProperties",
            pObjectFormat=object_of(name),
            cp=len(identifiers),
            aProp=list(identifiers),
            apVar=[structure for _ in identifiers],
        )
        if response.result:
            return status_name(response.result)
        return [variant_of(value) for value in response.apVar]

    # Handles

    def send_open(
        self, name: Queue | FormatName | QUEUE_FORMAT | str, access: int, **fields: Any
    ) -> Any:
        """rpc_QMOpenQueueInternal; its response."""
        values = {
            "pQueueFormat": name if isinstance(name, QUEUE_FORMAT) else format_of(name),
            "dwDesiredAccess": access,
            "dwShareMode": 0,
            "hRemoteQueue": 0,
            "lplpRemoteQueueName": None,
            "dwpQueue": 0,
            "pLicGuid": CLIENT,
            "lpClientName": "CLIENT",
            "dwRemoteProtocol": 0,
            "dwpRemoteContext": 0,
        }
        return self.caller.call("rpc_QMOpenQueueInternal", **values | fields)

    def open(
        self, name: Queue | FormatName | str, access: int = RECEIVE_ACCESS, **fields: Any
    ) -> tuple[bytes, int]:
        """The context handle and the queue context of an open queue."""
        response = self.send_open(name, access, **fields)
        assert status_name(response.result) == "MQ_OK"
        assert response.lplpRemoteQueueName is None
        return bytes(response.phQueue), int(response.pdwQMContext)

    def close(self, handle: bytes) -> str:
        return self.status("rpc_ACCloseHandle", phQueue=handle)

    def cursor(self, handle: bytes) -> int:
        pcc = CACCreateRemoteCursor()
        response = self.caller.call("rpc_ACCreateCursorEx", hQueue=handle, pcc=pcc)
        assert response.result == 0
        return int(response.pcc.hCursor)

    def enlist(self, identifier: bytes) -> bytes:
        uow = XACTUOW(rgb=identifier)
        response = self.caller.call("R_QMEnlistInternalTransaction", pUow=uow)
        assert response.result == 0
        return bytes(response.phIntXact)

    # Messages

    def start_send(self, handle: bytes, body: bytes = b"", **fields: Any) -> PendingCall:
        buffer = sending_buffer(body, **fields)
        identifier = OBJECTID(Lineage=NULL_GUID)
        return self.caller.send(
            "rpc_ACSendMessageEx", hQueue=handle, ptb=buffer, pMessageID=identifier
        )

    def send(self, handle: bytes, body: bytes = b"", **fields: Any) -> Any:
        """rpc_ACSendMessageEx, durable; its response."""
        call = self.start_send(handle, body, **fields)
        self.caller.settle()
        return call.result()

    def sent(self, handle: bytes, body: bytes = b"", **fields: Any) -> str:
        return status_name(self.send(handle, body, **fields).result)

    def start_receive(self, context: int, buffer: CACTransferBufferV2) -> PendingCall:
        return self.caller.send("rpc_ACReceiveMessageEx", hQMContext=context, ptb=buffer)

    def receive(self, context: int, buffer: CACTransferBufferV2) -> tuple[str, Any]:
        """rpc_ACReceiveMessageEx; the name of its status, and the buffer."""
        call = self.start_receive(context, buffer)
        self.caller.settle()
        response = call.result()
        return status_name(response.result), response.ptb


def _values(properties: dict[QueueProperty, PropVariant | Any]) -> list[PROPVARIANT]:
    return [
        propvariant_of(value if isinstance(value, PropVariant) else identifier.variant(value))
        for identifier, value in properties.items()
    ]


def sending_buffer(
    body: bytes = b"", send: CACTransferBufferV1_Send | None = None, **fields: Any
) -> CACTransferBufferV2:
    """A recoverable message that lives for ever, unless the fields say otherwise."""
    values: dict[str, Any] = {"ulRelativeTimeToLive": 0xFFFFFFFF, "pDelivery": 1}
    if body:
        values |= {
            "ppBody": body,
            "ulBodyBufferSizeInBytes": len(body),
            "ulAllocBodyBufferInBytes": len(body),
        }
    old = CACTransferBufferV1(
        uTransferType=0,
        u=CACTransferBufferV1_u(0, send or CACTransferBufferV1_Send()),
        **values | fields,
    )
    return CACTransferBufferV2(old=old)


def receiving_buffer(
    size: int | None = 64,
    *,
    action: int = 0,
    timeout: int = 0,
    cursor: int = 0,
    names: dict[str, Any] | None = None,
    **fields: Any,
) -> CACTransferBufferV2:
    """A buffer for a body of `size` bytes; `names` are fields of its Receive arm."""
    receive = CACTransferBufferV1_Receive(
        RequestTimeout=timeout, Action=action, Cursor=cursor, **names or {}
    )
    values: dict[str, Any] = {}
    if size is not None:
        values = {
            "ppBody": bytes(size),
            "ulBodyBufferSizeInBytes": size,
            "ulAllocBodyBufferInBytes": size,
            "pBodySize": 0,
        }
    old = CACTransferBufferV1(
        uTransferType=1, u=CACTransferBufferV1_u(1, receive), **values | fields
    )
    return CACTransferBufferV2(old=old)


def body_in(buffer: CACTransferBufferV2) -> bytes:
    """The body that was received."""
    body = buffer.old.ppBody
    assert isinstance(body, bytes)
    return body[: buffer.old.pBodySize]


def open_remote(client: Client, name: Any, access: int = RECEIVE_ACCESS, share: int = 0) -> Any:
    """R_QMOpenRemoteQueue; its response."""
    return client.caller.call(
        "R_QMOpenRemoteQueue",
        pQueueFormat=None if name is None else format_of(name),
        dwCallingProcessID=0,
        dwDesiredAccess=access,
        dwShareMode=share,
        pLicGuid=CLIENT,
        dwMQS=0x400,
    )


def create_remote_cursor(client: Client, number: int) -> Any:
    """R_QMCreateRemoteCursor; its response."""
    ignored = CACTransferBufferV1(
        uTransferType=2, u=CACTransferBufferV1_u(2, CACCreateRemoteCursor())
    )
    return client.caller.call("R_QMCreateRemoteCursor", ptb1=ignored, hQueue=number)
