"""Plays the client side of a capture against a server, and compares what it answers."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.call import CapturedCall, Conversation, name_of_status
from rpcqm.capture.conversation.interfaces import ACTIVATORS
from rpcqm.capture.file.writing import LOCAL_SOCKET
from rpcqm.capture.replay.binary import BinaryPlayer, players_of
from rpcqm.capture.replay.binary_comparison import compare
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.capture.replay.objects import ObjectMapping, is_of_objects
from rpcqm.capture.replay.outcome import DIFFERENT, SAME, Outcome, Result, Server
from rpcqm.capture.replay.policy import Comparison, Difference
from rpcqm.capture.replay.srmp import SrmpPlayer, posts_of
from rpcqm.capture.unsealing.accounts import UnsealingAccount
from rpcqm.codec.interface import Interface, load
from rpcqm.rpc.client import Binding, PendingCall, RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.endpoint_mapper import resolve
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.rpc.security.ntlm import NtlmCredentials

AS_FAST_AS_POSSIBLE = 0.0
_SETTLE_SECONDS = 0.02
"""How long a call that waits has to reach the server before another connection goes on."""
_TOLD_EVERY = 64
"""Progress is told after so many events: a terminal needs no more."""
_PATIENCE_SECONDS = 10.0
"""How long an answer may take longer than when it was captured."""


class _Live:
    """A call that is being played."""

    __slots__ = (
        *("answer", "began", "call", "ended", "fault", "outcome", "pending", "problem", "task"),
    )

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.call = cast(CapturedCall, outcome.call)
        self.began = time.perf_counter()
        self.ended = 0.0
        self.answer: Any = None
        self.fault: int | None = None
        self.problem = ""
        self.pending: PendingCall | None = None
        self.task: asyncio.Task[None] | None = None


class _Connection:
    """One live connection for one captured conversation."""

    def __init__(self, replay: "Replay", conversation: Conversation) -> None:
        self._replay = replay
        self._conversation = conversation
        self._bindings: dict[str, Binding] = {}
        self._client: RpcClient | None = None

    async def binding(self, call: CapturedCall) -> Binding:
        """The live context for a call's captured one."""
        interface, syntax = call.context.interface, call.context.syntax
        if interface is None or syntax is None:
            raise RuntimeError("the call cannot be encoded")
        key = f"{interface.uuid}/{syntax.name}"
        if key not in self._bindings:
            if self._client is None:
                self._client = await self._connect(interface)
            self._bindings[key] = await self._client.bind(interface, syntax)
            self._replay.joined(self._conversation, self._client)
        return self._bindings[key]

    async def _connect(self, interface: Interface) -> RpcClient:
        server = self._replay.server
        group = self._replay.group_of(self._conversation)
        if server.socket is not None and is_local(self._conversation):
            return await RpcClient.connect_unix(server.socket, group_id=group)
        port = await self._replay.port_of(interface)
        credentials = self._replay.credentials(self._conversation)
        level = AuthenticationLevel(self._conversation.level) if credentials else None
        return await RpcClient.connect_tcp(
            server.host,
            port,
            credentials=credentials,
            level=level,
            group_id=group,
        )

    async def close(self) -> None:
        if self._client is not None:
            self._client.close()
            # The comparison is more useful than an orderly end of the connection.
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._client.wait_closed(), _PATIENCE_SECONDS)


