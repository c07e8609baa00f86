"""Calls sealed with NTLM (PKT_PRIVACY) against the same without authentication.

All figures are by the server's processor time, which the load of the machine changes little.
Null calls are R_GetServerPort at 16 connections. Transfers are R_StartReceive at 4 connections,
which peeks at a message of 64 KiB. Their limit is the plain transfer and, on top of it, what the
cipher and the digest take for these octets, measured in this process.

Alone, `sealed.py profile` prints where the time of sealing a response goes.
"""

import cProfile
import hashlib
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from uuid import UUID

from authenticated import NONE, PRIVACY, Connection
from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher
from figures import Figure, attempt, figure
from harness import computed, few, load_streams, pairs, pin, server_cpu
from served import EVERYONE, Served, serving

from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.ndr.values import Value
from rpcqm.codec.types import remoteread
from rpcqm.rpc.constants import AuthenticationLevel, PduType
from rpcqm.rpc.fragment import fragments
from rpcqm.rpc.pdu import RESPONSE_BODY
from rpcqm.rpc.security.context import SecurityContext
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags, NtlmProtection, ProtectionDirection

REMOTE_READ = load_interface("remoteread")
CONFIGURATION = "[security]\nallow_nonauthenticated_rpc = true\n"
QUEUE = "bench"
SIZE = 64 << 10
NULL_CONNECTIONS, TRANSFER_CONNECTIONS = 16, 4
SECONDS = 1.0
NULL = f"null call, NTLM PKT_PRIVACY over NONE, {NULL_CONNECTIONS} connections"
TRANSFER = "64 KiB response, NTLM PKT_PRIVACY over what the plain one and the cipher alone take"
FRAGMENT = 5840
PEEK_CURRENT = 0x80000000

FLAGS = (
    NegotiateFlags.NTLMSSP_NEGOTIATE_SIGN
    | NegotiateFlags.NTLMSSP_NEGOTIATE_SEAL
    | NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | NegotiateFlags.NTLMSSP_NEGOTIATE_128
    | NegotiateFlags.NTLMSSP_NEGOTIATE_KEY_EXCH
)

Make = Callable[[Connection], tuple[str, Value]]
"""Makes a connection ready; the operation that it calls then, and the request."""


def null(connection: Connection) -> tuple[str, Value]:
    return "R_GetServerPort", remoteread.R_GetServerPortRequest()


def transfer(connection: Connection, access: int = 0x20) -> tuple[str, Value]:
    name = FormatName.parse(rf"DIRECT=TCP:127.0.0.1\private$\{QUEUE}")
    opened = connection.call(
        "R_OpenQueue",
        remoteread.R_OpenQueueRequest(
            pQueueFormat=queue_format_of(name),
            dwAccess=access,
            dwShareMode=0,
            pClientId=UUID(int=1),
            fNonRoutingServer=1,
            Major=6,
            Minor=1,
            BuildNumber=7601,
            fWorkgroup=1,
        ),
    )
    return "R_StartReceive", remoteread.R_StartReceiveRequest(
        phContext=opened.pphContext,
        LookupId=0,
        hCursor=0,
        ulAction=PEEK_CURRENT,
        ulTimeout=0,
        dwRequestId=1,
        dwMaxBodySize=SIZE,
        dwMaxCompoundMessageSize=SIZE,
    )


def rate(
    served: Served, level: AuthenticationLevel, make: Make, connections: int, calls: int
) -> float:
    """Calls per second of processor time, of connections with so many calls prepared each."""
    made = [Connection(served.port, REMOTE_READ, level) for _ in range(connections)]
    with tempfile.TemporaryDirectory(dir=served.data.parent) as directory:
        streams: dict[int, Path] = {}
        for connection in made:
            operation, request = make(connection)
            connection.call(operation, request)
            path = streams[connection.socket.fileno()] = Path(directory) / f"{len(streams)}"
            connection.prepare(operation, repeat(request, few(calls)), path)
        before = computed(served.pid)
        seen = load_streams(streams, SECONDS, warm_up=0)
        took = computed(served.pid) - before
    for connection in made:
        connection.close()
    return seen.calls / took


def cipher_seconds(size: int) -> float:
    """What RC4 and MD5 take for so many octets, in pieces like those of fragments."""
    piece = bytes(FRAGMENT)
    cipher = Cipher(ARC4(bytes(16)), mode=None).encryptor().update
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(100 * size // FRAGMENT):
            cipher(piece)
            hashlib.md5(piece).digest()
        best = min(best, time.perf_counter() - began)
    return best / 100


def null_calls(served: Served) -> Figure:
    ours = partial(rate, served, PRIVACY, null, NULL_CONNECTIONS, 6000)
    plain = partial(rate, served, NONE, null, NULL_CONNECTIONS, 10000)
    return pairs(ours, plain, rounds=3).figure(NULL, served.pid)


def transfers_of(served: Served) -> Figure:
    """Over the plain transfer and the cipher."""
    ours = partial(rate, served, PRIVACY, transfer, TRANSFER_CONNECTIONS, 2500)
    plain = partial(rate, served, NONE, transfer, TRANSFER_CONNECTIONS, 5000)
    transfers = pairs(ours, plain, rounds=3)
    cipher = cipher_seconds(SIZE)
    limit = 1 / (1 / transfers.theirs + cipher)
    octets = transfers.ours * SIZE / 1e6
    note = (
        f"{octets:,.0f} MB/s; the cipher and the digest take {cipher * 1e6:.0f} µs of "
        f"{1e6 / transfers.ours:.0f}, the plain transfer {1e6 / transfers.theirs:.0f}"
    )
    return figure(TRANSFER, transfers.ours / limit, note).explained(served.pid, ours)


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name, serving(Path(name), CONFIGURATION) as served:
        pin(served.pid, server_cpu)
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        served.command("send", QUEUE, "--body", "x" * SIZE)
        yield from attempt(NULL, partial(null_calls, served))
        yield from attempt(TRANSFER, partial(transfers_of, served))


def profile() -> None:
    """Where the time of sealing the fragments of a 64 KiB response goes."""
    context = SecurityContext(10, PRIVACY, 0)
    context._protection = NtlmProtection(FLAGS, bytes(16), ProtectionDirection.SERVER)
    context.signature_length = 16
    stub = bytes(SIZE)
    fixed = RESPONSE_BODY.pack(0, 0, 0, 0)
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(1000):
        list(fragments(context, PduType.response, 1, stub, lambda rest: fixed, FRAGMENT))
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    if sys.argv[1:] == ["profile"]:
        profile()
