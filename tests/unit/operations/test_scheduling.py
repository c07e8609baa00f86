"""Messages are held back until their time, over restarts and crashes, once each (G656)."""

from pathlib import Path

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import EVERYONE, Identity, TokenRight, TokenScope
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.operations.drafts import Draft
from rpcqm.operations.operations import Operations
from rpcqm.operations.scheduling import RETRY, described
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager

HOUR = 3_600_000
ORDERS = (format_name("orders"),)
AWAY = FormatName.parse(r"DIRECT=OS:other\private$\x")


@pytest.fixture
def boss(operations: Operations, qm: RunningQueueManager) -> Identity:
    return account(operations, qm, "boss", "administrators")


def account(operations: Operations, qm: RunningQueueManager, name: str, *groups: str) -> Identity:
    accounts = operations.scheduling._accounts
    qm.done(accounts.add(name, bytes(16), groups))  # type: ignore[attr-defined]
    identity: Identity = accounts.identity(name, "")  # type: ignore[attr-defined]
    return identity


def hold(
    qm: RunningQueueManager,
    operations: Operations,
    who: Identity,
    *,
    after: int = HOUR,
    to: tuple[FormatName, ...] = ORDERS,
) -> str:
    due = qm.clock.now() + after
    return qm.done(operations.scheduling.schedule(who, to, Draft(b"later", "x", ttbr=60), due))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_message_goes_to_its_queue_whatever_that_is_called_then(
    qm: RunningQueueManager,
    operations: Operations,
    boss: Identity,
    tmp_path: Path,
    restarted: bool,
) -> None:
    queue = qm.create()
    held = hold(qm, operations, boss, to=(*ORDERS, AWAY))
    path = queue.pathname
    qm.done(qm.engine.renaming.rename(queue, path.replace("orders", "bills")))
    other = qm.create()
    if restarted:
        qm.restart()
        operations = operations_of(qm, tmp_path)
    (kept,) = operations.scheduling.list(boss)
    assert (kept.identifier, kept.queues) == (held, (r"DIRECT=OS:.\private$\bills", str(AWAY)))
    assert described(kept)["queue_name"] == f"bills, {AWAY}"
    qm.advance(HOUR)
    found = {each.pathname: each.message_count for each in qm.engine.registry.all()}
    assert (found[path.replace("orders", "bills")], found[other.pathname]) == (1, 0)


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("restarted", ["", "stop", "crash"])
def test_a_message_is_sent_at_its_time_and_once(
    qm: RunningQueueManager,
    operations: Operations,
    boss: Identity,
    tmp_path: Path,
    restarted: str,
    transactional: bool,
) -> None:
    qm.create(transactional=transactional)
    hold(qm, operations, boss)
    qm.advance(HOUR - 1)
    if restarted:
        (qm.restart if restarted == "stop" else qm.crash)()
        operations = operations_of(qm, tmp_path)
    assert qm.bodies(qm.find(r"private$\orders")) == []
    qm.advance(1)
    orders = qm.find(r"private$\orders")
    assert qm.bodies(orders) == [b"later"]
    assert operations.scheduling.list(boss) == []
    qm.restart()
    operations_of(qm, tmp_path)
    qm.advance(1)
    assert qm.bodies(qm.find(r"private$\orders")) == [b"later"]
    qm.advance(RETRY)  # its time to be received counts from when it was sent
    assert qm.bodies(qm.find(r"private$\orders")) == []


def test_a_time_that_comes_while_the_queue_manager_is_down_is_kept(
    qm: RunningQueueManager, operations: Operations, boss: Identity, tmp_path: Path
) -> None:
    qm.create()
    hold(qm, operations, boss)
    qm.stop()
    qm.clock.advance(2 * HOUR)
    qm._start()
    operations_of(qm, tmp_path)
    qm.advance(1)
    assert qm.bodies(qm.find(r"private$\orders")) == [b"later"]


def test_nothing_is_on_its_way_before(
    qm: RunningQueueManager, operations: Operations, boss: Identity
) -> None:
    hold(qm, operations, boss, to=(AWAY,))
    qm.advance(HOUR - 1)
    assert operations.outgoing.list(boss) == []
    qm.advance(1)
    (queue,) = operations.outgoing.list(boss)
    assert queue.message_count == 1


