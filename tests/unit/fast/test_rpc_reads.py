"""Reads that templates answer have the outcome of the careful path (docs/request-templates.md)."""

import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import MessagePosition
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.packet.remote_read import ExtendedAddressHeader
from rpcqm.codec.types.remoteread import R_StartReceiveResponse
from rpcqm.fast.doors import rpc_start as _start_templates
from rpcqm.fast.first_messages import FirstMessage
from rpcqm.fast.formats.read_response import ReadAnswer, ReadResponse
from rpcqm.interfaces._message_packet import host_of
from rpcqm.interfaces.remote_read import PENDING_REQUEST_CLEANUP
from tests.support.codec.packets import split_message_packet
from tests.support.fast.template_twins import Half, Twins, twins
from tests.support.queue_manager import MEMORY, RunningQueueManager
from tests.support.rpc.callers import Caller
from tests.support.rpc.remote_reader import (
    ACK,
    INFINITE,
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_NEXT,
    LOOKUP_PEEK_PREV,
    LOOKUP_RECEIVE_CURRENT,
    LOOKUP_RECEIVE_NEXT,
    LOOKUP_RECEIVE_PREV,
    PEEK_ACCESS,
    PEEK_CURRENT,
    PEEK_NEXT,
    RECEIVE,
    SEQUENCE,
    Reader,
    body_of,
    served_remote_read,
)
from tests.support.shadow.comparing import Difference, Shadow
from tests.unit.fast.test_rpc_sends import OTHERS, SENDS, Story, messages

LOOKUPS = (
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_NEXT,
    LOOKUP_PEEK_PREV,
    LOOKUP_RECEIVE_CURRENT,
    LOOKUP_RECEIVE_NEXT,
    LOOKUP_RECEIVE_PREV,
)
RECEIVES = (RECEIVE, *LOOKUPS[3:])
READS = st.tuples(
    st.just("start"),
    st.sampled_from([RECEIVE, RECEIVE, PEEK_CURRENT, PEEK_NEXT, 77]),
    st.just(None),
    st.sampled_from([INFINITE, INFINITE, 0, 10, 1023, 5000]),
    st.integers(0, 9),
)
IDENTIFIERS = st.tuples(st.integers(0, 9), st.sampled_from([0, 0, 0, 1, -1])) | st.sampled_from(
    [None, (0, 1 << 60)]
)
SEEKS = st.tuples(
    st.just("start"),
    st.sampled_from(LOOKUPS),
    IDENTIFIERS,
    st.sampled_from([INFINITE, INFINITE, 0, 10, 1023]),
    st.integers(0, 9),
)
TURNS = st.lists(
    st.lists(st.one_of(SENDS, READS, SEEKS, READS, SEEKS, OTHERS), min_size=1, max_size=8),
    min_size=1,
    max_size=8,
)


class Reading(Story):
    """What one half is asked for, with reads of all kinds."""

    def turn(self, actions: list[Any]) -> list[object]:
        positions = self.half.qm.find().message_position_list
        self.keys: list[int] = []
        key = positions.first(False)
        while key is not None:
            self.keys.append(key)
            key = positions.next(key, False)
        return super().turn(actions)

    def start(
        self, action: int, identifier: tuple[int, int] | None, maximum_body: int, again: int
    ) -> Any:
        """Read by a key that was there, or near one; now and then under a number that is in use."""
        lookup = 0
        if identifier is not None and self.keys:
            number, offset = identifier
            lookup = self.keys[number % len(self.keys)] + offset
        if again:
            self.requests += 1
        if action in RECEIVES:
            self.reads.append(self.requests)
        return self.half.reader.start(
            self.half.reading,
            action,
            lookup_identifier=lookup,
            request_id=self.requests,
            maximum_body=maximum_body,
        )


def _turn_of(stories: dict[Half, Reading], actions: list[Any], half: Half) -> list[object]:
    return stories[half].turn(actions)


def tell(both: Twins, turns: list[list[Any]]) -> None:
    stories = {half: Reading(half) for half in both.halves}
    for actions in turns:
        both.do(partial(_turn_of, stories, actions))
        both.check()


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda each: each.name)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=TURNS, usual=messages())
def test_reads_have_one_outcome_both_ways(
    syntax: TransferSyntax, turns: list[list[Any]], usual: dict[str, Any]
) -> None:
    read: list[list[Any]] = [[("start", RECEIVE, None, INFINITE, 1)], [("end", ACK)]]
    learning = [*[[("send", 0, b"body", usual)]] * 5, *read, *read]
    with TemporaryDirectory(dir=MEMORY) as directory, twins(Path(directory), syntax) as both:
        tell(both, [*learning, *turns, *learning])