class Replay:
    """One playing of one capture.

    A request is sent when all answers that its client had seen by then have come; so calls that
    waited wait again, and cancels find them waiting.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        server: Server,
        accounts: Sequence[UnsealingAccount] = (),
        speed: float = AS_FAST_AS_POSSIBLE,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.server = server
        self._accounts = accounts
        self._speed = speed
        self._progress = progress
        self._mapping = Mapping(server.machine, server.address)
        self._objects = ObjectMapping(self._mapping)
        calls = [each for each in exchanges if isinstance(each, CapturedCall)]
        self._outcomes = [Outcome(call) for call in sorted(calls, key=lambda call: call.time)]
        self._sessions = players_of(exchanges, server, self._mapping)
        self._posts = posts_of(exchanges, server, self._mapping)
        self._players: list[BinaryPlayer | SrmpPlayer] = [*self._sessions, *self._posts]
        self._connections: dict[int, _Connection] = {}
        self._groups: dict[tuple[str, int], int] = {}
        self._ports: dict[str, int] = {}
        self._flying: list[_Live] = []
        self._played: list[_Live] = []
        self._overlapped: set[int] = set()
        self._following: Outcome | None = None

    # What connections ask.

    async def port_of(self, interface: Interface) -> int:
        """Where the live server serves an interface."""
        if interface.name == "ept" or interface.name in ACTIVATORS:
            return self.server.endpoint_mapper_port
        if interface.declaration.is_object:
            return self._objects.port
        asked = load("remoteread") if interface.name == "mgmt" else interface
        if asked.name not in self._ports:
            host, mapper = self.server.host, self.server.endpoint_mapper_port
            self._ports[asked.name] = await resolve(host, mapper, asked)
        return self._ports[asked.name]

    def credentials(self, conversation: Conversation) -> NtlmCredentials | None:
        """The account of a conversation, if it was given."""
        domain, _, name = conversation.account.rpartition("\\")
        if conversation.level <= 1:
            return None
        for account in self._accounts:
            if account.name.lower() == name.lower():
                return NtlmCredentials(name, domain=domain, nt_hash=account.hashes[-1])
        return None

    def group_of(self, conversation: Conversation) -> int:
        """The live association group for a captured one."""
        return self._groups.get((conversation.server, conversation.group), 0)

    def joined(self, conversation: Conversation, client: RpcClient) -> None:
        if conversation.group:
            self._groups.setdefault((conversation.server, conversation.group), client.group_id)

    # The playing.

    async def run(self) -> Result:
        """Play the whole capture; raises OSError if no server listens."""
        await self._knock()
        began = time.perf_counter()
        events = self._events()
        first = events[0][0] if events else 0
        for number, (moment, action, outcome) in enumerate(events):
            self._following = events[number + 1][2] if number + 1 < len(events) else None
            await self._wait_until(moment, first, began)
            await action(outcome)
            if number % _TOLD_EVERY == 0:
                self._progress(number + 1)
        self._progress(len(events))
        await self._land(None)
        await self._catch_up(None)
        seconds = time.perf_counter() - began
        for connection in self._connections.values():
            await connection.close()
        for player in self._players:
            player.close()
        ignored = self._compared()
        self._outcomes.sort(key=lambda outcome: outcome.call.time)
        return Result(self._outcomes, ignored, seconds)

    async def _knock(self) -> None:
        """Connect once, so that a server that does not listen is told in one sentence."""
        port = self.server.endpoint_mapper_port
        if not self._outcomes:
            port = self.server.binary_port if self._sessions else self.server.http_port
        _, writer = await asyncio.open_connection(self.server.host, port)
        writer.close()
        await writer.wait_closed()

    def _events(self) -> list[tuple[int, Callable[[Outcome], Awaitable[None]], Outcome]]:
        events: list[tuple[int, Callable[[Outcome], Awaitable[None]], Outcome]] = []
        for outcome in self._outcomes:
            call = cast(CapturedCall, outcome.call)
            events.append((call.time, self._send, outcome))
            if call.cancelled:
                events.append((call.cancelled, self._cancel, outcome))
        for player in self._players:
            play = partial(self._play, player)
            events += [(outcome.call.time, play, outcome) for outcome in player.outcomes]
        events.sort(key=lambda event: event[0])
        for (_, _, outcome), (following, _, _) in itertools.pairwise(events):
            played = outcome.call
            if isinstance(played, CapturedCall) and (played.cancelled or played.ended > following):
                self._overlapped.add(id(outcome))
        return events

    async def _play(self, player: BinaryPlayer | SrmpPlayer, outcome: Outcome) -> None:
        await self._land(outcome.call.time)
        try:
            await player.play(outcome)
        except (OSError, DecodeError) as error:
            player.closed(f"it could not be played: {error}")

    async def _catch_up(self, moment: int | None) -> None:
        """Wait for other queue managers' messages; what is on its way gets a while."""
        for player in self._players:
            await player.caught_up(moment)
        if any(player.in_flight for player in self._players):
            await asyncio.sleep(_SETTLE_SECONDS)

    async def _wait_until(self, moment: int, first: int, began: float) -> None:
        if self._speed:
            late = (moment - first) / 1e9 / self._speed - (time.perf_counter() - began)
            if late > 0:
                await asyncio.sleep(late)

    def _connection(self, call: CapturedCall) -> _Connection:
        number = call.conversation.number
        if number not in self._connections:
            self._connections[number] = _Connection(self, call.conversation)
        return self._connections[number]

    async def _send(self, outcome: Outcome) -> None:
        call = cast(CapturedCall, outcome.call)
        await self._land(call.time)
        if self._players:
            await self._catch_up(call.time)
        outcome.reason = self._elsewhere(call) or _unplayable(call) or self._unknown_object(call)
        if outcome.reason:
            return
        if any(live.call.conversation is not call.conversation for live in self._flying):
            await asyncio.sleep(_SETTLE_SECONDS)
        live = _Live(outcome)
        try:
            binding = await self._connection(call).binding(call)
            await self._start(live, binding)
        except (RpcFault, AuthenticationError, OSError) as error:
            live.problem = f"the call could not be made: {error}"
            self._played.append(live)

    def _elsewhere(self, call: CapturedCall) -> str:
        """Why a call cannot be made to this server; empty if it can."""
        if not is_local(call.conversation):
            return ""
        if call.interface_name == "rpcqm_admin":
            return "it is for the operator of the captured server"
        return "" if self.server.socket else "it was made over the server's local socket"

    def _unknown_object(self, call: CapturedCall) -> str:
        """Why a call cannot be made to its object; empty if it can."""
        if not is_of_objects(call) or self._objects.knows(call):
            return ""
        return "its object was made before the capture began, or is a client's"

    async def _start(self, live: _Live, binding: Binding) -> None:
        call = live.call
        operation = call.operation
        if operation is None:
            return
        request, live_object = self._mapping.request(call), None
        if is_of_objects(call):
            request, live_object = self._objects.request(request), self._objects.object_of(call)
        stub = operation.codec(binding.syntax).request.encode(request)
        live.began = time.perf_counter()
        live.pending = binding.client.start(binding.context_id, call.opnum, stub, live_object)
        answer = self._answer(live, binding)
        self._played.append(live)
        alone = call.ended and id(live.outcome) not in self._overlapped
        if not alone:
            live.task = asyncio.ensure_future(answer)
            self._flying.append(live)
        # Now it is sent; what the next step needs is decoded while the server works.
        await asyncio.sleep(0)
        self._look_ahead(call)
        if alone:
            await answer

    def _look_ahead(self, call: CapturedCall) -> None:
        call.decoded_response()
        following = self._following.call if self._following is not None else None
        if isinstance(following, CapturedCall):
            following.decoded_request()
            following.decoded_response()

    async def _answer(self, live: _Live, binding: Binding) -> None:
        assert live.pending is not None
        try:
            stub = await live.pending.result()
        except RpcFault as fault:
            live.fault = int(fault.status) & 0xFFFFFFFF
        except ConnectionError as error:
            live.problem = str(error)
        else:
            self._take(live, stub, binding)
        live.ended = time.perf_counter()
        live.outcome.duration_ms = (live.ended - live.began) * 1000

    def _take(self, live: _Live, stub: bytes, binding: Binding) -> None:
        call = live.call
        operation = call.operation
        assert operation is not None
        try:
            live.answer = operation.codec(binding.syntax).response.decode(stub)
        except DecodeError as error:
            live.problem = f"the answer cannot be decoded: {error}"
            return
        captured = call.decoded_response()
        if captured is not None:
            self._mapping.response(call, captured, live.answer)
            if is_of_objects(call):
                self._objects.response(captured, live.answer)

    async def _land(self, moment: int | None) -> None:
        """Wait for the calls that were answered before a moment; for all calls if it is None."""
        waiting = []
        for live in self._flying:
            call = live.call
            if live.task is None:
                continue
            if moment is None or (call.ended and call.ended <= moment):
                await self._finish(live, bool(call.ended))
            else:
                waiting.append(live)
        self._flying = waiting

    async def _finish(self, live: _Live, answered: bool) -> None:
        assert live.task is not None
        patience = _PATIENCE_SECONDS if answered else _SETTLE_SECONDS
        took = live.call.duration_ms or 0.0
        try:
            await asyncio.wait_for(live.task, patience + took / 1000)
        except TimeoutError:
            # A call that was never answered in the capture is right to stay open.
            live.problem = "" if not answered else "no answer came"

    async def _cancel(self, outcome: Outcome) -> None:
        for live in self._flying:
            if live.outcome is outcome and live.pending is not None:
                live.pending.cancel()

    # The comparison.

    def _compared(self) -> dict[str, int]:
        comparison = Comparison(self._mapping)
        for live in self._played:
            self._compare(live, comparison)
        self._outcomes += compare(self._sessions, comparison)
        for player in self._posts:
            self._outcomes += player.compare(comparison)
        return comparison.ignored

    def _compare(self, live: _Live, comparison: Comparison) -> None:
        outcome, call = live.outcome, live.call
        captured = call.decoded_response()
        if live.problem:
            outcome.differences.append(Difference("#answer", _told(call), live.problem, "exact"))
        elif call.fault is not None or live.fault is not None:
            if call.fault != live.fault:
                told = name_of_status(live.fault) if live.fault is not None else "no fault"
                outcome.differences.append(Difference("#fault", _told(call), told, "exact"))
        elif captured is None and live.answer is not None:
            outcome.differences.append(Difference("#answer", _told(call), "answered", "exact"))
        elif captured is not None:
            outcome.differences = comparison.compare(call, captured, live.answer)
        outcome.verdict = DIFFERENT if outcome.differences else SAME


def is_local(conversation: Conversation) -> bool:
    """Whether a conversation was recorded at a local socket."""
    return conversation.server == f"{LOCAL_SOCKET[0]}:{LOCAL_SOCKET[1]}"


def _told(call: CapturedCall) -> str:
    """How a captured call ended, in a word."""
    if call.fault is not None:
        return name_of_status(call.fault)
    return "answered" if call.ended else "no answer"


def _unplayable(call: CapturedCall) -> str:
    """Why a call cannot be played; empty when it can."""
    if call.sealed:
        return "sealed; give --account"
    if call.context.interface is None:
        return "its interface is not known"
    if call.operation is None:
        return "its method is not known"
    if call.request is None:
        return call.note or "its request was not captured"
    if call.decoded_request() is None:
        return call.note
    if call.fault is None and call.ended and call.decoded_response() is None:
        return call.note or "its response cannot be decoded"
    return ""
