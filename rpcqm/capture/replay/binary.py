"""Plays the initiator of a captured session of the binary protocol, and compares the acceptor.

The session itself is a live one ([MS-MQQB] 3.1): it opens with the live server's times, windows
and identities, counts its own messages and acknowledges what comes. Of the capture are the
messages, their order, and what their sender had been told by then.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import cast
from uuid import UUID, uuid4

from rpcqm.base.clock import SystemClock
from rpcqm.base.errors import DecodeError
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import Identities, SessionState
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.binary import BinaryConversation, BinaryPacket
from rpcqm.capture.conversation.binary_progress import SessionProgress, at, kind_of, milestones
from rpcqm.capture.conversation.call import Conversation
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.replay.binary_rewriting import SEQUENCE, Rewriter
from rpcqm.capture.replay.mapping import QUEUE_MANAGER, Mapping
from rpcqm.capture.replay.outcome import Outcome, Server
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.internal import EstablishConnectionPacket
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.user_message import UserMessage

PATIENCE_SECONDS = 10.0
"""How much longer than in the capture a server may take: its disk may be slower."""
_SECOND = 1_000_000_000
_ESTABLISH, _PARAMETERS = PacketKind.ESTABLISH_CONNECTION, PacketKind.CONNECTION_PARAMETERS
_OPENING = (_ESTABLISH, _PARAMETERS)


class _Wire(asyncio.Protocol):
    """The connection: octets go to the player."""

    def __init__(self, player: "BinaryPlayer") -> None:
        self._player = player

    def data_received(self, data: bytes) -> None:
        self._player.received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._player.disconnected()


class ReplayPeer:
    """One client of the captured server; a server's messages take any session with it."""

    def __init__(self, packets: Iterable[BinaryPacket]) -> None:
        self.captured = sorted(packets, key=lambda each: each.time)
        self.live: list[BinaryPacket] = []
        self.progress = SessionProgress()
        self.changed = asyncio.Event()
        self.milestones = milestones(self.captured, SessionProgress.take_message)
        self._messages = [each for each in self.captured if is_message(each)]

    def take(self, packet: BinaryPacket, mapping: Mapping) -> None:
        """A packet of the live server; its sequences are what our acknowledgements name."""
        number = self.progress.messages
        self.live.append(packet)
        self.progress.take_message(packet)
        if number < min(self.progress.messages, len(self._messages)):
            pair = [_sequence_of(each) for each in (self._messages[number], packet)]
            if None not in pair:
                mapping.learn(SEQUENCE, *pair)

    def is_at(self, moment: int | None) -> bool:
        """Whether the live server has said what the captured one had by then."""
        return self.progress.reaches(at(self.milestones, moment))