def test_nothing_more_is_held_back_during_maintenance(
    qm: RunningQueueManager, operations: Operations, boss: Identity
) -> None:
    """What was before waits for the end of it (G631)."""
    qm.create()
    hold(qm, operations, boss)
    operations.machine.maintain(boss, True, "a new disk")
    with pytest.raises(MQError, match="a new disk"):
        hold(qm, operations, boss)
    qm.advance(HOUR)
    assert qm.bodies(qm.find(r"private$\orders")) == []
    (waiting,) = operations.scheduling.list(boss)
    assert "a new disk" in waiting.trouble
    operations.machine.maintain(boss, False)
    qm.advance(RETRY)
    assert qm.bodies(qm.find(r"private$\orders")) == [b"later"]


def test_what_is_held_back_can_be_cancelled(
    qm: RunningQueueManager, operations: Operations, boss: Identity, tmp_path: Path
) -> None:
    qm.create()
    ann, bob = (account(operations, qm, name) for name in ("ann", "bob"))
    kept, other = hold(qm, operations, ann), hold(qm, operations, ann)
    assert [each.identifier for each in operations.scheduling.list(bob)] == []
    with pytest.raises(MQError, match="STATUS_OBJECT_NAME_NOT_FOUND"):
        operations.scheduling.cancel(bob, kept)
    qm.done(operations.scheduling.cancel(ann, kept))
    assert [each.identifier for each in operations.scheduling.list(boss)] == [other]
    qm.done(operations.scheduling.cancel(boss, other))
    qm.restart()
    operations_of(qm, tmp_path)
    qm.advance(2 * HOUR)
    assert qm.bodies(qm.find(r"private$\orders")) == []


def test_a_message_that_is_refused_at_its_time_stays_and_says_why(
    qm: RunningQueueManager, operations: Operations, boss: Identity
) -> None:
    queue = qm.create()
    hold(qm, operations, boss)
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.advance(HOUR)
    (held,) = operations.scheduling.list(boss)
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in held.trouble
    again = qm.create()
    qm.advance(RETRY)
    assert qm.bodies(again) == [b"later"]
    assert operations.scheduling.list(boss) == []


def test_rights_count_when_it_is_held_back_and_when_it_is_sent(
    qm: RunningQueueManager, operations: Operations, boss: Identity
) -> None:
    qm.create()
    ann = account(operations, qm, "ann")
    hold(qm, operations, ann)
    qm.done(operations.accounts.remove(boss, "ann"))
    qm.advance(HOUR)
    (held,) = operations.scheduling.list(boss)
    assert "the account ann has gone" in held.trouble
    looker = account(operations, qm, "eve", "observers")
    with pytest.raises(MQError, match="MQ_ERROR_ACCESS_DENIED"):
        hold(qm, operations, looker)
    with pytest.raises(MQError, match="MQ_ERROR_QUEUE_NOT_FOUND"):
        hold(qm, operations, boss, to=(format_name("nowhere"),))


@pytest.mark.bound("program.scheduled")
@pytest.mark.bound("program.scheduled_octets")
@pytest.mark.parametrize(("name", "most"), [("MOST_SCHEDULED", 2), ("MOST_OCTETS", 2_000)])
def test_so_many_are_held_back(
    qm: RunningQueueManager,
    operations: Operations,
    boss: Identity,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    most: int,
) -> None:
    qm.create()
    monkeypatch.setattr(f"rpcqm.operations.scheduling.{name}", most)
    first = hold(qm, operations, boss)
    hold(qm, operations, boss)
    with pytest.raises(MQError, match="MQ_ERROR_INSUFFICIENT_RESOURCES"):
        hold(qm, operations, boss)
    qm.done(operations.scheduling.cancel(boss, first))
    hold(qm, operations, boss)


