"""What somebody tries who reaches a queue manager over the network and has no account.

python -m tests.support.network.network_stranger HOST READY-FILE QUEUE

READY-FILE says where the doors are, QUEUE is the short name of a queue with default permissions.
Prints a JSON object: each attempt, and the name of what came of it.
"""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from impacket.dcerpc.v5 import mgmt, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException

from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.binary.ping import PING_PORT
from rpcqm.codec.packet.internal import PingFlags, PingPacket
from rpcqm.codec.properties import NULL_VARIANT, ManagementMachineProperty, QueueProperty
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from tests.support.binary.binary_stranger import STRANGER, BinaryStranger
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import Client, object_of, open_remote
from tests.support.rpc.network_caller import NetworkCaller, RefusedError
from tests.support.rpc.remote_reader import MOVE_ACCESS, PEEK_ACCESS, RECEIVE_ACCESS, Reader

SEND_ACCESS, DENY_RECEIVE = 2, 1
MACHINE = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0))

Attempt = tuple[str, Callable[[], Any]]


def outcome(attempt: Callable[[], Any]) -> str:
    """The name of what a call returned or threw."""
    try:
        answer = attempt()
    except Fault as fault:
        return named(fault.status)
    except (RefusedError, ConnectionError, TimeoutError, DCERPCException) as error:
        return f"{type(error).__name__}: {error}"
    return answer if isinstance(answer, str) else named(getattr(answer, "result", 0))


def named(status: int) -> str:
    for names in (FaultStatus, HResult, NtStatus):
        if status in names._value2member_map_:
            return names(status).name
    return f"0x{status:08X}"


def opened(reader: Reader, name: str, access: int, share: int = 0) -> None:
    """Open a queue by RemoteRead."""
    reader.open(name, access, share)


def opened_for_move(reader: Reader, name: str) -> None:
    """The same, to move messages into it."""
    reader.open_for_move(name, MOVE_ACCESS)


class Stranger:
    """Where the doors are, and what is tried at them."""

    def __init__(self, host: str, ready: dict[str, Any], queue: str) -> None:
        self._host = host
        self._ports = {listener: port for listener, (_, port) in ready["endpoints"].items()}
        self._computer = ready["name"]
        self._queue = queue
        self._name = f"DIRECT=TCP:{host}\\private$\\{queue}"

    def attempts(self) -> Iterator[Attempt]:
        """Everything that is tried."""
        yield from self._remote_read()
        for listener in ("rpc", "qm2qm"):
            yield from ((f"{name} at {listener}", each) for name, each in self._older(listener))
        yield from self._queues()
        yield from self._dependent()
        yield from self._management()
        yield "ping", self._ping
        yield "send by the binary protocol", self._send

    def _caller(self, *interfaces: str, listener: str = "rpc") -> NetworkCaller:
        return NetworkCaller((self._host, self._ports[listener]), *interfaces)

    def _remote_read(self) -> Iterator[Attempt]:
        reader = Reader(self._caller("remoteread").caller)
        for name, access in (("read", RECEIVE_ACCESS), ("peek", PEEK_ACCESS)):
            yield name, partial(opened, reader, self._name, access)
            yield f"{name} exclusively", partial(opened, reader, self._name, access, 1)
        yield "move", partial(opened_for_move, reader, self._name)
        yield "port of remoteread", lambda: reader.caller.call("R_GetServerPort") and "MQ_OK"

    def _older(self, listener: str) -> Iterator[Attempt]:
        caller = self._caller("qmcomm", "qm2qm", listener=listener)
        client = Client(caller.caller)
        yield "open to read", partial(open_remote, client, self._name, RECEIVE_ACCESS)
        yield "open to peek", partial(open_remote, client, self._name, PEEK_ACCESS)
        yield "lock", partial(open_remote, client, self._name, RECEIVE_ACCESS, DENY_RECEIVE)
        yield "purge", lambda: caller.call("RemoteQMPurgeQueue", hQueue=1)
        yield "version", lambda: caller.call("RemoteQmGetVersion") and "MQ_OK"

    def _queues(self) -> Iterator[Attempt]:
        client = Client(self._caller("qmcomm").caller)
        yield "create", lambda: client.create(f"{self._computer}\\private$\\mine")
        label: dict[QueueProperty, Any] = {QueueProperty.PROPID_Q_LABEL: "mine"}
        yield "change", lambda: client.set_properties(self._name, label)
        yield "show", lambda: str(client.get_properties(self._name, QueueProperty.PROPID_Q_LABEL))
        subject = object_of(self._name)
        yield "delete", lambda: client.status("R_QMDeleteObject", pObjectFormat=subject)
        yield (
            "own",
            lambda: client.status(
                "R_QMSetObjectSecurityInternal",
                pObjectFormat=subject,
                SecurityInformation=1,
                SDSize=20,
                pSecurityDescriptor=b"\1\0\0\x80" + bytes(16),
            ),
        )

    def _dependent(self) -> Iterator[Attempt]:
        client = Client(self._caller("qmcomm", "qmcomm2").caller)
        for name, access in (("receive", RECEIVE_ACCESS), ("send", SEND_ACCESS)):
            yield f"{name} as a dependent client", partial(client.send_open, self._name, access)

    def _management(self) -> Iterator[Attempt]:
        caller = self._caller("qmmgmt")
        asked = [int(ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES)]
        fields = {"cp": 1, "aProp": asked, "apVar": [propvariant_of(NULL_VARIANT)]}
        yield "list", lambda: caller.call("R_QMMgmtGetInfo", pObjectFormat=MACHINE, **fields)
        for action in ("DISCONNECT", "TIDY"):
            words = {"pObjectFormat": MACHINE, "lpwszAction": action}
            yield action, partial(caller.call, "R_QMMgmtAction", **words)
        for listener in ("rpc", "qm2qm", "epm"):
            yield f"administrate at {listener}", partial(self._administrate, listener)
            yield f"stop at {listener}", partial(self._stop, listener)

    def _administrate(self, listener: str) -> str:
        caller = self._caller("rpcqm_admin", listener=listener)
        return "MQ_OK" if caller.client.contexts else "not offered"

    def _stop(self, listener: str) -> None:
        binding = f"ncacn_ip_tcp:{self._host}[{self._ports[listener]}]"
        dce = transport.DCERPCTransportFactory(binding).get_dce_rpc()
        dce.connect()
        dce.bind(mgmt.MSRPC_UUID_MGMT)
        mgmt.hstop_server_listening(dce)

    def _ping(self) -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            plain.settimeout(1)
            plain.connect((self._host, PING_PORT))
            plain.send(PingPacket.of(STRANGER, 1, PingFlags(0)))
            with suppress(TimeoutError, ConnectionRefusedError):
                return plain.recv(100).hex()
        return "no answer"

    def _send(self) -> str:
        with BinaryStranger((self._host, self._ports["binary"])) as session:
            session.deliver(self._name, 1, b"from nobody")
        return "MQ_OK"


def main(host: str, ready: str, queue: str) -> None:
    """Try everything."""
    stranger = Stranger(host, json.loads(Path(ready).read_text()), queue)
    print(json.dumps({name: outcome(attempt) for name, attempt in stranger.attempts()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
