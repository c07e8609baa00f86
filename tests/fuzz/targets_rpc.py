"""Targets of the runtime: PDUs, whole connections in clear and sealed, towers, NTLM tokens."""

import tempfile
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, Identity, authenticated
from rpcqm.codec.interface import load
from rpcqm.rpc import pdu
from rpcqm.rpc.association_states import State
from rpcqm.rpc.call import Call
from rpcqm.rpc.client_association import ClientAssociation, ClientEvent, ClientState
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import (
    Authentication,
    AuthenticationError,
    Handshake,
    SecurityProvider,
)
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator, NtlmProvider
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags, NtlmProtection, ProtectionDirection
from rpcqm.rpc.tower import Floor, Tower, tcp_tower
from tests.fuzz import captures
from tests.fuzz.mutation import LONGEST, mutated_stream, split_stream
from tests.fuzz.target import Run, Target, Violation, without_particulars
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import (
    OTHER,
    PROBE,
    ProbeHandlers,
    ProbeRequest,
    ProbeResponse,
    Rig,
    Wire,
    alter,
    bind,
    element,
    request,
)

REMOTE_READ = load("remoteread").uuid.bytes_le
NTLM = 10
HANDLE = b"\0\0\0\0the handle opened"
LEVELS = (
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
)
SIGNED = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
GENUINE = (b"", b"first", b"second of two", bytes(range(256)) * 20)
"""What the clients of sealed connections have echoed."""
LIMITS = Limits(
    calls=8, handles=8, contexts=8, security_contexts=3, call_bytes=1 << 16, call_fragments=64
)
ANSWERS_AT_MOST = 64 * LONGEST
"""Octets that a server may answer one input with: it echoes, in fragments of 2048 and more."""


# PDUs by themselves.


def _pdu_seeds() -> Iterable[bytes]:
    for stream in _conversations():
        yield from split_stream(stream)
    yield from captures.pdus()


@contextmanager
def _pdus() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        value = pdu.unpack(octets)
        again = pdu.unpack(value.pack())
        if type(again) is not type(value):
            raise Violation("a PDU that is packed becomes another one")
        return type(value).__name__

    yield run


# A server's side of a connection.


def _conversations() -> list[bytes]:
    """Good connections of clients to the probe interface."""
    handle = HANDLE
    third = b"a third of it, and more"
    return [
        bind() + request(0) + request(1, b"octets", 2) + request(1, bytes(200), 3, big_endian=True),
        bind(big_endian=True) + request(1, b"big", big_endian=True),
        bind(pfc_flags=0x13) + request(2, b"a", 1) + request(2, b"b", 2) + _cancels(1, 2),
        bind() + request(4, b"one") + request(5, handle + b"x", 2) + request(6, handle, 3),
        bind() + request(7, handle, 1) + request(10, handle + b"w", 2) + request(8, b"", 3),
        bind() + alter(p_context_elem=(element(1, OTHER),)) + request(1, b"other", 2, p_cont_id=1),
        bind() + request(1, third, 1, pfc_flags=1) + request(1, third, 1, pfc_flags=0)
        + request(1, third, 1, pfc_flags=2),
        bind() + request(1, b"object", object_uuid=PROBE.uuid, pfc_flags=0x83),
        bind(auth=pdu.SecurityTrailer(NTLM, 6, 7, b"token")) + pdu.Auth3(call_id=0).pack(),
    ]  # fmt: skip


def _cancels(*call_ids: int) -> bytes:
    return b"".join(
        pdu.CoCancel(call_id=each).pack() + pdu.Orphaned(call_id=each).pack() for each in call_ids
    )


class Served:
    """A server for one connection after the other; nothing of them may stay."""

    def __init__(self, rig: Rig, handlers: "NotingHandlers") -> None:
        self.rig = rig
        self.handlers = handlers

    def run(self, octets: bytes) -> Hashable:
        """Feed a connection in two pieces, answer what waits, and lose it."""
        handlers = self.handlers
        handlers.forget()
        wire = self.rig.connect()
        pieces = split_stream(octets)
        half = len(pieces) // 2
        answers = self._fed(wire, pieces[:half])
        _answer_some(handlers)
        answers += self._fed(wire, pieces[half:])
        state = wire.association.state
        wire.association.connection_lost()
        _answer_some(handlers, every=1)
        self._check(wire, answers)
        return state, _shape(answers), tuple(sorted({type(each).__name__ for each in wire.events}))

    @staticmethod
    def _fed(wire: Wire, pieces: list[bytes]) -> bytes:
        """The answers to PDUs, in which a placeholder becomes the handle opened last."""
        for piece in pieces:
            if HANDLE in piece and wire.association.state is State.BOUND:
                handles = [each.wire for each in wire.association.group.handles]
                piece = piece.replace(HANDLE, (handles or [HANDLE])[-1])
            wire.association.receive_data(piece)
        return wire.association.data_to_send()

    def _check(self, wire: Wire, answers: bytes) -> None:
        association = wire.association
        if association.state is not State.CLOSED or len(association.calls):
            raise Violation("a connection that is lost goes on")
        if len(self.rig.groups):
            raise Violation("an association group is left")
        if not all(call.answered for call in wire.calls):
            raise Violation("a call is left")
        if len(answers) > ANSWERS_AT_MOST:
            raise Violation(f"{len(answers)} octets of answers")
        for level, octets in self.handlers.echoed:
            if level >= SIGNED and octets not in GENUINE:
                raise Violation("changed octets passed for signed ones")


