"""Seeds that real clients have made: the connections of tests/vectors/captures."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.interfaces import NAMES, known_interfaces
from rpcqm.capture.file.flow import Flow
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.file.tcp import TcpReassembler
from rpcqm.rpc import pdu
from tests.fuzz.mutation import LONGEST, split_stream
from tests.support.capture.analysed import calls_of

CAPTURES = Path(__file__).parents[1] / "vectors" / "captures"


@dataclass
class Spoken:
    """What was sent in one direction of a connection."""

    octets: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes, time: int, offset: int) -> None:
        self.octets += data

    def pdus(self) -> list[bytes]:
        """As many whole PDUs as an input has room for."""
        kept: list[bytes] = []
        for each in split_stream(bytes(self.octets)):
            if sum(map(len, kept)) + len(each) > LONGEST:
                break
            kept.append(each)
        return kept


@cache
def conversations() -> tuple[tuple[tuple[bytes, ...], tuple[bytes, ...]], ...]:
    """The PDUs of clients and of servers, of each captured connection that carries RPC."""
    found: list[tuple[Spoken, Spoken]] = []

    def opened(flow: Flow) -> None:
        client, server = Spoken(), Spoken()
        flow.forward.take, flow.backward.take = client.take, server.take
        found.append((client, server))

    for path in sorted(CAPTURES.glob("*.pcapng")):
        problems = Problems(str(path))
        reassembler = TcpReassembler(opened, problems)
        for record in read_records(path, problems):
            reassembler.feed(record)
        reassembler.finish()
    return tuple(
        (tuple(client.pdus()), tuple(server.pdus()))
        for client, server in found
        if client.octets[:1] == b"\5"
    )


def streams_of_clients() -> Iterator[bytes]:
    for client, _ in conversations():
        yield b"".join(client)


def streams_of_servers() -> Iterator[bytes]:
    for _, server in conversations():
        yield b"".join(server)


def pdus() -> list[bytes]:
    """One PDU of each kind: by its type, its flags, its length and its trailer's."""
    kinds: dict[bytes, bytes] = {}
    for client, server in conversations():
        for each in (*client, *server):
            kinds.setdefault(each[2:4] + each[8:12] + each[22:24], each)
    return list(kinds.values())


def tokens() -> Iterator[bytes]:
    """What was said in handshakes, clients and servers."""
    for octets in pdus():
        try:
            auth = pdu.unpack(octets).auth
        except DecodeError:
            continue
        if auth is not None and octets[2] not in (0, 2, 3):
            yield auth.auth_value


def requests() -> Iterator[tuple[str, bytes]]:
    """The stub data of requests in clear, one of each length, and `file.method` of idl/."""
    files = dict(zip(known_interfaces().values(), NAMES, strict=True))
    kinds: dict[tuple[str, int], bytes] = {}
    for path in sorted(CAPTURES.glob("*.pcapng")):
        for call in calls_of(path)[0]:
            interface = getattr(getattr(call, "context", None), "interface", None)
            if isinstance(call, CapturedCall) and call.request is not None and interface in files:
                name = f"{files[interface]}.{call.name}"
                kinds.setdefault((name, len(call.request)), call.request)
    for (name, _), stub in kinds.items():
        yield name, stub