# One queue manager


@pytest.fixture
def reader(qm: RunningQueueManager) -> Reader:
    """Its requests are recognised, and what they are answered with has been learned."""
    qm.speed.turn.is_on = True
    qm.create()
    reader = Reader(served_remote_read(qm).connect())
    handle = reader.open(qm.find())
    for _ in range(2):
        reader.read(handle)
    qm.send(qm.find(), b"learned from")
    assert reader.body(handle, request_id=1) == b"learned from"
    assert reader.end(handle, 1) == "MQ_OK"
    return reader


@pytest.fixture
def differences(qm: RunningQueueManager) -> list[Difference]:
    """What a shadow finds, which otherwise ends the process."""
    found: list[Difference] = []
    qm.speed.turn.shadow = Shadow(qm.store, qm.clock, found.append)
    return found


def compared(qm: RunningQueueManager) -> int:
    assert qm.speed.turn.shadow is not None
    return qm.speed.turn.shadow.compared


def test_reads_like_ones_before_are_answered_by_a_template(
    qm: RunningQueueManager, reader: Reader, differences: list[Difference]
) -> None:
    keys = [qm.send(qm.find(), body) for body in (b"one", b"two", b"three")]
    handle = reader.open(qm.find())
    assert body_of(reader.read(handle)) == b"one"
    assert body_of(reader.read(handle, PEEK_CURRENT)) == b"two"
    for action, body in ((LOOKUP_PEEK_CURRENT, b"two"), (LOOKUP_RECEIVE_NEXT, b"three")):
        assert body_of(reader.read(handle, action, lookup_identifier=keys[1])) == body
    assert compared(qm) == 4
    assert not differences


def test_what_does_not_go_whole_is_left_to_the_codec(
    qm: RunningQueueManager, reader: Reader, differences: list[Difference]
) -> None:
    qm.send(qm.find(), b"0123456789")
    handle = reader.open(qm.find())
    assert reader.read(handle, PEEK_CURRENT, maximum_body=9).pdwNumberOfSections == 2
    assert not compared(qm)
    assert reader.read(handle, PEEK_CURRENT, maximum_body=10).pdwNumberOfSections == 1
    assert compared(qm) == 1


