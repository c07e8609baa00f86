"""Serves a stand-in for one method of netlogon, and an endpoint mapper on port 135.

Samba's suite sends its long and its broken requests to NetrServerReqChallenge. Prints "ready" when
it listens, and ends with its input.
"""

import asyncio
import sys
from typing import Any

from rpcqm.codec.interface import TransferSyntax, read
from rpcqm.rpc.call import Call
from rpcqm.rpc.endpoint_mapper import EPM, EndpointMapper
from rpcqm.rpc.server import RpcServer

NETLOGON = read(
    """
    [uuid(12345678-1234-abcd-ef00-01234567cffb), version(1.0), pointer_default(unique)]
    interface netlogon
    {
        typedef struct { unsigned char data[8]; } NETLOGON_CREDENTIAL;
        void Opnum0NotUsedOnWire(void);
        void Opnum1NotUsedOnWire(void);
        void Opnum2NotUsedOnWire(void);
        void Opnum3NotUsedOnWire(void);
        long NetrServerReqChallenge(
            [in, unique, string] wchar_t *PrimaryName,
            [in, string] wchar_t *ComputerName,
            [in] NETLOGON_CREDENTIAL *ClientChallenge,
            [out] NETLOGON_CREDENTIAL *ServerChallenge);
    }
    """,
    syntaxes=[TransferSyntax.NDR],
)
CHALLENGE = NETLOGON.operation("NetrServerReqChallenge")


class Netlogon:
    def NetrServerReqChallenge(self, call: Call, request: Any) -> Any:
        return CHALLENGE.response_class(ServerChallenge=request.ClientChallenge, result=0)


async def main() -> None:
    server = RpcServer()
    mapper = server.register(EPM, EndpointMapper(server))
    netlogon = server.register(NETLOGON, Netlogon())
    await server.listen_tcp("127.0.0.1", 0, [netlogon])
    await server.listen_tcp("127.0.0.1", 135, [mapper], advertised=False)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
