"""A session of RemoteRead and qmmgmt whose PDUs, NTLM and endpoint mapping are impacket's.

python -m tests.support.rpc.impacket_session LEVEL USER PASSWORD QUEUE

The endpoint mapper is at port 135 of 127.0.0.1; QUEUE is the name of a private queue that holds
three messages, the third a large one. LEVEL is an authentication level; 1 is no
authentication. A USER with an @REALM logs on by Kerberos, with the tickets that KRB5CCNAME names.
"""

import struct
import sys
import uuid
from typing import Any

from impacket.dcerpc.v5 import epm, transport
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_GSS_NEGOTIATE, DCERPCException
from impacket.uuid import uuidtup_to_bin

from rpcqm.codec.interface import Interface, TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.properties import NULL_VARIANT, ManagementQueueProperty
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from tests.support.rpc.kdc import HOST as SERVICE_HOST

HOST = "127.0.0.1"
RECEIVE_ACCESS, MOVE_ACCESS, DENY_NONE = 1, 4, 0
RECEIVE, PEEK_CURRENT, PEEK_NEXT = 0, 0x80000000, 0x80000001
LOOKUP_PEEK_NEXT, LOOKUP_RECEIVE_CURRENT = 0x40000011, 0x40000020
WHOLE = 1 << 20
ACK, NACK = 2, 1
MGMT_MACHINE, MGMT_QUEUE = 1, 2
CLIENT = uuid.UUID("52706351-6d00-4000-8000-000000000001")
_RESULT = struct.Struct("<I")


class Session:
    """An impacket connection on which stubs of one interface are sent."""

    def __init__(self, interface: Interface, level: int, user: str, password: str) -> None:
        self._interface = interface
        major, minor = interface.version
        identity = uuidtup_to_bin((str(interface.uuid), f"{major}.{minor}"))
        binding = epm.hept_map(HOST, identity, protocol="ncacn_ip_tcp")
        rpc = transport.DCERPCTransportFactory(binding)
        name, _, realm = user.partition("@")
        if level > 1:
            rpc.set_credentials(name, "" if realm else password, realm)
        if realm:
            rpc.setRemoteName(SERVICE_HOST)
            rpc.set_kerberos(True)
        self._dce = rpc.get_dce_rpc()
        self._dce.set_auth_level(level)
        if realm:
            self._dce.set_auth_type(RPC_C_AUTHN_GSS_NEGOTIATE)
        self._dce.connect()
        self._dce.bind(identity)

    def call(self, name: str, **parameters: Any) -> Any:
        """The decoded response, or None when the call ended with a fault."""
        operation = self._interface.operation(name)
        stub = operation.encode_request(TransferSyntax.NDR, operation.request_class(**parameters))
        self._dce.call(operation.opnum, stub)
        try:
            answer: bytes = self._dce.recv()
        except DCERPCException as fault:
            # impacket raises for results that it takes for errors, and for faults.
            packet = getattr(fault, "packet", None)
            print(name, fault, packet)
            return None
        return operation.decode_response(TransferSyntax.NDR, answer)

    def close(self) -> None:
        self._dce.disconnect()


def lookup_identifier(received: Any) -> int:
    """The priority of the message read, which its packet has, over its sequence number."""
    priority: int = received.ppPacketSections[0].pSectionBuffer[2] & 7
    sequence: int = received.pSequenceId
    return 7 - priority << 56 | sequence


class RemoteReader:
    """What a remote reader does, step by step."""

    def __init__(self, session: Session, queue: str) -> None:
        self._call = session.call
        self._name = f"DIRECT=TCP:{HOST}\\private$\\{queue}"
        self._request = 100

    def _open(self, name: str, method: str = "R_OpenQueue", access: int = RECEIVE_ACCESS) -> Any:
        return self._call(
            method,
            pQueueFormat=queue_format_of(FormatName.parse(name)),
            dwAccess=access,
            dwShareMode=DENY_NONE,
            pClientId=CLIENT,
            fNonRoutingServer=1,
            Major=6,
            Minor=1,
            BuildNumber=7601,
            fWorkgroup=1,
        )

    def _read(self, handle: bytes, action: int, lookup: int = 0, cursor: int = 0) -> Any:
        self._request += 1
        return self._call(
            "R_StartReceive",
            phContext=handle,
            LookupId=lookup,
            hCursor=cursor,
            ulAction=action,
            ulTimeout=0,
            dwRequestId=self._request,
            dwMaxBodySize=WHOLE,
            dwMaxCompoundMessageSize=WHOLE,
        )

    def _end(self, handle: bytes, ack: int) -> None:
        self._call("R_EndReceive", phContext=handle, dwAck=ack, dwRequestId=self._request)

    def run(self) -> None:
        """All of it."""
        self._call("R_GetServerPort")
        self._open(f"DIRECT=TCP:{HOST}\\private$\\there-is-none")
        handle = self._open(self._name).pphContext
        self._peeks(handle)
        self._receives(handle)
        self._move(handle)
        self._read(handle, PEEK_CURRENT)
        self._call("R_PurgeQueue", phContext=handle)
        self._read(handle, PEEK_CURRENT)
        self._call("R_CloseQueue", pphContext=handle)

    def _peeks(self, handle: bytes) -> None:
        first = self._read(handle, PEEK_CURRENT)
        self._read(handle, LOOKUP_PEEK_NEXT, lookup_identifier(first))
        cursor = self._call("R_CreateCursor", phContext=handle).phCursor
        for action in (PEEK_CURRENT, PEEK_NEXT, PEEK_NEXT, PEEK_NEXT):
            self._read(handle, action, cursor=cursor)
        self._call("R_CloseCursor", phContext=handle, hCursor=cursor)

    def _receives(self, handle: bytes) -> None:
        self._read(handle, RECEIVE)
        self._end(handle, NACK)
        self._read(handle, RECEIVE)
        self._end(handle, ACK)

    def _move(self, handle: bytes) -> None:
        target = self._open(f"{self._name};later", "R_OpenQueueForMove", MOVE_ACCESS)
        peeked = self._read(handle, PEEK_CURRENT)
        self._call(
            "R_MoveMessage",
            phContextFrom=handle,
            ullContextTo=target.pMoveContext,
            LookupId=lookup_identifier(peeked),
            pTransactionId=XACTUOW(rgb=bytes(16)),
        )
        self._read(handle, LOOKUP_RECEIVE_CURRENT, lookup_identifier(peeked))
        self._call("R_CloseQueue", pphContext=target.pphContext)


def manage(session: Session, queue: str) -> None:
    """Ask for what the queue's management tells."""
    properties = (
        ManagementQueueProperty.PROPID_MGMT_QUEUE_PATHNAME,
        ManagementQueueProperty.PROPID_MGMT_QUEUE_MESSAGE_COUNT,
    )
    name = FormatName.parse(f"DIRECT=OS:.\\private$\\{queue}")
    session.call(
        "R_QMMgmtGetInfo",
        pObjectFormat=MGMT_OBJECT(
            type=MGMT_QUEUE, u=MGMT_OBJECT_u(MGMT_QUEUE, queue_format_of(name))
        ),
        cp=len(properties),
        aProp=[int(each) for each in properties],
        apVar=[propvariant_of(NULL_VARIANT) for _ in properties],
    )


def main(level: int, user: str, password: str, queue: str) -> None:
    session = Session(load("remoteread"), level, user, password)
    RemoteReader(session, queue).run()
    session.close()
    session = Session(load("qmmgmt"), level, user, password)
    manage(session, queue)
    session.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
