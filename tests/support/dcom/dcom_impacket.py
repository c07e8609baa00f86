"""impacket as a client of COM objects: its own activation, references and security.

impacket looks for activators at port 135 only; here it is told another one. It keeps its
connections by target and thread, so that one test at a time has a connection.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from impacket.dcerpc.v5 import dcomrt, transport
from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_LEVEL_PKT_PRIVACY
from impacket.uuid import string_to_bin, uuidtup_to_bin

from rpcqm.codec.interface import TransferSyntax
from rpcqm.dcom.object_interfaces import object_interfaces
from tests.support.accounts import PASSWORD
from tests.support.dcom.dcom_client import ComError, orpcthis

HOST = "127.0.0.1"


class _At:
    """impacket's module of transports, with another port for endpoint mappers."""

    def __init__(self, port: int) -> None:
        self._port = port

    def DCERPCTransportFactory(self, binding: str) -> Any:
        return transport.DCERPCTransportFactory(
            binding if "[" in binding else f"{binding}[{self._port}]"
        )


@contextlib.contextmanager
def connected(
    port: int,
    user: str = "alice",
    password: str = PASSWORD,
    level: int = RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    target: str = HOST,
    **options: Any,
) -> Iterator[Any]:
    """A DCOMConnection with activators at a port."""
    original, dcomrt.transport = dcomrt.transport, _At(port)
    try:
        connection = dcomrt.DCOMConnection(target, user, password, authLevel=level, **options)
        try:
            yield connection
        finally:
            with contextlib.suppress(KeyError):  # nothing was activated: impacket expects it
                connection.disconnect()
            dcomrt.INTERFACE.CONNECTIONS.clear()
    finally:
        dcomrt.transport = original


def iid_of(interface: str) -> bytes:
    """An IID as impacket wants it, with the version."""
    octets: bytes = uuidtup_to_bin((str(object_interfaces()[interface].iid), "0.0"))
    return octets


def create(connection: Any, clsid: UUID, interface: str) -> Any:
    """CoCreateInstanceEx of impacket."""
    return connection.CoCreateInstanceEx(string_to_bin(str(clsid)), iid_of(interface))


def call(reference: Any, interface: str, operation: str, *arguments: object) -> Any:
    """Call a method by vtable, over impacket's connection; the response. ComError if it fails."""
    made = object_interfaces()[interface].load().operation(operation)
    ins = [p.name for p in made.declaration.parameters if p.in_ and p.name != "orpcthis"]
    fields = dict(zip(ins, arguments, strict=True))
    request = made.request_class(orpcthis=orpcthis(), **fields)
    stub = made.encode_request(TransferSyntax.NDR, request)
    reference.connect(iid_of(interface))
    dce = reference.get_dce_rpc()
    dce.call(made.opnum, stub, reference.get_iPid())
    response = made.decode_response(TransferSyntax.NDR, dce.recv())
    if response.result & 0x80000000:
        raise ComError(response.result, operation)
    return response
