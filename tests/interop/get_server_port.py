"""Calls R_GetServerPort through impacket at each authentication level, and prints the answers.

Arguments: the RPC port, a user's name and password. One line: the level and the stub data.
"""

import sys

from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_CONNECT,
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_PKT,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
)
from impacket.uuid import uuidtup_to_bin

REMOTE_READ = ("1a9134dd-7b39-45ba-ad88-44d01ca47f28", "1.0")
LEVELS = (
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_CONNECT,
    RPC_C_AUTHN_LEVEL_PKT,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
)


def call(port: str, user: str, password: str, level: int) -> bytes:
    """The stub data of the response."""
    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    if level != RPC_C_AUTHN_LEVEL_NONE:
        rpc.set_credentials(user, password)
    dce = rpc.get_dce_rpc()
    dce.set_auth_level(level)
    dce.connect()
    dce.bind(uuidtup_to_bin(REMOTE_READ))
    dce.call(0, b"")
    stub: bytes = dce.recv()
    dce.disconnect()
    return stub


if __name__ == "__main__":
    rpc_port, name, secret = sys.argv[1:]
    for each in LEVELS:
        print(each, call(rpc_port, name, secret, each).hex())
