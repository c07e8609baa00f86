"""Receives of qmcomm2 that templates answer have the outcome of the careful path.

See docs/request-templates.md.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW
from rpcqm.codec.types.qmcomm import CACTransferBufferV2
from rpcqm.fast.doors.rpc_receive import ReceiveRecogniser
from rpcqm.fast.doors.rpc_receive_answers import (
    LEARNED_AT_ONCE,
    LEARNED_PER_SECOND,
    MOST_FORMS,
    MOST_KINDS,
    KnownAnswers,
)
from rpcqm.fast.formats.received_response import Received, ReceivedResponse, Rooms
from rpcqm.qm.trail import TrailEventType
from rpcqm.rpc import dispatch
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.fast.receive_requests import EVERYTHING, PEEK_NEXT, RECEIVE, REQUESTS, label_of
from tests.support.fast.template_twins import Half, Twins, twins
from tests.support.queue_manager import MEMORY, RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, CallServer, PendingCall
from tests.support.rpc.dependent_client import (
    Client,
    body_in,
    receiving_buffer,
    served_clients,
)
from tests.support.rpc.remote_reader import PEEK_CURRENT, Reader, body_of, served_remote_read
from tests.support.shadow import comparing
from tests.support.shadow.comparing import Difference, Shadow
from tests.unit.fast.test_rpc_sends import OTHERS, SENDS, Story, messages

RECEIVES = st.tuples(
    st.just("receive"),
    st.sampled_from([RECEIVE, RECEIVE, PEEK_CURRENT, PEEK_CURRENT, PEEK_NEXT, 77]),
    st.integers(0, len(REQUESTS) - 1) | st.just(0),
    st.sampled_from([0, 0, 1000]),
    st.booleans(),
)
USUAL = st.tuples(st.just("usual"), st.binary(max_size=24))
TURNS = st.lists(
    st.lists(
        st.one_of(
            SENDS, USUAL, USUAL, RECEIVES, RECEIVES, RECEIVES, OTHERS, st.just(("reopen_reader",))
        ),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=8,
)


class Receiving(Story):
    """What one half is asked for, with receives of qmcomm2, of two connections."""

    def __init__(self, half: Half, usual: dict[str, Any]) -> None:
        super().__init__(half)
        self._usual = usual
        self.client = half.senders[0]
        self.open()

    def open(self) -> None:
        self.handle, self.context = self.client.open(self.half.qm.find())

    def turn(self, actions: list[Any]) -> list[object]:
        """The outcomes; a receive may wait for the sends of later turns."""
        answered = [call for call in self._calls(actions) if call is not None]
        self.half.outcomes([])
        return [repr(call.response or call.fault) for call in answered]

    def _calls(self, actions: list[Any]) -> list[Any]:
        return [getattr(self, name)(*arguments) for name, *arguments in actions]

    def usual(self, body: bytes) -> PendingCall:
        """Send a message of a kind whose answers are known."""
        call: PendingCall = self.send(1, body, self._usual)
        return call

    def receive(self, action: int, number: int, timeout: int, other: bool) -> PendingCall:
        client = self.half.senders[1] if other else self.client
        buffer = receiving_buffer(action=action, timeout=timeout, **REQUESTS[number])
        return client.start_receive(self.context, buffer)

    def purge(self) -> Any:
        """From another connection: nobody promises whether it finds what a receive waits for."""
        self.end_turn()
        return super().purge()

    def reopen_reader(self) -> None:
        self.end_turn()
        self.client.caller.send("rpc_ACCloseHandle", phQueue=self.handle)
        self.open()


def _turn_of(stories: dict[Half, Receiving], actions: list[Any], half: Half) -> list[object]:
    return stories[half].turn(actions)


def tell(both: Twins, turns: list[list[Any]], usual: dict[str, Any]) -> None:
    stories = {half: Receiving(half, usual) for half in both.halves}
    for actions in turns:
        both.do(partial(_turn_of, stories, actions))
        both.check()


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=TURNS, usual=messages(), number=st.integers(0, len(REQUESTS) - 1))
def test_receives_have_one_outcome_both_ways(
    turns: list[list[Any]], usual: dict[str, Any], number: int
) -> None:
    asked = (number, number, number, number, 0, 0, 0)
    learning: list[list[Any]] = [[("usual", b"body")] * len(asked)]
    learning += [[("receive", RECEIVE, each, 0, False) for each in asked]]
    with TemporaryDirectory(dir=MEMORY) as directory, twins(Path(directory)) as both:
        tell(both, [*learning, *turns, *learning], usual)


# One queue manager


class Desk:
    """A client whose receives are recognised, and what a shadow finds."""

    def __init__(self, qm: RunningQueueManager) -> None:
        self.qm = qm
        self.queue = qm.create()
        self.server: CallServer = served_clients(qm)
        self.client = self.connect()
        self.handle, self.context = self.client.open(self.queue)
        qm.speed.turn.is_on = True
        for _ in range(4):
            self.send(b"learned")
            self.receive()
        self.differences: list[Difference] = []
        self.shadow = qm.speed.turn.shadow = Shadow(qm.store, qm.clock, self.differences.append)

    def connect(self) -> Client:
        return Client(self.server.connect(ALICE, transport=NCALRPC))

    def send(self, *bodies: bytes, **fields: Any) -> None:
        for body in bodies:
            self.qm.send(self.queue, body, **{"label": "label", **fields})

    def start(self, client: Client | None = None, **fields: Any) -> PendingCall:
        buffer = receiving_buffer(**{**fields, **EVERYTHING})
        return (client or self.client).start_receive(self.context, buffer)

    def receive(self, **fields: Any) -> tuple[str, CACTransferBufferV2]:
        return self.client.receive(self.context, receiving_buffer(**{**fields, **EVERYTHING}))

    def body(self, **fields: Any) -> bytes | str:
        status, buffer = self.receive(**fields)
        return body_in(buffer) if status == "MQ_OK" else status

    def taken(self) -> int:
        """How many answers were compared: of a receive its answer, and then its removal."""
        assert not self.differences
        return self.shadow.compared


@pytest.fixture
def desk(qm: RunningQueueManager) -> Desk:
    return Desk(qm)


def test_receives_like_ones_before_are_answered_by_a_template(desk: Desk) -> None:
    desk.send(b"one", b"two")
    call = desk.start()
    assert desk.qm.speed.turn.waiting
    assert not call.answered
    desk.client.caller.settle()
    assert body_in(call.result().ptb) == b"one"
    assert desk.taken() == 2
    assert desk.body(action=PEEK_CURRENT, timeout=7) == b"two"
    assert desk.taken() == 3
    desk.qm.restart()
    assert desk.qm.bodies(desk.qm.find()) == [b"two"]


def test_an_answer_comes_after_the_sync_and_a_crash_before_it_keeps_the_message(
    desk: Desk,
) -> None:
    desk.send(b"one")
    call = desk.start()
    desk.qm.speed.turn.drain()
    desk.client.caller.protocol()
    assert not call.answered
    desk.qm.crash()
    assert desk.qm.bodies(desk.qm.find()) == [b"one"]


def test_two_receives_of_one_turn_get_two_messages(desk: Desk) -> None:
    desk.send(b"one", b"two", b"three")
    other = desk.connect()
    calls = [desk.start(), desk.start(other), desk.start(timeout=5)]
    assert desk.qm.speed.turn.waiting
    for client in (desk.client, other):
        client.caller.settle()
    assert [body_in(each.result().ptb) for each in calls] == [b"one", b"two", b"three"]
    assert desk.taken() == 6
    assert desk.body() == "MQ_ERROR_IO_TIMEOUT"


def test_a_reader_of_another_interface_does_not_get_it_either(desk: Desk) -> None:
    desk.send(b"one", b"two")
    reader = Reader(served_remote_read(desk.qm).connect(ALICE))
    reading = reader.open(desk.queue)
    desk.start()
    assert body_of(reader.read(reading, PEEK_CURRENT)) == b"two"
    assert reader.body(reading) == b"two"


def test_a_close_behind_a_receive_does_not_overtake_it(desk: Desk) -> None:
    desk.send(b"one", b"two")
    call = desk.start()
    assert desk.client.close(desk.handle) == "MQ_OK"
    assert body_in(call.result().ptb) == b"one"
    assert desk.body() == "MQ_ERROR_INVALID_HANDLE"
    assert desk.qm.bodies(desk.queue) == [b"two"]


def test_a_client_that_goes_has_taken_its_message_as_ever(desk: Desk) -> None:
    desk.send(b"one", b"two")
    desk.start()
    desk.client.caller.lose(delivered=False)
    assert desk.qm.bodies(desk.queue) == [b"two"]
    assert desk.qm.engine.messages is not None
    assert desk.queue.message_position_list.available == 1


@pytest.mark.parametrize("size", [63, 64, 65])
def test_what_does_not_fit_stays(desk: Desk, size: int) -> None:
    desk.send(bytes(size))
    fits = size <= 64
    assert desk.body() == (bytes(size) if fits else "MQ_ERROR_BUFFER_OVERFLOW")
    assert len(desk.qm.bodies(desk.queue)) == (not fits)
    assert desk.taken() == (2 if fits else 0)


def test_a_number_is_good_for_who_opened_the_queue(desk: Desk) -> None:
    desk.send(b"one")
    bob = Client(desk.server.connect(BOB, transport=NCALRPC))
    call = desk.start(bob)
    bob.caller.settle()
    assert call.result().result == 0xC00E0007
    assert desk.body() == b"one"


def test_a_queue_open_for_peeking_keeps_its_messages(desk: Desk) -> None:
    desk.send(b"one")
    _, desk.context = desk.client.open(desk.queue, 0x20)
    assert desk.body(action=PEEK_CURRENT) == b"one"
    assert desk.body() == "MQ_ERROR_ACCESS_DENIED"
    assert desk.qm.bodies(desk.queue) == [b"one"]
    assert desk.taken() == 1


def test_cursors_and_transactions_are_left_to_the_careful_path(desk: Desk) -> None:
    desk.send(b"one")
    cursor = desk.client.cursor(desk.handle)
    assert desk.body(action=PEEK_CURRENT, cursor=cursor) == b"one"
    assert desk.body(action=PEEK_NEXT) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    unknown = receiving_buffer(**EVERYTHING, pUow=XACTUOW(rgb=b"unknown-unit-of-"))
    for _ in range(5):  # of a shape of their own, which is learned, and so would the answer be
        status, _ = desk.client.receive(desk.context, unknown)
        assert status == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert desk.taken() == 0


def test_what_is_left_of_the_time_to_live_is_told(desk: Desk) -> None:
    for _ in range(3):
        desk.send(b"learned", time_to_be_received=600)
        assert desk.receive()[1].old.pulRelativeTimeToLive == 600
    before = desk.taken()
    desk.send(b"one", time_to_be_received=600)
    desk.qm.advance(100_000)
    assert desk.receive()[1].old.pulRelativeTimeToLive == 500
    assert desk.taken() == before + 2


def test_a_journal_keeps_what_is_received(desk: Desk) -> None:
    desk.queue.journaling = True
    desk.send(b"one")
    assert desk.body() == b"one"
    journal = desk.queue.journal_queue_reference
    assert journal is not None
    assert desk.qm.bodies(journal) == [b"one"]
    assert desk.taken() == 0


def test_a_trail_tells_of_it(desk: Desk) -> None:
    desk.qm.engine.trail.switch(desk.queue, True)
    desk.send(b"one")
    key = desk.queue.message_position_list.first_available()
    assert key is not None
    message = desk.qm.engine.positions.message_at(desk.queue, key)
    assert desk.body() == b"one"
    identifier = message.attributes.identifier
    told = [event.happening for event in desk.qm.engine.trail.events(identifier)]
    assert TrailEventType.LOCKED in told
    assert desk.taken() == 0


def test_a_message_that_is_journaled_by_its_sender_goes_the_careful_way(desk: Desk) -> None:
    for _ in range(3):
        desk.send(b"one", negative_journaling_requested=True)
        assert desk.body() == b"one"
    assert desk.taken() == 0
    assert desk.body() == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.parametrize("asked", [{"allow_peek_when_locked": True}, {"journal": True}])
def test_what_asks_for_more_is_not_taken(desk: Desk, asked: dict[str, bool]) -> None:
    """Others may see it while it is locked, or a journal of its sender wants it."""
    for _ in range(3):
        message = desk.qm.compose(
            desk.queue,
            b"one",
            label="label",
            negative_journaling_requested="journal" in asked,
        )
        message.allow_peek_when_locked = asked.get("allow_peek_when_locked", False)
        desk.qm.done(desk.qm.engine.messages.enqueue_message(desk.queue, message))
        call = desk.start()
        assert not desk.qm.speed.turn.waiting
        desk.client.caller.settle()
        assert body_in(call.result().ptb) == b"one"
    assert desk.taken() == 0


def test_labels_of_every_length_are_told(desk: Desk) -> None:
    """Told whole as long as they fit into twelve characters, with their null character."""
    fields = EVERYTHING | label_of(12)
    for size in [*range(14), *range(14)]:
        desk.send(b"x", label="l" * size)
        status, buffer = desk.client.receive(desk.context, receiving_buffer(**fields))
        if size < 12:
            label = "l" * size + "\0" * bool(size)
            assert (status, buffer.old.ppTitle) == ("MQ_OK", label)
        else:
            assert status == "MQ_ERROR_LABEL_BUFFER_TOO_SMALL"
            assert body_in(desk.receive()[1]) == b"x"
    assert desk.taken() > 24


def test_an_extension_that_does_not_fit_stays(desk: Desk) -> None:
    for size in (16, 17):
        desk.send(b"x", extension=bytes(size))
        assert desk.body() == (b"x" if size == 16 else "MQ_ERROR_BUFFER_OVERFLOW")
    assert desk.qm.bodies(desk.queue) == [b"x"]
    assert desk.taken() == 2


def test_a_refusal_that_a_template_does_not_see_is_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.send(b"one")

    def refuse(*_: object) -> bytes:
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED)

    monkeypatch.setattr(comparing, "answer_of", refuse)
    desk.start(action=PEEK_CURRENT)
    assert [each.what for each in desk.differences] == ["refusal"]


def test_a_batch_that_fails_goes_the_careful_way(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.send(b"one", b"two", b"three")

    def fail(*_: object) -> None:
        raise RuntimeError("a batch that fails")

    monkeypatch.setattr(desk.qm.engine.positions, "read_many", fail)
    calls = [desk.start(), desk.start()]
    desk.client.caller.settle()
    assert [body_in(each.result().ptb) for each in calls] == [b"one", b"two"]
    assert desk.qm.bodies(desk.queue) == [b"three"]
    assert desk.server.dispatcher.pending == 0


def test_a_difference_of_an_answer_is_found(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.send(b"one")
    filled = ReceivedResponse.filled

    def wrong(self: ReceivedResponse, answer: Received) -> bytes:
        return filled(self, answer._replace(sent=0))

    monkeypatch.setattr(ReceivedResponse, "filled", wrong)
    desk.receive()
    assert [each.what for each in desk.differences] == ["answers"]


def test_a_switch_takes_effect_with_the_next_request(desk: Desk) -> None:
    desk.send(b"one")
    desk.qm.speed.turn.is_on = False
    assert desk.body() == b"one"
    assert desk.taken() == 0


def test_clients_that_reuse_their_buffers_are_recognised(desk: Desk) -> None:
    """What is in a buffer does not matter, as long as it is of the same size."""
    desk.send(b"one", b"two")
    fields = EVERYTHING | {"ppBody": b"x" * 64, "ppTitle": "x" * 250, "pSentTime": 9, "pTrace": 1}
    fields |= {"ppMessageID": OBJECTID(Lineage=UUID(int=5), Uniquifier=5)}
    for body in (b"one", b"two"):
        status, buffer = desk.client.receive(desk.context, receiving_buffer(**fields))
        assert (status, body_in(buffer)) == ("MQ_OK", body)
    assert desk.taken() == 4


# Learning


@pytest.fixture
def learned(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[KnownAnswers]:
    """What has learned something, each time."""
    told: list[KnownAnswers] = []
    learn = KnownAnswers.learn

    def noted(self: KnownAnswers, *arguments: Any) -> None:
        told.append(self)
        learn(self, *arguments)

    monkeypatch.setattr(KnownAnswers, "learn", noted)
    desk.qm.advance(60_000)  # what was learned before does not count any more
    return told


def kind(desk: Desk, number: int) -> None:
    """Have one message of a kind received."""
    desk.send(b"x", time_to_be_received=1000 + number)
    assert desk.body() == b"x"


@pytest.mark.bound("rpc.receive_templates_learned_at_once", "rpc.receive_templates_learned")
def test_learning_is_limited_in_a_moment_and_in_a_second(
    desk: Desk, learned: list[KnownAnswers]
) -> None:
    for number in range(LEARNED_AT_ONCE):
        kind(desk, number)
    assert len(learned) == LEARNED_AT_ONCE
    kind(desk, LEARNED_AT_ONCE)
    assert len(learned) == LEARNED_AT_ONCE
    desk.qm.advance(1000)
    for number in range(LEARNED_PER_SECOND + 1):
        kind(desk, 500 + number)
    assert len(learned) == LEARNED_AT_ONCE + LEARNED_PER_SECOND


@pytest.mark.bound("rpc.receive_templates")
def test_kinds_of_messages_are_bounded_and_one_in_use_stays(
    desk: Desk, learned: list[KnownAnswers]
) -> None:
    for number in range(MOST_KINDS - 1):  # one is known from before
        desk.qm.advance(1000)
        kind(desk, number)
    assert len(learned[0].by_kind) == MOST_KINDS
    kind(desk, 0)
    before = desk.taken()
    desk.qm.advance(1000)
    kind(desk, MOST_KINDS)
    kind(desk, MOST_KINDS + 1)
    assert len(learned[0].by_kind) == MOST_KINDS
    kind(desk, 0)
    assert desk.taken() == before + 2
    kind(desk, 1)
    assert desk.taken() == before + 2


@pytest.mark.bound("rpc.receive_template_forms")
def test_forms_of_messages_are_bounded(desk: Desk) -> None:
    recogniser = desk.server.interfaces["qmcomm2"].shortcut(2)
    assert isinstance(recogniser, ReceiveRecogniser)
    forms = recogniser._templates

    def receive(length: int) -> bool:
        before = desk.taken()
        name = FormatName.parse(rf"DIRECT=OS:elsewhere\private$\{'q' * length}")
        desk.send(b"x", response_queue_format_name=name)
        assert desk.body() == b"x"
        return desk.taken() > before

    for number in range(1, MOST_FORMS):
        assert not receive(4 * number)
    assert len(forms._forms.known) == MOST_FORMS
    assert receive(4)
    assert not receive(4 * MOST_FORMS)
    assert receive(4 * MOST_FORMS)
    assert len(forms._forms.known) == MOST_FORMS
    desk.send(b"one")
    before = desk.taken()
    assert desk.body() == b"one"
    assert desk.taken() == before


def test_who_never_repeats_is_looked_at_seldom(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "PATIENCE", 1 << 30)  # which would look at fewer of them
    desk.send(*[b"x" * 65] * 2)
    looked: list[object] = []
    first = desk.qm.engine.messages.first_message

    def noted(*arguments: Any, **named: Any) -> Any:
        looked.append(arguments)
        return first(*arguments, **named)

    monkeypatch.setattr(desk.qm.engine.messages, "first_message", noted)
    for _ in range(256 + 80):
        assert desk.body(action=PEEK_CURRENT) == "MQ_ERROR_BUFFER_OVERFLOW"
    assert len(looked) == 256 + 10


# The octets


def _careful(answer: Received) -> bytes:
    """An answer of all values, around a label that follows its length."""
    size = (len(answer.label) // 2).to_bytes(4, "little")
    numbers = (answer.timeout, answer.sent, answer.left, answer.timeout, len(answer.body))
    octets = b"".join(number.to_bytes(4, "little") for number in numbers)
    padding = bytes(-len(answer.label) % 4)
    body = answer.body.ljust(8, b"\0")
    return octets + body + size + answer.label + padding + answer.correlation + size


ROOMS = Rooms(8, 0, 30)


@given(
    st.lists(st.integers(0, 0xFFFF_FFFF), min_size=8, max_size=8),
    st.binary(min_size=20, max_size=20),
    st.integers(2, 20),
    st.binary(max_size=8),
)
def test_an_answer_is_what_the_careful_path_makes(
    numbers: list[int], correlation: bytes, size: int, body: bytes
) -> None:
    label = ("l" * (size - 1) + "\0").encode("utf-16-le")
    template = ReceivedResponse.learn(_careful, ROOMS, label)
    assert template is not None
    answer = Received._make((*numbers, correlation, label, b"", body))
    assert template.filled(answer) == _careful(answer)


def test_there_is_no_template_of_answers_that_differ_otherwise() -> None:
    """By nothing that is tried in order to find the places: the size of an odd body."""

    def another(answer: Received) -> bytes:
        return _careful(answer) + bytes([len(answer.body) % 2])

    assert ReceivedResponse.learn(another, ROOMS, b"") is None


def test_there_is_no_template_of_answers_that_only_seem_to_hold_a_value() -> None:
    def another(answer: Received) -> bytes:
        return _careful(answer._replace(timeout=answer.timeout & 0xFEFF_FFFF | 1))

    assert ReceivedResponse.learn(another, ROOMS, b"") is None
