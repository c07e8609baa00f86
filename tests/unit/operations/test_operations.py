"""What operators and programs do, and what they may not."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.operations.drafts import Draft
from rpcqm.operations.operations import Operations
from rpcqm.operations.trail import EventKind
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, NOBODY

ORDERS = format_name("orders")
ELSEWHERE = FormatName.parse(r"DIRECT=OS:other\private$\orders")


def send(qm: RunningQueueManager, operations: Operations, *labels: str) -> None:
    drafts = [Draft(b"body", label) for label in labels]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))


def labels(operations: Operations, name: FormatName = ORDERS) -> list[str]:
    page = operations.messages.peek(ADMINISTRATOR, name, limit=100)
    return [message.attributes.label for message in page.messages]


def test_messages_are_sent_and_looked_at_in_pages(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    send(qm, operations, "a", "b", "c")
    first = operations.messages.peek(ALICE, ORDERS, limit=2)
    assert [message.attributes.label for message in first.messages] == ["a", "b"]
    assert first.next == first.messages[-1].lookup_identifier
    last = operations.messages.peek(ALICE, ORDERS, first.next, limit=2)
    assert [message.attributes.label for message in last.messages] == ["c"]
    assert last.next is None
    assert (
        operations.messages.peek(ALICE, ORDERS, last.messages[0].lookup_identifier).messages == []
    )


@pytest.mark.bound("program.page_bytes")
def test_a_page_has_a_largest_size(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.create()
    send(qm, operations, "a", "b", "c")
    size = len(operations.messages.peek(ALICE, ORDERS).messages[0].packet)
    for room, fitting in ((2 * size, 2), (2 * size + 1, 3)):
        monkeypatch.setattr("rpcqm.operations.messages.PAGE_BYTES", room)
        page = operations.messages.peek(ALICE, ORDERS, limit=100)
        assert len(page.messages) == fitting
        assert (page.next is None) is (fitting == 3)


@pytest.mark.parametrize("transactional", [False, True])
def test_of_several_messages_all_are_sent_or_none(
    qm: RunningQueueManager, operations: Operations, transactional: bool
) -> None:
    qm.create(transactional=transactional, quota=2)
    large = [Draft(bytes(900), "first"), Draft(bytes(900), "second")]
    with pytest.raises(MQError) as refused:
        qm.done(operations.messages.send(ALICE, (ORDERS,), large))
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    refused.value.__traceback__ = None  # it would keep the store open over the restart
    assert labels(operations) == []
    small = [Draft(b"1", "first"), Draft(b"2", "second")]
    assert len(qm.done(operations.messages.send(ALICE, (ORDERS,), small))) == 2
    qm.restart()
    assert qm.find().message_count == 2


def test_messages_are_moved_to_a_subqueue_and_back(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    send(qm, operations, "a", "b", "c")
    late = format_name("orders;late")
    first = operations.messages.peek(ADMINISTRATOR, ORDERS).messages[0].lookup_identifier
    assert qm.done(operations.messages.move(ADMINISTRATOR, ORDERS, late, [first])) == 1
    assert (labels(operations), labels(operations, late)) == (["b", "c"], ["a"])
    assert qm.done(operations.messages.move(ADMINISTRATOR, ORDERS, late)) == 2
    assert sorted(labels(operations, late)) == ["a", "b", "c"]
    assert qm.done(operations.messages.purge(ADMINISTRATOR, late)) == 3


def test_administrators_look_at_what_waits_for_elsewhere(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.done(operations.messages.send(ALICE, (ELSEWHERE,), [Draft(b"x", "away")]))
    assert labels(operations, ELSEWHERE) == ["away"]
    operations.outgoing.pause(ADMINISTRATOR, ELSEWHERE)
    assert operations.outgoing.find(ADMINISTRATOR, ELSEWHERE).state.name == "ON_HOLD"
    with pytest.raises(MQError, match="MQ_ERROR_ACCESS_DENIED"):
        operations.messages.peek(ALICE, ELSEWHERE)


@pytest.mark.parametrize(
    ("draft", "status"),
    [
        (Draft(label="x" * 250), HResult.MQ_ERROR_LABEL_TOO_LONG),
        (Draft(priority=8), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(body_type=1 << 32), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(ttbr=INFINITE), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(correlation_id="seven"), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(acknowledgements=("all",)), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(extension_base64="!"), HResult.MQ_ERROR_INVALID_PARAMETER),
        (Draft(bytes(5 << 20)), HResult.MQ_ERROR_INSUFFICIENT_RESOURCES),
    ],
)
def test_what_a_message_cannot_have_is_refused(
    qm: RunningQueueManager, operations: Operations, draft: Draft, status: HResult
) -> None:
    queue = qm.create()
    with pytest.raises(MQError) as refused:
        qm.done(operations.messages.send(ALICE, (ORDERS,), [draft]))
    assert refused.value.status is status
    assert queue.message_count == 0
    assert not qm.engine.opening.descriptors


DACL = SecurityInformation.DACL_SECURITY_INFORMATION
_NONE = parse_sddl("D:").encode()
DENIED = HResult.MQ_ERROR_ACCESS_DENIED
Attempt = Callable[[Operations, Identity], object]
ATTEMPTS: dict[str, tuple[str, Attempt]] = {
    "accounts": ("", lambda o, who: o.accounts.list(who)),
    "account": ("", lambda o, who: o.accounts.add(who, "carol", bytes(16))),
    "password": ("", lambda o, who: o.accounts.set_password(who, "carol", bytes(16))),
    "remove": ("", lambda o, who: o.accounts.remove(who, "carol")),
    "state": ("", lambda o, who: o.machine.state(who)),
    "connect": ("", lambda o, who: o.machine.connect(who, False)),
    "statuses": ("", lambda o, who: o.machine.queue_statuses(who)),
    "exposed": ("", lambda o, who: o.machine.exposed_queues(who)),
    "disk": ("", lambda o, who: o.machine.disk_bytes(who)),
    "compact": ("", lambda o, who: o.machine.compact(who)),
    "backup": ("", lambda o, who: o.machine.make_backup(who, "/nowhere")),
    "backup below": ("", lambda o, who: o.machine.make_backup_below(who, "nowhere")),
    "machine security": ("", lambda o, who: o.machine.set_security(who, DACL, _NONE)),
    "list": ("", lambda o, who: o.queues.list(who)),
    "public": ("", lambda o, who: o.queues.public(who)),
    "publish": ("", lambda o, who: o.queues.create(who, r".\new", {})),
    "properties": ("", lambda o, who: o.queues.set_properties(who, ORDERS, {"label": "x"})),
    "limit": ("", lambda o, who: o.queues.set_max_deliveries(who, ORDERS, 1, "poison")),
    "limits": ("", lambda o, who: o.queues.max_deliveries(who, ORDERS)),
    "trail": ("", lambda o, who: o.queues.switch_trail(who, ORDERS, True)),
    "trails": ("", lambda o, who: o.queues.has_trail(who, ORDERS)),
    "security": ("", lambda o, who: o.queues.set_security(who, ORDERS, DACL, _NONE)),
    "delete": ("", lambda o, who: o.queues.delete(who, ORDERS)),
    "import": ("", lambda o, who: o.messages.import_message(who, ORDERS, b"")),
    "outgoing": ("", lambda o, who: o.outgoing.list(who)),
    "pause": ("", lambda o, who: o.outgoing.pause(who, ELSEWHERE)),
    "resume": ("", lambda o, who: o.outgoing.resume(who, ELSEWHERE)),
    "resend": ("", lambda o, who: o.outgoing.resend(who, ELSEWHERE)),
    "find": ("", lambda o, who: o.traces.find(who, NULL_IDENTIFIER)),
    "events": ("", lambda o, who: o.traces.trail(who, NULL_IDENTIFIER)),
    "look": ("peek send", lambda o, who: o.queues.look(who, ORDERS)),
    "peek": ("peek", lambda o, who: o.messages.peek(who, ORDERS)),
    "purge": ("", lambda o, who: o.messages.purge(who, ORDERS)),
    "move": ("", lambda o, who: o.messages.move(who, ORDERS, ORDERS).result()),
    "take": ("", lambda o, who: o.messages.take(who, ORDERS, 1).result()),
    "send": ("send", lambda o, who: o.messages.send(who, (ORDERS,), [Draft(b"x")])),
}


@pytest.mark.parametrize("right", ["peek", "send", ""])
def test_each_operation_is_for_those_who_may(
    qm: RunningQueueManager, operations: Operations, right: str
) -> None:
    """0x22 peeks and sees properties, 0x24 sends and sees properties."""
    rights = {"peek": "0x22", "send": "0x24", "": "0x0"}[right]
    qm.create(security=parse_sddl(f"O:BAD:(A;;{rights};;;{ALICE.sid})").encode())
    who = ALICE if right else NOBODY
    refused = [name for name in ATTEMPTS if _status(operations, name, who) is DENIED]
    others = [name for name in ATTEMPTS if name not in refused]
    assert others == [name for name, (by, _) in ATTEMPTS.items() if right and right in by.split()]
    assert qm.find().label == ""
    assert not qm.engine.opening.descriptors


def _status(operations: Operations, name: str, who: Identity) -> object:
    try:
        outcome = ATTEMPTS[name][1](operations, who)
    except MQError as error:
        return error.status
    return outcome.status if isinstance(outcome, MQError) else outcome


def test_a_change_is_told_with_who_what_and_from_where(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    with capture_logs() as lines:
        qm.done(operations.queues.set_properties(ADMINISTRATOR, ORDERS, {"label": "x"}))
    acts = [line for line in lines if line["event"] == "an operator acts"]
    assert [(a["who"], a["action"], a["object"], a["origin"]) for a in acts] == [
        ("root", "set properties", qm.find().pathname, "local")
    ]


def test_an_order_that_is_not_counted_changes_the_pulse(
    qm: RunningQueueManager, operations: Operations
) -> None:
    before = operations.pulse()
    operations.events.trail.keep(qm.clock.now(), EventKind.OPERATOR_ACTS, "orders", {}, None)
    assert operations.pulse() != before
