"""Connections for the benches that log on by NTLM, and calls sealed before they are sent.

A sealed request is good for one place in its connection's sequence. So a connection is bound by
Python, its requests are sealed beforehand, and the load generator only sends them.
"""

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rpcqm.codec.interface import Interface, Operation, TransferSyntax, Value
from rpcqm.rpc.client_association import ClientAssociation, Faulted, Responded
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.security.ntlm import NtlmCredentials

ACCOUNT = NtlmCredentials("bench", "Passw0rd!")
NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY


class Connection:
    """One connection bound to interfaces in NDR, at level NONE or by NTLM at another."""

    def __init__(
        self, port: int, interface: Interface, level: AuthenticationLevel, *others: Interface
    ) -> None:
        self._interfaces = (interface, *others)
        authentication = ACCOUNT.authentication(level) if level != NONE else None
        self.association = ClientAssociation(authentication=authentication)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.association.bind(
            [(SyntaxId(each.uuid, *each.version), (NDR,)) for each in self._interfaces]
        )
        self.send()
        while not self.association.contexts:
            self._receive()
        self.send()

    def send(self) -> None:
        self.socket.sendall(self.association.data_to_send())

    def _receive(self) -> list[Any]:
        octets = self.socket.recv(1 << 16)
        if not octets:
            raise RuntimeError("the server closed the connection")
        return self.association.receive_data(octets)

    def request(self, operation: str, request: Value) -> int:
        """Queue a request; its call_id."""
        context, called = self._operation(operation)
        stub = called.encode_request(TransferSyntax.NDR, request)
        return self.association.request(context, called.opnum, stub)

    def _operation(self, name: str) -> tuple[int, Operation]:
        """The presentation context that an operation is called in, and the operation."""
        for context, interface in enumerate(self._interfaces):
            for operation in interface.operations:
                if operation is not None and operation.name == name:
                    return context, operation
        raise KeyError(name)

    def call(self, operation: str, request: Value) -> Any:
        """A call and its response; raises RuntimeError for a fault."""
        self.request(operation, request)
        self.send()
        while True:
            for event in self._receive():
                if isinstance(event, Responded):
                    called = self._operation(operation)[1]
                    return called.decode_response(TransferSyntax.NDR, event.stub_data)
                if isinstance(event, Faulted):
                    raise RuntimeError(f"{operation}: fault 0x{event.status:08X}")

    def prepare(self, operation: str, requests: Iterable[Value], path: Path) -> None:
        """Write calls to a file, as they are to be sent from now on."""
        with path.open("wb") as file:
            for request in requests:
                self.request(operation, request)
                file.write(self.association.data_to_send())

    def close(self) -> None:
        self.socket.close()