def test_a_difference_of_an_answer_is_found(
    qm: RunningQueueManager,
    reader: Reader,
    differences: list[Difference],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    qm.send(qm.find(), b"one")
    monkeypatch.setattr(_start_templates, "times_at", lambda arrival, key: (0, 0))
    reader.read(reader.open(qm.find()), PEEK_CURRENT)
    assert [each.what for each in differences] == ["answers"]


# The first message, found and locked in few steps


@pytest.fixture
def locked(qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The keys of messages that were locked in few steps."""
    firsts, keys = qm.speed.first_messages, list[int]()
    lock = firsts.lock

    def noting(descriptor: OpenQueueDescriptor, first: FirstMessage) -> None:
        keys.append(first.key)
        lock(descriptor, first)

    monkeypatch.setattr(firsts, "lock", noting)
    return keys


def test_the_first_message_is_locked_in_few_steps(
    qm: RunningQueueManager, reader: Reader, locked: list[int]
) -> None:
    keys = [qm.send(qm.find(), body) for body in (b"one", b"two")]
    handle = reader.open(qm.find())
    assert [reader.body(handle) for _ in keys] == [b"one", b"two"]
    assert locked == keys


@pytest.mark.parametrize("elsewhere", ["192.0.2.77", "2001:db8::7", "fe80::7%3"])
def test_a_message_from_elsewhere_tells_its_address_in_few_steps(
    qm: RunningQueueManager, reader: Reader, differences: list[Difference], elsewhere: str
) -> None:
    message = qm.compose(qm.find(), b"one")
    message.source_address = elsewhere
    qm.done(qm.engine.messages.enqueue_message(qm.find(), message))
    answer = reader.read(reader.open(qm.find()))
    _, extension = split_message_packet(answer.ppPacketSections[0].pSectionBuffer)
    assert extension.extended_address == ExtendedAddressHeader.of(host_of(elsewhere))
    assert compared(qm) == 1
    assert not differences


def _given_back(qm: RunningQueueManager) -> None:
    qm.send(qm.find(), b"one")
    descriptor = qm.open(qm.find())
    message = qm.done(qm.engine.messages.dequeue_message_begin(descriptor))
    position = message.message_position_reference
    assert position is not None
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, False, delivered=True))


def _chosen_dead_letters(qm: RunningQueueManager) -> None:
    message = qm.compose(qm.find(), b"one")
    message.application_deadletter_queue = r".\private$\dead"
    qm.done(qm.engine.messages.enqueue_message(qm.find(), message))


def _with_a_trail(qm: RunningQueueManager) -> None:
    qm.send(qm.find(), b"one")
    qm.done(qm.engine.trail.switch(qm.find(), True))


@pytest.mark.parametrize("unusual", [_given_back, _chosen_dead_letters, _with_a_trail])
def test_a_message_with_a_history_goes_the_careful_way(
    qm: RunningQueueManager,
    reader: Reader,
    locked: list[int],
    unusual: Callable[[RunningQueueManager], None],
) -> None:
    unusual(qm)
    assert reader.body(reader.open(qm.find())) == b"one"
    assert not locked


def test_a_subqueue_goes_the_careful_way(
    qm: RunningQueueManager, reader: Reader, locked: list[int]
) -> None:
    late, key = qm.subqueue(qm.find(), "late"), qm.send(qm.find(), b"one")
    qm.done(qm.engine.messages.move_message(MessagePosition(qm.find(), key), late))
    assert reader.body(reader.open(late)) == b"one"
    assert not locked


def test_a_long_body_goes_the_careful_way(
    qm: RunningQueueManager, reader: Reader, locked: list[int]
) -> None:
    qm.send(qm.find(), b"0123456789")
    handle = reader.open(qm.find())
    assert reader.read(handle, maximum_body=9).pdwNumberOfSections == 2
    assert not locked


@pytest.fixture
def shown(qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The keys of messages that were found to be peeked at in few steps."""
    firsts, keys = qm.speed.first_messages, list[int]()
    find = firsts.find_to_peek

    def noting(descriptor: OpenQueueDescriptor, key: int) -> FirstMessage | None:
        found = find(descriptor, key)
        keys.extend([found.key] if found else [])
        return found

    monkeypatch.setattr(firsts, "find_to_peek", noting)
    return keys


def test_a_message_is_peeked_at_in_few_steps_first_or_by_its_identifier(
    qm: RunningQueueManager, reader: Reader, shown: list[int], differences: list[Difference]
) -> None:
    keys = [qm.send(qm.find(), body) for body in (b"one", b"two")]
    handle = reader.open(qm.find(), PEEK_ACCESS)
    assert reader.body(handle, PEEK_CURRENT) == b"one"
    assert reader.body(handle, LOOKUP_PEEK_CURRENT, lookup_identifier=keys[1]) == b"two"
    assert shown == keys
    assert compared(qm) == len(keys)
    assert not differences
    assert qm.bodies(qm.find()) == [b"one", b"two"]


def _peekable_though_locked(qm: RunningQueueManager) -> None:
    qm.send(qm.find(), b"one")
    qm.send(qm.find(), b"two")
    descriptor = qm.open(qm.find())
    message = qm.done(qm.engine.messages.dequeue_message_begin(descriptor))
    message.queue = qm.find()
    qm.engine.messages.allow_peek(message)


@pytest.mark.parametrize("unusual", [_given_back, _chosen_dead_letters, _peekable_though_locked])
def test_a_message_with_a_history_is_peeked_at_the_careful_way(
    qm: RunningQueueManager,
    reader: Reader,
    shown: list[int],
    unusual: Callable[[RunningQueueManager], None],
) -> None:
    unusual(qm)
    assert reader.body(reader.open(qm.find()), PEEK_CURRENT) == b"one"
    assert not shown


def test_a_locked_message_is_not_shown_by_its_identifier(
    qm: RunningQueueManager, reader: Reader, shown: list[int]
) -> None:
    key = qm.send(qm.find(), b"one")
    handle = reader.open(qm.find())
    assert reader.body(handle, request_id=7) == b"one"
    found = reader.body(handle, LOOKUP_PEEK_CURRENT, lookup_identifier=key, request_id=8)
    assert found == b"MQ_ERROR_TRANSACTION_USAGE"
    assert not shown


def _send_only(caller: Caller) -> None:
    """Take no answer."""
    caller.association.receive_data(caller.client.data_to_send())


def test_a_message_that_is_not_delivered_comes_back(
    qm: RunningQueueManager, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.send(qm.find(), b"one")
    handle = reader.open(qm.find())
    server, group = reader.caller.server, reader.caller.group_id
    leaving = Reader(server.connect(group_id=group))
    monkeypatch.setattr(leaving.caller, "protocol", partial(_send_only, leaving.caller))
    leaving.start(handle, request_id=7)
    assert qm.bodies(qm.find()) == []
    leaving.caller.lose(delivered=False)
    assert qm.bodies(qm.find()) == [b"one"]


def test_a_read_that_is_never_ended_is_given_back_in_time(
    qm: RunningQueueManager, reader: Reader
) -> None:
    qm.send(qm.find(), b"one")
    handle = reader.open(qm.find())
    assert reader.body(handle, request_id=7) == b"one"
    qm.advance(PENDING_REQUEST_CLEANUP - 1)
    assert qm.bodies(qm.find()) == []
    qm.advance(1)
    assert qm.bodies(qm.find()) == [b"one"]
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.parametrize("is_on", [True, False])
def test_a_read_that_has_been_ended_is_not_kept_for_its_timer(
    qm: RunningQueueManager, is_on: bool
) -> None:
    qm.speed.turn.is_on = is_on
    queue = qm.create()
    server = served_remote_read(qm)
    handlers: Any = server.interfaces["remoteread"].handlers
    reader = Reader(server.connect())
    handle = reader.open(queue)
    for number in range(7, 11):
        qm.send(queue, b"one")
        assert reader.body(handle, request_id=number) == b"one"
        assert len(handlers.reads._cleanup) == 1
        assert reader.end(handle, number) == "MQ_OK"
        assert len(handlers.reads._cleanup) == 0


def test_a_number_in_use_and_a_queue_open_for_peeking_are_refused(
    qm: RunningQueueManager, reader: Reader
) -> None:
    qm.send(qm.find(), b"one")
    qm.send(qm.find(), b"two")
    handle = reader.open(qm.find())
    assert reader.body(handle, request_id=7) == b"one"
    for action in (RECEIVE, PEEK_CURRENT):
        assert reader.body(handle, action, request_id=7) == b"MQ_ERROR_INVALID_PARAMETER"
    peeking = reader.open(qm.find(), PEEK_ACCESS)
    assert reader.body(peeking) == b"MQ_ERROR_ACCESS_DENIED"
    assert qm.bodies(qm.find()) == [b"two"]


def test_parameters_that_do_not_go_together_are_refused(
    qm: RunningQueueManager, reader: Reader
) -> None:
    key = qm.send(qm.find(), b"one")
    handle = reader.open(qm.find())
    looking = partial(reader.body, handle, LOOKUP_PEEK_CURRENT, lookup_identifier=key)
    assert looking(timeout=1) == b"MQ_ERROR_INVALID_PARAMETER"
    assert reader.body(handle, lookup_identifier=key) == b"MQ_ERROR_INVALID_PARAMETER"
    assert looking() == b"one"


# The octets


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda each: each.name)
@given(st.integers(0, 0xFFFF_FFFF), st.integers(0, SEQUENCE), st.binary(min_size=1, max_size=99))
def test_an_answer_is_what_the_codec_encodes(
    syntax: TransferSyntax, arrival: int, sequence: int, packet: bytes
) -> None:
    encode, template = learned(syntax)
    answer = ReadAnswer(arrival, sequence, packet)
    assert template.filled(*answer) == encode(answer.response())


@functools.cache
def learned(syntax: TransferSyntax) -> tuple[Callable[[Any], bytes], ReadResponse]:
    encode = load("remoteread").operation("R_StartReceive").codec(syntax).response.encode
    template = ReadResponse.learn(encode)
    assert template is not None
    return encode, template


def test_there_is_no_template_of_answers_that_differ_otherwise() -> None:
    encode, _ = learned(TransferSyntax.NDR)

    def another(answer: R_StartReceiveResponse) -> bytes:
        answer.result = answer.pdwArriveTime % 2
        return encode(answer)

    assert ReadResponse.learn(another) is None
