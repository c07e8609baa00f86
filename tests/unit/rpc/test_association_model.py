"""Random conversations: the association never leaves its table and leaks nothing."""

import gc
import weakref
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.rpc import pdu
from rpcqm.rpc.association_states import TRANSITIONS, State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import PduType
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import PKT_INTEGRITY
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator, NtlmProvider
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import (
    OTHER,
    PROBE,
    ProbeResponse,
    Rig,
    Wire,
    alter,
    bind,
    element,
    request,
)

SMALL = Limits(calls=4, contexts=4, handles=3, call_bytes=200, call_fragments=5)
HANDLE = b"\0\0\0\0" + b"\x07" * 16

call_ids = st.integers(1, 6)
contexts = st.lists(
    st.builds(
        element,
        st.integers(0, 5),
        st.sampled_from([PROBE, OTHER, NDR]),
        st.lists(st.sampled_from([NDR, NDR64]), max_size=2),
    ),
    max_size=3,
).map(tuple)
trailers = st.none() | st.builds(
    pdu.SecurityTrailer,
    st.sampled_from([0, 9, 10]),
    st.integers(0, 7),
    st.integers(0, 2),
    st.sampled_from(
        [
            b"\x01" + bytes(15),
            b"NTLMSSP\0",
            NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT_INTEGRITY).step(b""),
        ]
    ),
    st.integers(0, 20),
)
stubs = st.sampled_from([b"", b"octets", b"bad", HANDLE, HANDLE + b"x", bytes(120)])
requests = st.builds(
    lambda opnum, stub, call_id, flags, context, auth, big: request(
        opnum, stub, call_id, pfc_flags=flags, p_cont_id=context, auth=auth, big_endian=big
    ),
    st.integers(0, 13),
    stubs,
    call_ids,
    st.sampled_from([3, 3, 3, 3, 1, 0, 2, 0x83, 7, 0x43, 0x13]),
    st.integers(0, 2),
    st.none() | trailers,
    st.booleans(),
)
proper_bind = st.builds(bind, pfc_flags=st.sampled_from([3, 0x13, 7]))
others = st.one_of(
    st.builds(bind, p_context_elem=contexts, assoc_group_id=st.integers(0, 2), auth=trailers),
    st.builds(alter, p_context_elem=contexts, auth=trailers),
    st.builds(lambda auth: pdu.Auth3(call_id=1, auth=auth).pack(), trailers),
    st.builds(lambda call_id: pdu.CoCancel(call_id=call_id).pack(), call_ids),
    st.builds(lambda call_id: pdu.Orphaned(call_id=call_id).pack(), call_ids),
    st.builds(lambda call_id: pdu.Response(call_id=call_id, p_cont_id=0).pack(), call_ids),
    st.binary(max_size=40),
)
conversations = st.lists(st.one_of(requests, requests, others), max_size=25)


def check_step(wire: Wire, before: State, octets: bytes) -> None:
    """The state after a PDU is one that the table allows."""
    after = wire.association.state
    if after is before:
        return
    ptype = octets[2] if len(octets) > 2 else None
    known = ptype in set(PduType)
    row = TRANSITIONS[before].get(PduType(ptype)) if known and ptype is not None else None
    allowed = row.then if row is not None else frozenset({State.CLOSED})
    assert after in allowed | {State.CLOSED}


