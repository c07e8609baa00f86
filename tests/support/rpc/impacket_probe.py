"""impacket's client of the probe interface, logged on by Kerberos."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from impacket.dcerpc.v5.rpcrt import RPC_C_AUTHN_GSS_NEGOTIATE
from impacket.dcerpc.v5.transport import DCERPCTransportFactory

from tests.support.rpc.kdc import HOST, REALM
from tests.support.rpc.probe import ProbeInterface


@contextmanager
def impacket_with_ticket(port: int, level: int) -> Iterator[Any]:
    """A bound connection; the ticket is in the cache that KRB5CCNAME names."""
    transport = DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    transport.setRemoteName(HOST)
    transport.set_credentials("alice", "", REALM)
    transport.set_kerberos(True)
    rpc = transport.get_dce_rpc()
    rpc.set_auth_level(level)
    rpc.set_auth_type(RPC_C_AUTHN_GSS_NEGOTIATE)
    rpc.connect()
    probe = ProbeInterface()
    rpc.bind(probe.uuid.bytes_le + b"".join(each.to_bytes(2, "little") for each in probe.version))
    yield rpc
    rpc.disconnect()
