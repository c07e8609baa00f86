"""Plays the client side of a capture against a server, and compares what it answers."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.capture.accounts import Account
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.call import Call, Conversation, name_of_status
from rpcqm.capture.replay_mapping import Mapping
from rpcqm.capture.replay_policy import Comparison, Difference
from rpcqm.codec.interface import Interface, load
from rpcqm.rpc.client import Binding, PendingCall, RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.endpoint_mapper import resolve
from rpcqm.rpc.ntlm import NtlmCredentials
from rpcqm.rpc.security import AuthenticationError

SAME, DIFFERENT, SKIPPED = "same", "different", "skipped"

AS_FAST_AS_POSSIBLE = 0.0
_SETTLE_SECONDS = 0.02
"""How long a call that waits has to reach the server before another connection goes on."""
_PATIENCE_SECONDS = 10.0
"""How long an answer may take longer than when it was captured."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a capture is played: `machine` and `address` stand for the captured ones in names."""

    host: str
    endpoint_mapper_port: int = 135
    machine: str = "."
    address: str = "127.0.0.1"


@dataclass(slots=True)
class Outcome:
    """What became of one call."""

    call: Call
    verdict: str = SKIPPED
    reason: str = ""
    differences: list[Difference] = field(default_factory=list)
    duration_ms: float | None = None


@dataclass(slots=True)
class Result:
    """All outcomes in the order of the requests; `seconds` is how long the playing took."""

    outcomes: list[Outcome]
    ignored: dict[str, int]
    seconds: float

    def count(self, verdict: str) -> int:
        return sum(outcome.verdict == verdict for outcome in self.outcomes)

    @property
    def clean(self) -> bool:
        return self.count(DIFFERENT) == 0


class _Live:
    """A call that is being played."""

    __slots__ = ("answer", "began", "ended", "fault", "outcome", "pending", "problem", "task")

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
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
        self.left = 0

    async def binding(self, call: Call) -> Binding:
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
        port = await self._replay.port_of(interface)
        credentials = self._replay.credentials(self._conversation)
        level = AuthenticationLevel(self._conversation.level) if credentials else None
        return await RpcClient.connect_tcp(
            server.host,
            port,
            credentials=credentials,
            level=level,
            group_id=self._replay.group_of(self._conversation),
        )

    async def close(self) -> None:
        if self._client is not None:
            self._client.close()
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
        accounts: Sequence[Account] = (),
        speed: float = AS_FAST_AS_POSSIBLE,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.server = server
        self._accounts = accounts
        self._speed = speed
        self._progress = progress
        self._mapping = Mapping(server.machine, server.address)
        calls = [each for each in exchanges if isinstance(each, Call)]
        self._outcomes = [Outcome(call) for call in sorted(calls, key=lambda call: call.time)]
        self._packets = len(exchanges) - len(calls)
        self._connections: dict[int, _Connection] = {}
        self._groups: dict[tuple[str, int], int] = {}
        self._ports: dict[str, int] = {}
        self._flying: list[_Live] = []
        self._played: list[_Live] = []
        self._overlapped: set[int] = set()

    # What connections ask.

    async def port_of(self, interface: Interface) -> int:
        """Where the live server serves an interface."""
        if interface.name == "ept":
            return self.server.endpoint_mapper_port
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
        """Play all of it; OSError when nobody listens."""
        await self._knock()
        began = time.perf_counter()
        for outcome in self._outcomes:
            self._connection(outcome.call).left += 1
        events = self._events()
        first = events[0][0] if events else 0
        for number, (moment, action, outcome) in enumerate(events):
            await self._wait_until(moment, first, began)
            await action(outcome)
            self._progress(number + 1)
        await self._land(None)
        seconds = time.perf_counter() - began
        for connection in self._connections.values():
            await connection.close()
        return Result(self._outcomes, self._compared(), seconds)

    async def _knock(self) -> None:
        """See that somebody listens, so that one sentence can say it when nobody does."""
        port = self.server.endpoint_mapper_port
        _, writer = await asyncio.open_connection(self.server.host, port)
        writer.close()
        await writer.wait_closed()

    def _events(self) -> list[tuple[int, Callable[[Outcome], Awaitable[None]], Outcome]]:
        events: list[tuple[int, Callable[[Outcome], Awaitable[None]], Outcome]] = []
        for outcome in self._outcomes:
            call = outcome.call
            events.append((call.time, self._send, outcome))
            if call.cancelled:
                events.append((call.cancelled, self._cancel, outcome))
        events.sort(key=lambda event: event[0])
        for (_, _, outcome), (following, _, _) in itertools.pairwise(events):
            if outcome.call.cancelled or outcome.call.ended > following:
                self._overlapped.add(id(outcome))
        return events

    async def _wait_until(self, moment: int, first: int, began: float) -> None:
        if self._speed:
            late = (moment - first) / 1e9 / self._speed - (time.perf_counter() - began)
            if late > 0:
                await asyncio.sleep(late)

    def _connection(self, call: Call) -> _Connection:
        number = call.conversation.number
        if number not in self._connections:
            self._connections[number] = _Connection(self, call.conversation)
        return self._connections[number]

    async def _send(self, outcome: Outcome) -> None:
        call = outcome.call
        await self._land(call.time)
        outcome.reason = _unplayable(call)
        if outcome.reason:
            return
        if any(live.outcome.call.conversation is not call.conversation for live in self._flying):
            await asyncio.sleep(_SETTLE_SECONDS)
        live = _Live(outcome)
        try:
            binding = await self._connection(call).binding(call)
            await self._start(live, binding)
        except (RpcFault, AuthenticationError, OSError) as error:
            live.problem = f"the call could not be made: {error}"
            self._played.append(live)

    async def _start(self, live: _Live, binding: Binding) -> None:
        call = live.outcome.call
        operation = call.operation
        if operation is None:
            return
        stub = operation.codec(binding.syntax).request.encode(self._mapping.request(call))
        live.began = time.perf_counter()
        live.pending = binding.client.start(binding.context_id, call.opnum, stub)
        answer = self._answer(live, binding)
        self._played.append(live)
        if call.ended and id(live.outcome) not in self._overlapped:
            await answer
        else:
            live.task = asyncio.ensure_future(answer)
            self._flying.append(live)
            await asyncio.sleep(0)

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
        call = live.outcome.call
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

    async def _land(self, moment: int | None) -> None:
        """Wait for the calls that were answered before a moment; None: for all."""
        waiting = []
        for live in self._flying:
            call = live.outcome.call
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
        took = live.outcome.call.duration_ms or 0.0
        try:
            await asyncio.wait_for(live.task, patience + took / 1000)
        except TimeoutError:
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
        return comparison.ignored

    def _compare(self, live: _Live, comparison: Comparison) -> None:
        outcome, call = live.outcome, live.outcome.call
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


def _told(call: Call) -> str:
    """How a captured call ended, in a word."""
    if call.fault is not None:
        return name_of_status(call.fault)
    return "answered" if call.ended else "no answer"


def _unplayable(call: Call) -> str:
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