@pytest.mark.bound("program.scheduled_of_account")
def test_one_account_holds_back_no_more_than_its_part(
    qm: RunningQueueManager,
    operations: Operations,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    qm.create()
    monkeypatch.setattr("rpcqm.operations.scheduling.MOST_OF_ACCOUNT", 2)
    ann, bob = (account(operations, qm, name) for name in ("ann", "bob"))
    first, _ = hold(qm, operations, ann), hold(qm, operations, ann)
    with pytest.raises(MQError, match="MQ_ERROR_INSUFFICIENT_RESOURCES"):
        hold(qm, operations, ann)
    hold(qm, operations, bob)
    qm.restart()
    operations = operations_of(qm, tmp_path)
    with pytest.raises(MQError, match="MQ_ERROR_INSUFFICIENT_RESOURCES"):
        hold(qm, operations, ann)
    qm.done(operations.scheduling.cancel(ann, first))
    hold(qm, operations, ann)
    qm.advance(HOUR + 1)
    assert operations.scheduling.list(ann) == []
    hold(qm, operations, ann)
    hold(qm, operations, ann)


@pytest.mark.bound("program.scheduled_octets")
@pytest.mark.parametrize(
    "draft",
    [
        Draft(extension_base64="QUFB" * 1_000),
        Draft(traceparent="x" * 4_000),
        Draft(acknowledgements=("arrival",) * 500, admin_queue="orders"),
    ],
    ids=["extension", "trace", "acknowledgements"],
)
def test_what_is_held_beside_a_body_counts_too(
    qm: RunningQueueManager,
    operations: Operations,
    boss: Identity,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    draft: Draft,
) -> None:
    """And does so after a restart: the disk would be full without a body (G716)."""
    qm.create()
    monkeypatch.setattr("rpcqm.operations.scheduling.MOST_OCTETS", 8_000)
    scheduling, due = operations.scheduling, qm.clock.now() + HOUR
    qm.done(scheduling.schedule(boss, ORDERS, draft, due))
    with pytest.raises(MQError, match="MQ_ERROR_INSUFFICIENT_RESOURCES"):
        scheduling.schedule(boss, ORDERS, draft, due)
    qm.restart()
    scheduling = operations_of(qm, tmp_path).scheduling
    with pytest.raises(MQError, match="MQ_ERROR_INSUFFICIENT_RESOURCES"):
        scheduling.schedule(boss, ORDERS, draft, due)


@pytest.mark.parametrize("made_again", [False, True])
def test_what_a_token_has_held_back_is_not_sent_once_it_is_deleted(
    qm: RunningQueueManager, operations: Operations, boss: Identity, made_again: bool
) -> None:
    """Nor by another one of its name, which somebody else has (G718)."""
    queue = qm.create()
    account(operations, qm, "ann")

    def token(name: str) -> Identity:
        text = qm.done(operations.tokens.create(boss, name, "ann", queues=["orders"]))
        bearer = operations.tokens.verify(text)
        assert bearer is not None
        return bearer

    first = hold(qm, operations, token("kept"))
    stolen = hold(qm, operations, token("stolen"))
    qm.done(operations.tokens.delete(boss, "stolen"))
    if made_again:
        qm.advance(1)
        token("stolen")
    qm.advance(HOUR)
    assert qm.bodies(queue) == [b"later"]
    (left,) = operations.scheduling.list(boss)
    assert (left.identifier, "the token stolen has gone" in left.trouble) == (stolen, True)
    assert first != stolen


def test_a_narrow_token_has_what_was_held_back_by_it(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """Others of its account may be for queues that it is not for (G717)."""
    qm.create()
    ann = account(operations, qm, "ann")
    narrow = ann.narrowed(TokenScope("t", queues=frozenset({r"private$\orders"})))
    other = ann.narrowed(TokenScope("u", frozenset({TokenRight.PEEK})))
    whole = ann.narrowed(TokenScope("w"))
    hers, its = hold(qm, operations, ann), hold(qm, operations, narrow)
    scheduling = operations.scheduling
    seen = [{each.identifier for each in scheduling.list(who)} for who in (narrow, other, whole)]
    assert seen == [{its}, set(), {hers, its}]
    for who, identifier in ((narrow, hers), (other, hers), (other, its)):
        with pytest.raises(MQError, match="STATUS_OBJECT_NAME_NOT_FOUND"):
            scheduling.cancel(who, identifier)
    qm.done(scheduling.cancel(narrow, its))
    qm.done(scheduling.cancel(whole, hers))


def test_users_of_the_machine_without_an_account_have_their_own(
    qm: RunningQueueManager, operations: Operations, boss: Identity
) -> None:
    """They share the SID of everybody (G717)."""
    qm.create()
    one, other = Identity("one", EVERYONE), Identity("other", EVERYONE)
    held = hold(qm, operations, one)
    assert operations.scheduling.list(other) == []
    with pytest.raises(MQError, match="STATUS_OBJECT_NAME_NOT_FOUND"):
        operations.scheduling.cancel(other, held)
    assert [each.identifier for each in operations.scheduling.list(one)] == [held]
    qm.done(operations.scheduling.cancel(one, held))