class NotingHandlers(ProbeHandlers):
    """Handlers that keep what they echoed, and at which level."""

    def __init__(self) -> None:
        super().__init__()
        self.echoed: list[tuple[AuthenticationLevel, bytes]] = []

    def echo(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        self.echoed.append((call.authentication_level, request.octets))
        return super().echo(call, request)

    def forget(self) -> None:
        """Nothing of the connection before."""
        lists = (self.seen, self.calls, self.waiting, self.names, self.run_down, self.echoed)
        for kept in lists:
            kept.clear()


def _answer_some(handlers: ProbeHandlers, every: int = 2) -> None:
    for completion in handlers.waiting[::every]:
        if not completion.done:
            completion.succeed(ProbeResponse(octets=b"waited"))


def _shape(octets: bytes) -> tuple[tuple[int, int], ...]:
    """The first answers: their types, and the statuses of faults and naks."""
    shape = []
    for each in split_stream(octets)[:8]:
        status = int.from_bytes(each[24:28], "little") if each[2:3] == b"\x03" else 0
        shape.append((each[2] if len(each) > 2 else -1, status))
    return tuple(dict.fromkeys(shape))


def _server_seeds() -> Iterable[bytes]:
    """Also what real clients said to RemoteRead, as if it had been the probe interface."""
    streams = captures.streams_of_clients()
    captured = (each.replace(REMOTE_READ, PROBE.uuid.bytes_le) for each in streams)
    return [*_conversations(), *_sealed_seeds(), *captured]


@contextmanager
def _server() -> Iterator[Run]:
    """A server whose NTLM is a shared key, so that handshakes cost nothing."""
    handlers = NotingHandlers()
    providers: dict[int, SecurityProvider] = {NTLM: KeyProvider()}
    yield Served(Rig(handlers, limits=LIMITS, providers=providers), handlers).run


# Sealed connections: every client and server of these has the same key.

FLAGS = (
    NegotiateFlags.NTLMSSP_NEGOTIATE_SIGN
    | NegotiateFlags.NTLMSSP_NEGOTIATE_SEAL
    | NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY
    | NegotiateFlags.NTLMSSP_NEGOTIATE_128
    | NegotiateFlags.NTLMSSP_NEGOTIATE_KEY_EXCH
)
KEY = bytes(range(16))
ALICE = authenticated("alice", "S-1-5-21-1-2-3-1000")


class KeyHandshake:
    """A handshake of one token in each direction, which leaves the shared key."""

    claim = NO_CLAIM

    def __init__(self, own: ProtectionDirection) -> None:
        self.own = own
        self.complete = False

    def step(self, token: bytes) -> bytes:
        if token == b"refuse":
            raise AuthenticationError("refused")
        self.complete = self.own is ProtectionDirection.SERVER or token != b""
        return b"" if self.complete and self.own is ProtectionDirection.CLIENT else b"token"

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        return NtlmProtection(FLAGS, KEY, self.own)

    def peer(self) -> Identity:
        return ALICE


class KeyProvider:
    """Makes the server's side of such handshakes."""

    principal_name = "rpcqm/test"

    def accept(self, level: AuthenticationLevel, address: str = "") -> Handshake:
        return KeyHandshake(ProtectionDirection.SERVER)


def _sealed_conversation(level: AuthenticationLevel) -> tuple[bytes, bytes]:
    """What a client and a server with the key say to each other at a level."""
    handlers = NotingHandlers()
    rig = Rig(handlers, limits=LIMITS, providers={NTLM: KeyProvider()})
    wire = rig.connect()
    authentication = Authentication(
        NTLM, level, lambda: KeyHandshake(ProtectionDirection.CLIENT), odd_legs=False
    )
    client = ClientAssociation(LIMITS, authentication)
    client.bind([(PROBE, (NDR,))])
    sent = received = b""
    for octets in (None, *GENUINE):
        if octets is not None:
            client.request(0, 1, octets)
        question = client.data_to_send()
        wire.association.receive_data(question)
        answer = wire.association.data_to_send()
        client.receive_data(answer)
        sent, received = sent + question, received + answer
    if [each for _, each in handlers.echoed] != list(GENUINE):
        raise Violation("the sealed conversation does not work")
    return sent, received


def _sealed_seeds() -> Iterable[bytes]:
    return [_sealed_conversation(level)[0] for level in LEVELS]


# A client's side.


@contextmanager
def _client() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        client = ClientAssociation(LIMITS, _authentication(octets[:1]), response_bytes=1 << 16)
        client.bind([(PROBE, (NDR,))])
        events: list[ClientEvent] = []
        asked = False
        for piece in split_stream(octets[1:]):
            events += client.receive_data(piece)
            if not asked and client.state is ClientState.BOUND and client.contexts:
                asked = True
                for stub in GENUINE:
                    client.request(next(iter(client.contexts)), 1, stub)
        state = client.state
        client.close()
        return state, tuple(dict.fromkeys(_event(each) for each in events))

    yield run


def _authentication(choice: bytes) -> Authentication | None:
    """The level that the first octet of an input asks for; none for 255."""
    if choice in (b"", b"\xff"):
        return None
    level = LEVELS[choice[0] % len(LEVELS)]
    return Authentication(
        NTLM, level, partial(KeyHandshake, ProtectionDirection.CLIENT), odd_legs=False
    )


def _event(event: ClientEvent) -> tuple[str, str]:
    return type(event).__name__, without_particulars(getattr(event, "text", ""))


def _client_mutated(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    return octets[:1] + mutated_stream(random, octets[1:], [each[1:] for each in others[:40]])


def _client_seeds() -> Iterable[bytes]:
    for number, level in enumerate(LEVELS):
        yield bytes([number]) + _sealed_conversation(level)[1]
    for stream in captures.streams_of_servers():
        yield b"\xff" + stream


# Towers and tokens.


@contextmanager
def _towers() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        tower = Tower.unpack(octets)
        if Tower.unpack(tower.pack()) != tower:
            raise Violation("a tower that is packed becomes another one")
        return tower.protocols[:6], tower.tcp_port is None

    yield run


def _tower_seeds() -> Iterable[bytes]:
    for host, port in (("192.0.2.7", 2103), ("0.0.0.0", 135)):
        for transfer in (NDR, NDR64):
            yield tcp_tower(PROBE, transfer, host, port).pack()
    yield Tower(PROBE, NDR, (Floor(0x0F, b"", b"\\pipe\\x\0"), Floor(0x11, b"", b"\\\\A\0"))).pack()


@contextmanager
def _tokens() -> Iterator[Run]:
    """An acceptor; inputs that begin with an odd octet are the second token."""
    with tempfile.TemporaryDirectory() as directory:
        provider = NtlmProvider(TestAccounts(Path(directory)))
        negotiate = NtlmInitiator(NtlmCredentials("alice", PASSWORD), LEVELS[3]).step(b"")

        def run(octets: bytes) -> Hashable:
            handshake = provider.accept(LEVELS[3])
            if octets[:1] and octets[0] & 1:
                handshake.step(negotiate)
            handshake.step(octets[1:])
            if handshake.complete and handshake.peer() != ANONYMOUS:
                raise Violation("a token of another handshake was accepted")
            return handshake.complete

        yield run


def _token_seeds() -> Iterable[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        provider = NtlmProvider(TestAccounts(Path(directory)))
        for name in ("alice", "CORP\\carol", "nobody"):
            domain, _, user = name.rpartition("\\")
            client = NtlmInitiator(NtlmCredentials(user, PASSWORD, domain), LEVELS[3])
            server = provider.accept(LEVELS[3])
            negotiate = client.step(b"")
            yield b"\0" + negotiate
            yield b"\1" + client.step(server.step(negotiate))
    for token in captures.tokens():
        yield b"\0" + token
        yield b"\1" + token


TARGETS = (
    Target("pdu", _pdu_seeds, _pdus, (DecodeError,), share=20),
    Target("server", _server_seeds, _server, mutate=mutated_stream, share=40),
    Target("sealed", _sealed_seeds, _server, mutate=mutated_stream, share=20),
    Target("client", _client_seeds, _client, mutate=_client_mutated, share=15),
    Target("tower", _tower_seeds, _towers, (DecodeError,), share=10),
    Target("ntlm-token", _token_seeds, _tokens, (AuthenticationError,), share=2),
)