class BinaryPlayer:
    """One captured session played against a server; the host of the live session.

    `captured` and `live` are the server's packets, `outcomes` those of the client that are
    played. `reason` says why the session is not played at all.
    """

    def __init__(
        self,
        conversation: Conversation,
        packets: Sequence[BinaryPacket],
        server: Server,
        mapping: Mapping,
    ) -> None:
        self.conversation = conversation
        self.captured = [each for each in packets if not each.from_client]
        self.peer = ReplayPeer(self.captured)
        self.live: list[BinaryPacket] = []
        self.sent = [each for each in packets if each.from_client]
        kinds = {id(each): kind_of(each) for each in self.sent}
        self.outcomes = [
            Outcome(each) for each in self.sent if kinds[id(each)] is not PacketKind.SESSION_ACK
        ]
        self.acknowledgements = len(self.sent) - len(self.outcomes)
        self._opening = {
            kinds[id(each.call)]: each for each in self.outcomes if kinds[id(each.call)] in _OPENING
        }
        self.progress = SessionProgress()
        self.closed_because = ""
        self.reason = ""
        self.mapping = mapping
        self.milestones = milestones(self.captured, SessionProgress.take_acknowledgements)
        self._server = server
        self._rewriter = Rewriter(mapping)
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._began: dict[int, float] = {}
        reading = BinaryConversation(conversation, Problems(), self._packet_came)
        self._stream = reading.from_server

    @property
    def client_guid(self) -> UUID:
        """Who asked for the session; null when that was not captured."""
        return self._establishment(self.sent)[0]

    @property
    def server_guid(self) -> UUID:
        """Who answered when it was captured; null when that was not captured."""
        return self._establishment(self.captured)[1]

    def _establishment(self, packets: Sequence[BinaryPacket]) -> tuple[UUID, UUID, bool]:
        """The client and the server that a packet names, and whether it is a refusal."""
        for each in packets:
            if kind_of(each) is _ESTABLISH:
                found = EstablishConnectionPacket.decode(each.octets)
                header = found.establish_connection_header
                return header.client_guid, header.server_guid, bool(found.internal_header.flags.CS)
        return NULL_GUID, NULL_GUID, False

    # Playing.

    async def play(self, outcome: Outcome) -> None:
        """Send what the client sent, or what opens the session."""
        outcome.reason = self.reason
        if outcome.reason or self.closed_because:
            return
        packet = cast(BinaryPacket, outcome.call)
        if kind_of(packet) is None:
            outcome.reason = "its packet cannot be read"
            return
        session = self._session or await self._open()
        if kind_of(packet) in _OPENING:
            return
        await self.caught_up(packet.time)
        self._began[id(outcome)] = time.perf_counter()
        await self._until(lambda: session.can_send)
        if session.can_send:
            later = (time.time_ns() - packet.time) // _SECOND
            session.send(self._rewriter.message(packet, later), outcome)

    async def _open(self) -> Session:
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        _, server, refused = self._establishment(self.captured)
        # A client that was refused in the capture asks for a wrong queue manager again.
        identities = Identities(
            self.mapping.client(self.client_guid), uuid4() if refused else NULL_GUID
        )
        session = Session(self, identities, clock, timers_on_loop(clock, loop))
        self._session = session
        host, port = self._server.host, self._server.binary_port
        transport, _ = await loop.create_connection(lambda: _Wire(self), host, port)
        self._transport = transport
        for outcome in self._opening.values():
            self._began[id(outcome)] = time.perf_counter()
        session.start_initiator()
        if not refused:
            await self._until(lambda: session.is_open)
            self.mapping.learn(QUEUE_MANAGER, server, session.remote_qm_guid)
        return session

    async def caught_up(self, moment: int | None) -> None:
        """Wait for what the server had acknowledged and sent by a moment; for all if it is None."""
        if self.reason or self._session is None:
            return
        then = at(self.milestones, moment)
        await self._until(lambda: self.progress.reaches(then) and self.peer.is_at(moment))

    @property
    def in_flight(self) -> bool:
        """Whether the server has not acknowledged everything yet."""
        return self._session is not None and self._session.un_acked_message_count > 0

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait as long as it took when it was captured, and a while longer."""
        times = [each.time for each in (*self.sent, *self.captured)]
        patience = PATIENCE_SECONDS + (max(times) - min(times)) / _SECOND
        # What has not come by then is found by the comparison.
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not condition() and not self.closed_because:
                    self.peer.changed.clear()
                    await self.peer.changed.wait()

    def close(self) -> None:
        if self._session is not None:
            self._session.close("the replay is over")

    # What the connection tells.

    def received(self, data: bytes) -> None:
        self._stream.take(data, time.time_ns(), 0)
        if self._session is not None:
            self._session.receive_data(data)
        self.peer.changed.set()

    def disconnected(self) -> None:
        if self._session is not None:
            self._session.disconnected()
        self.peer.changed.set()

    def _packet_came(self, packet: BinaryPacket) -> None:
        self.live.append(packet)
        self.progress.take_acknowledgements(packet)
        self.peer.take(packet, self.mapping)
        # What opens a session is answered by a packet of the same kind.
        opening = self._opening.get(kind_of(packet))
        if opening is not None:
            self._answered(opening)

    def _answered(self, outcome: Outcome) -> None:
        began = self._began.get(id(outcome))
        if began is not None and outcome.duration_ms is None:
            outcome.duration_ms = (time.perf_counter() - began) * 1000

    # What the session wants of its host.

    def transmit(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def state_changed(self, state: SessionState) -> None:
        self.peer.changed.set()

    def message_received(
        self, kind: PacketKind, message: PacketMessage, recoverable: int | None
    ) -> None:
        if recoverable is not None and self._session is not None:
            self._session.persisted(recoverable)

    def messages_acknowledged(self, tokens: list[object]) -> None:
        for token in tokens:
            if isinstance(token, Outcome):
                self._answered(token)

    def window_moved(self) -> None:
        self.peer.changed.set()

    def closed(self, reason: str) -> None:
        self.closed_because = reason
        if self._transport is not None:
            self._transport.close()
        self.peer.changed.set()


def is_message(packet: BinaryPacket) -> bool:
    """Whether a packet is a message of its own, no OrderAck."""
    return kind_of(packet) in (PacketKind.USER_MESSAGE, PacketKind.FINAL_ACK)


def _sequence_of(packet: BinaryPacket) -> int | None:
    # A packet that cannot be read belongs to no sequence.
    with suppress(DecodeError):
        header = UserMessage(packet.octets).transaction_header
        return None if header is None else header.tx_sequence_id.value
    return None


def players_of(
    exchanges: Iterable[Exchange], server: Server, mapping: Mapping
) -> list[BinaryPlayer]:
    """A player for each session in a capture; those with another server are not played.

    A capture of one queue manager's traffic also has the sessions that it opened itself. The
    server is who answered most sessions, at an address that serves RPC if there is any.
    """
    found: dict[int, tuple[Conversation, list[BinaryPacket]]] = {}
    hosts = set()
    for each in exchanges:
        conversation = each.conversation
        if isinstance(each, BinaryPacket):
            found.setdefault(conversation.number, (conversation, []))[1].append(each)
        else:
            hosts.add(_host(conversation))
    players = [BinaryPlayer(*each, server, mapping) for each in found.values()]
    known = [each for each in players if each.server_guid != NULL_GUID]
    at_hosts = [each for each in known if _host(each.conversation) in hosts]
    votes = Counter(each.server_guid for each in at_hosts or known)
    for player in known:
        if player.server_guid != votes.most_common(1)[0][0]:
            player.reason = "it is a session with another queue manager"
    _introduce([each for each in players if not each.reason])
    return players


def _introduce(players: Sequence[BinaryPlayer]) -> None:
    """Make sessions of one client share it."""
    clients = {each.client_guid for each in players} - {NULL_GUID}
    for client in clients:
        own = [each for each in players if each.client_guid == client]
        peer = ReplayPeer(packet for each in own for packet in each.captured)
        for each in own:
            each.peer = peer


def _host(conversation: Conversation) -> str:
    return conversation.server.rpartition(":")[0]
