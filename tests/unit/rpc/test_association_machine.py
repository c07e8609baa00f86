"""A state machine of connections: whatever PDUs come in whatever order, nothing is left behind.

The model knows which connections there are, which calls wait, and which handles are open; the
runtime has to agree after every step, and to have forgotten everything in the end.
"""

import gc
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.rpc import pdu
from rpcqm.rpc.association import ServerAssociation
from rpcqm.rpc.association_states import TRANSITIONS, State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import PduType
from rpcqm.rpc.limits import Limits
from tests.support.rpc.probe import (
    OTHER,
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

ECHO, WAIT, OPEN, USE, CLOSE, USE_IN_TURN, WAIT_WITH = 1, 2, 4, 5, 6, 7, 10
LIMITS = Limits(calls=6, handles=5, contexts=4, call_bytes=20_000, call_fragments=12)
UNKNOWN = bytes(4) + b"no handle at all"


class CountingHandlers(ProbeHandlers):
    """Handlers that count the handles they opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = self.closed = 0

    def open(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        response = super().open(call, request)
        self.opened += 1
        return response

    def close(self, call: Call, request: ProbeRequest) -> ProbeResponse:
        self.closed += request.handle is not None
        return super().close(call, request)


@dataclass
class Connection:
    """What the model knows of one connection."""

    wire: Wire
    next_call: int = 1
    handles: list[bytes] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    sent: set[int] = field(default_factory=set)

    def call_id(self) -> int:
        self.next_call += 1
        self.sent.add(self.next_call - 1)
        return self.next_call - 1


class Connections(RuleBasedStateMachine):
    """Clients of one server."""

    connections: Bundle[Connection] = Bundle("connections")

    @initialize()
    def begin(self) -> None:
        self.handlers = CountingHandlers()
        self.rig = Rig(self.handlers, limits=LIMITS)
        self.known: list[Connection] = []
        self.everyone: list[Connection] = []

    # Coming and going.

    @rule(target=connections, first=st.sampled_from([bind(), bind(pfc_flags=0x13)]))
    def connect(self, first: bytes) -> Connection:
        made = Connection(self.rig.connect())
        self.known.append(made)
        self.everyone.append(made)
        self.feed(made, first)
        return made

    @rule(target=connections, other=connections)
    def connect_to_the_same_group(self, other: Connection) -> Any:
        if not len(self.rig.groups) or other.wire.association.state is not State.BOUND:
            return multiple()
        return self.connect(bind(assoc_group_id=other.wire.association.group.group_id))

    @rule(gone=consumes(connections))
    def lose(self, gone: Connection) -> None:
        self.drop(gone)

    @rule(stopped=connections)
    def stop(self, stopped: Connection) -> None:
        stopped.wire.association.stop()
        self.take(stopped)

    # Calls.

    @rule(by=connections, opnum=st.integers(0, 13), stub=st.binary(max_size=24))
    def call(self, by: Connection, opnum: int, stub: bytes) -> None:
        self.feed(by, request(opnum, stub, by.call_id()))

    @rule(by=connections, size=st.integers(0, 9000))
    def echo(self, by: Connection, size: int) -> None:
        self.feed(by, request(ECHO, bytes(size % 5000), by.call_id()))

    @rule(by=connections, name=st.sampled_from("abc"))
    def wait(self, by: Connection, name: str) -> None:
        self.feed(by, request(WAIT, name.encode(), by.call_id()))

    @rule(by=connections)
    def open(self, by: Connection) -> None:
        for answer in self.feed(by, request(OPEN, b"queue", by.call_id())):
            if isinstance(answer, pdu.Response) and len(answer.stub_data) == 24:
                by.handles.append(answer.stub_data[:20])

    @rule(
        by=connections,
        owner=connections,
        opnum=st.sampled_from([USE, USE_IN_TURN, WAIT_WITH, CLOSE]),
        which=st.integers(0, 5),
    )
    def use(self, by: Connection, owner: Connection, opnum: int, which: int) -> None:
        known = [*owner.handles, UNKNOWN]
        self.feed(by, request(opnum, known[which % len(known)] + b"x", by.call_id()))

    @rule(by=connections, pieces=st.lists(st.integers(0, 4000), min_size=1, max_size=6))
    def call_in_fragments(self, by: Connection, pieces: list[int]) -> None:
        call_id = by.call_id()
        for number, size in enumerate(pieces):
            flags = (number == 0) | (number == len(pieces) - 1) << 1
            self.feed(by, request(ECHO, bytes(size), call_id, pfc_flags=flags))

    @rule(by=connections, size=st.integers(0, 5000))
    def begin_fragments(self, by: Connection, size: int) -> None:
        self.feed(by, request(ECHO, bytes(size), by.call_id(), pfc_flags=1))

    @rule(
        by=connections, back=st.integers(0, 8), kind=st.sampled_from([pdu.CoCancel, pdu.Orphaned])
    )
    def give_up(self, by: Connection, back: int, kind: type[pdu.Pdu]) -> None:
        self.feed(by, kind(call_id=max(0, by.next_call - back)).pack())

    @rule(which=st.integers(0, 20), fails=st.booleans(), size=st.integers(0, 9000))
    def answer(self, which: int, fails: bool, size: int) -> None:
        waiting = self.waiting()
        if not waiting:
            return
        completion = waiting[which % len(waiting)]
        if fails:
            completion.fail(MQError(HResult.MQ_ERROR_OPERATION_CANCELLED))
        else:
            completion.succeed(ProbeResponse(octets=bytes(size)))
        for each in self.known:
            self.take(each)

    # What only a broken or hostile client does.

    @rule(by=connections, identifier=st.integers(0, 5), abstract=st.sampled_from([OTHER]))
    def alter(self, by: Connection, identifier: int, abstract: pdu.SyntaxId) -> None:
        self.feed(by, alter(p_context_elem=(element(identifier, abstract),)))

    @rule(by=connections, back=st.integers(0, 4), flags=st.sampled_from([0, 1, 2, 3, 7]))
    def use_a_call_identifier_again(self, by: Connection, back: int, flags: int) -> None:
        call_id = max(0, by.next_call - back)
        by.next_call = max(by.next_call, call_id + 1)
        by.sent.discard(call_id)
        self.feed(by, request(ECHO, b"again", call_id, pfc_flags=flags))

    @rule(by=connections, ptype=st.integers(0, 21), body=st.binary(max_size=30))
    def anything(self, by: Connection, ptype: int, body: bytes) -> None:
        length = (16 + len(body)).to_bytes(2, "little")
        self.feed(by, bytes([5, 0, ptype, 3, 16, 0, 0, 0]) + length + bytes(6) + body)

    @rule(by=connections, octets=st.binary(max_size=40))
    def garbage(self, by: Connection, octets: bytes) -> None:
        by.wire.association.receive_data(octets)
        self.take(by)

    # What the rules share.

    def feed(self, by: Connection, octets: bytes) -> list[pdu.Pdu]:
        """Send one PDU; the state that follows is one that the table allows."""
        association = by.wire.association
        before, whole = association.state, not association._partial
        association.receive_data(octets)
        after = association.state
        if whole and after is not before:
            row = TRANSITIONS[before].get(PduType(octets[2])) if octets[2] in PTYPES else None
            assert after in (row.then if row is not None else {State.CLOSED})
        return self.take(by)

    @staticmethod
    def take(by: Connection) -> list[pdu.Pdu]:
        answers = by.wire.received()
        for answer in answers:
            last = answer.pfc_flags & 2 and isinstance(answer, pdu.Response | pdu.Fault)
            by.answers[answer.call_id] += bool(last)
        return answers

    def waiting(self) -> list[Completion[ProbeResponse]]:
        return [each for each in self.handlers.waiting if not each.done]

    def drop(self, gone: Connection) -> None:
        self.known.remove(gone)
        gone.wire.association.connection_lost()

    # What always holds.

    @invariant()
    def handles_are_open_or_closed_or_run_down(self) -> None:
        if not hasattr(self, "handlers"):
            return
        groups = {id(group): group for each in self.known if (group := joined(each)) is not None}
        still_open = sum(len(group.handles) for group in groups.values())
        ended = self.handlers.closed + len(self.handlers.run_down)
        assert still_open == self.handlers.opened - ended
        assert len(self.rig.groups) == len(groups)

    @invariant()
    def calls_wait_within_their_limits(self) -> None:
        if not hasattr(self, "rig"):
            return
        associations = [each.wire.association for each in self.known]
        assert all(len(each.calls) <= LIMITS.calls for each in associations)
        assert all(0 <= each.pending <= LIMITS.calls for each in associations)
        assert self.rig.dispatcher.pending >= len(self.waiting())
        largest = LIMITS.call_bytes + LIMITS.fragment_size
        assert all(each.unfinished_bytes <= largest for each in associations)

    @invariant()
    def nothing_is_answered_twice(self) -> None:
        for each in getattr(self, "known", ()):
            assert all(each.answers[call_id] <= 1 for call_id in each.sent)

    def teardown(self) -> None:
        for each in list(self.known):
            self.drop(each)
        for completion in self.handlers.waiting:
            if not completion.done:
                completion.succeed(ProbeResponse())
        assert self.rig.dispatcher.pending == 0
        assert len(self.rig.groups) == 0
        assert self.handlers.opened == self.handlers.closed + len(self.handlers.run_down)
        self.check_that_nothing_is_kept()

    def check_that_nothing_is_kept(self) -> None:
        """Once the test has let go of them, connections are gone with all they had."""
        self.handlers.calls.clear()
        self.handlers.waiting.clear()
        kept = []
        for each in self.everyone:
            kept.append(weakref.ref(each.wire.association._negotiation.presentation))
            each.wire.calls.clear()
            each.wire.events.clear()
            del each.wire.association
        gc.collect()
        assert [each() for each in kept] == [None] * len(kept)


PTYPES = frozenset(map(int, PduType))


def joined(connection: Connection) -> Any:
    """The group that a connection belongs to, None before its bind."""
    association: ServerAssociation = connection.wire.association
    return association._joined_group


Connections.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConnections = Connections.TestCase