class Conversation:
    """One association that is fed PDUs, with some of its waiting calls ended on the way."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.wire = rig.connect()
        self.random = Random(seed)
        self.answers: list[pdu.Pdu] = []

    def feed(self, octets: bytes) -> None:
        before = self.wire.association.state
        partial = bool(self.wire.association._partial)
        self.answers += self.wire.send(octets)
        if not partial and len(octets) >= 16:
            check_step(self.wire, before, octets)
        if self.random.random() < 0.3:
            self.end_some()
        self.answers += self.wire.received()

    def end_some(self) -> None:
        for completion in self.rig.handlers.waiting:
            if not completion.done and self.random.random() < 0.5:
                self.end(completion)

    def end(self, completion: Completion[ProbeResponse]) -> None:
        if self.random.random() < 0.5:
            completion.succeed(ProbeResponse(octets=bytes(self.random.randrange(9000))))
        else:
            completion.fail(MQError(HResult.MQ_ERROR_OPERATION_CANCELLED))


@settings(
    max_examples=400,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=proper_bind | others, rest=conversations, seed=st.integers(0, 1000))
def test_random_conversations_stay_in_the_table_and_leak_nothing(
    tmp_path: Path, first: bytes, rest: list[bytes], seed: int
) -> None:
    provider = NtlmProvider(TestAccounts(tmp_path))
    rig = Rig(limits=SMALL, providers={10: provider})
    conversation = Conversation(rig, seed)
    for octets in [first, *rest]:
        conversation.feed(octets)
    association = conversation.wire.association
    whole = conversation.wire.calls
    in_flight = len(association.calls)
    association.connection_lost()
    for completion in rig.handlers.waiting:
        if not completion.done:
            conversation.end(completion)
    assert association.state is State.CLOSED
    assert (len(association.calls), len(rig.groups)) == (0, 0)
    assert in_flight <= SMALL.calls
    assert all(call.answered for call in whole)
    check_notifications(rig, whole)


def check_notifications(rig: Rig, whole: list[Call]) -> None:
    """Nobody is told twice, and no handle outlives its group."""
    told = Counter(rig.handlers.seen)
    assert sum(told[name] for name in told if name.startswith("abandoned")) <= len(whole)
    opened = sum(call.opnum == 4 for call in whole)
    closed = sum(count for name, count in told.items() if name.startswith("closed"))
    assert len(rig.handlers.run_down) + closed <= opened


@settings(max_examples=200, deadline=None)
@given(data=st.data(), stop_at=st.integers(0, 10))
def test_a_server_may_stop_in_the_middle(data: Any, stop_at: int) -> None:
    rig = Rig(limits=SMALL)
    conversation = Conversation(rig, 1)
    conversation.feed(bind())
    for index, octets in enumerate(data.draw(conversations)):
        if index == stop_at:
            conversation.wire.association.stop()
        conversation.feed(octets)
    conversation.wire.association.stop()
    for completion in rig.handlers.waiting:
        if not completion.done:
            completion.succeed(ProbeResponse())
    assert conversation.wire.association.state is State.CLOSED or (
        len(conversation.wire.association.calls)
    )
    conversation.wire.association.connection_lost()
    assert len(rig.groups) == 0


@settings(max_examples=300, deadline=None)
@given(
    octets=st.sampled_from(
        [bind(), request(1, b"octets"), alter(), pdu.CoCancel(call_id=1).pack()]
    ),
    position=st.integers(0, 80),
    value=st.integers(0, 255),
    rest=st.binary(max_size=60),
)
def test_changed_pdus_do_no_harm(octets: bytes, position: int, value: int, rest: bytes) -> None:
    wire = Rig(limits=SMALL).connect()
    wire.bind()
    changed = bytearray(octets)
    changed[position % len(changed)] = value
    wire.send(bytes(changed))
    wire.send(rest)
    wire.association.connection_lost()
    assert len(wire.rig.groups) == 0


def test_nothing_is_left_of_a_connection() -> None:
    rig = Rig(limits=SMALL)
    random = Random(7)
    gone: list[weakref.ref[Any]] = []
    for _ in range(20):
        conversation = Conversation(rig, random.randrange(1000))
        conversation.feed(bind())
        for call_id in range(1, 5):
            conversation.feed(request(random.choice([0, 1, 2, 4, 5]), HANDLE, call_id))
        gone.append(weakref.ref(conversation.wire.association._negotiation.presentation))
        conversation.wire.association.connection_lost()
        with suppress(IndexError):
            conversation.rig.handlers.waiting.clear()
        conversation.rig.handlers.calls.clear()
        conversation.wire.calls.clear()
        conversation.wire.events.clear()
        del conversation
    gc.collect()
    assert [each() for each in gone] == [None] * 20
