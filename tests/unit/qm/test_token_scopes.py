"""What the bearer of a token may do (G350): no more than its account and its scope both may."""

import ast
from functools import partial
from pathlib import Path

import pytest

import rpcqm
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.identity import (
    BUILTIN_ADMINISTRATORS,
    Identity,
    TokenRight,
    TokenScope,
    authenticated,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.access import require_administrator
from rpcqm.qm.token_scopes import scope_key
from tests.support.queue_manager import COMPUTER, RunningQueueManager, refusal

OPS = authenticated("ops", "S-1-5-21-1-2-3-1003", BUILTIN_ADMINISTRATORS)
ALICE = authenticated("alice", "S-1-5-21-1-2-3-1001")
PEEK, SEND, RECEIVE, MANAGE = TokenRight
RIGHTS = MQQUEUEACCESSMASK
EVERYTHING_TO_ALL = parse_sddl("O:BAD:(A;;GA;;;WD)").encode()
OPENED_FOR = {
    PEEK: QueueAccessType.PEEK_ACCESS,
    SEND: QueueAccessType.SEND_ACCESS,
    RECEIVE: QueueAccessType.RECEIVE_ACCESS,
}


def bearer(*rights: TokenRight, queues: set[str] | None = None, of: Identity = OPS) -> Identity:
    return of.narrowed(
        TokenScope("t", frozenset(rights), None if queues is None else frozenset(queues))
    )


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    queue = qm.create(journaling=True)
    queue.security = EVERYTHING_TO_ALL
    return queue


@pytest.mark.parametrize("right", list(TokenRight))
@pytest.mark.parametrize("opened", list(OPENED_FOR))
def test_a_queue_is_opened_for_what_the_token_says(
    qm: RunningQueueManager, queue: Queue, right: TokenRight, opened: TokenRight
) -> None:
    access, identity = OPENED_FOR[opened], bearer(right)
    if right is opened or (right, opened) == (RECEIVE, PEEK):
        qm.open(queue, access, identity=identity)
    else:
        refused = refusal(lambda: qm.open(queue, access, identity=identity))
        assert refused == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.parametrize("right", list(TokenRight))
def test_every_question_is_answered_alike(
    qm: RunningQueueManager, queue: Queue, right: TokenRight
) -> None:
    access, identity = qm.engine.access, bearer(right)
    for mask in RIGHTS:
        granted = access.allows(queue, identity, mask)
        assert access.allows_without_audit(queue, identity, mask) == granted
        if not granted:
            refused = refusal(access.check_queue, queue, identity, mask)
            assert refused == "MQ_ERROR_ACCESS_DENIED"
        else:
            access.check_queue(queue, identity, mask)
    assert access.may_peek(queue, identity) == (right in (PEEK, RECEIVE))


def test_each_right_of_a_queue_is_in_some_token_and_generic_ones_in_whole_ones(
    qm: RunningQueueManager, queue: Queue
) -> None:
    allows = qm.engine.access.allows
    for mask in RIGHTS:
        assert allows(queue, bearer(*TokenRight), mask)
        assert any(allows(queue, bearer(right), mask) for right in TokenRight)
    assert allows(queue, bearer(*TokenRight), 0x10000000)
    assert not allows(queue, bearer(PEEK, RECEIVE, MANAGE), 0x10000000)


def test_a_token_adds_no_right_to_its_account(qm: RunningQueueManager, queue: Queue) -> None:
    queue.security = parse_sddl("O:BAD:(A;;0x2;;;AU)").encode()
    assert qm.engine.access.allows(queue, bearer(*TokenRight, of=ALICE), RIGHTS.MQSEC_PEEK_MESSAGE)
    for access in (QueueAccessType.SEND_ACCESS, QueueAccessType.RECEIVE_ACCESS):
        whole = partial(qm.open, queue, access, identity=bearer(*TokenRight, of=ALICE))
        refused = refusal(whole)
        assert refused == "MQ_ERROR_ACCESS_DENIED"


def test_a_token_for_one_queue_is_for_its_subqueues_and_journal_too(
    qm: RunningQueueManager, queue: Queue
) -> None:
    other = qm.create(r"private$\other")
    other.security = EVERYTHING_TO_ALL
    identity = bearer(*TokenRight, queues={r"private$\orders"})
    receive = QueueAccessType.RECEIVE_ACCESS
    for name in ("orders", "ORDERS", "orders;late", "orders;JOURNAL"):
        qm.open(rf"DIRECT=OS:.\private$\{name}", receive, identity=identity)
    refused = refusal(lambda: qm.open(other, receive, identity=identity))
    assert refused == "MQ_ERROR_ACCESS_DENIED"


def test_a_token_for_one_queue_is_not_for_the_queue_manager(qm: RunningQueueManager) -> None:
    check, create = qm.engine.access.check_queue_manager, MQQMACCESSMASK.MQSEC_CREATE_QUEUE
    identity = bearer(*TokenRight, queues={r"private$\orders"})
    for mask in MQQMACCESSMASK:
        assert refusal(check, identity, mask) == "MQ_ERROR_ACCESS_DENIED"
    check(bearer(MANAGE), create)
    for right in (PEEK, SEND, RECEIVE):
        assert refusal(check, bearer(right), create) == "MQ_ERROR_ACCESS_DENIED"


def test_dead_letters_are_read_with_a_token_for_them(qm: RunningQueueManager) -> None:
    name = f"MACHINE={qm.engine.queue_manager.identifier};DEADLETTER"
    receive, peek = QueueAccessType.RECEIVE_ACCESS, QueueAccessType.PEEK_ACCESS
    qm.open(name, receive, identity=bearer(RECEIVE, queues={"system$;deadletter"}))
    qm.open(name, peek, identity=bearer(PEEK))
    for identity, access in (
        (bearer(RECEIVE, queues={"system$;deadxact"}), receive),
        (bearer(SEND, MANAGE), peek),
        (bearer(PEEK), receive),
    ):
        refused = refusal(partial(qm.open, name, access, identity=identity))
        assert refused == "MQ_ERROR_ACCESS_DENIED"


def test_messages_for_elsewhere_are_sent_with_a_token_for_there(qm: RunningQueueManager) -> None:
    name, send = r"DIRECT=OS:elsewhere\private$\orders", QueueAccessType.SEND_ACCESS
    for identity in (bearer(PEEK), bearer(SEND, queues={r"private$\orders"})):
        refused = refusal(partial(qm.open, name, send, identity=identity))
        assert refused == "MQ_ERROR_ACCESS_DENIED"
    qm.settle()
    assert qm.engine.outgoing.find(FormatName.parse(name)) is None
    opened = qm.open(name, send, identity=bearer(SEND, queues={name.casefold()}))
    assert isinstance(opened.queue_reference, OutgoingQueue)
    qm.open(name, send, identity=bearer(SEND))
    admin = QueueAccessType.RECEIVE_ADMIN_ACCESS
    refused = refusal(lambda: qm.open(name, admin, identity=bearer(SEND)))
    assert refused == "MQ_ERROR_ACCESS_DENIED"


def test_only_a_whole_token_of_an_administrator_is_one(qm: RunningQueueManager) -> None:
    require_administrator(bearer(*TokenRight))
    for identity in (
        bearer(PEEK, SEND, MANAGE),
        bearer(MANAGE),
        bearer(*TokenRight, queues={r"private$\orders"}),
        bearer(*TokenRight, of=ALICE),
    ):
        assert refusal(require_administrator, identity) == "MQ_ERROR_ACCESS_DENIED"


def test_auditing_is_for_whole_tokens(qm: RunningQueueManager, queue: Queue) -> None:
    audit = 8  # SACL_SECURITY_INFORMATION
    security = qm.engine.access.get_queue_security
    security(queue, audit, bearer(*TokenRight))
    assert refusal(security, queue, audit, bearer(MANAGE)) == "MQ_ERROR_PRIVILEGE_NOT_HELD"


@pytest.mark.parametrize(("text", "key"), [
    ("orders", r"private$\orders"),
    (r"PRIVATE$\Orders", r"private$\orders"),
    (r".\Private$\ORDERS;late", r"private$\orders"),
    (rf"{COMPUTER}\private$\orders", r"private$\orders"),
    (r"DIRECT=OS:localhost\private$\Orders", r"private$\orders"),
    (r"DIRECT=OS:.\SYSTEM$;DEADLETTER", "system$;deadletter"),
    (r".\public", "public"),
    (r"DIRECT=OS:Elsewhere\private$\Orders", r"direct=os:elsewhere\private$\orders"),
    (r"elsewhere\private$\orders", r"direct=os:elsewhere\private$\orders"),
])  # fmt: skip
def test_queues_of_tokens_are_named_as_elsewhere(
    qm: RunningQueueManager, queue: Queue, text: str, key: str
) -> None:
    names, registry = qm.engine.names, qm.engine.registry
    assert scope_key(text, names, registry) == key


def test_private_format_names_of_tokens_mean_their_queue(
    qm: RunningQueueManager, queue: Queue
) -> None:
    name = f"PRIVATE={qm.engine.queue_manager.identifier}\\{queue.private_queue_number:08x}"
    assert qm.engine.registry.find_by_format_name(FormatName.parse(name)) is queue
    assert scope_key(name, qm.engine.names, qm.engine.registry) == r"private$\orders"


SIDS_READ_IN = {
    ("base/identity.py", "sids"): 0,
    ("qm/access.py", "_grants"): 1,
    ("qm/access.py", "_check"): 1,  # for auditing, after _grants
    ("qm/access.py", "_check_auditing"): 1,  # which asks for a whole token
    ("qm/access.py", "_check_new_owner"): 1,  # after check_queue
    ("qm/access.py", "is_exposed"): 1,  # of everybody who has not logged on
    ("qm/access_explained.py", "explained"): 1,  # which tells of the scope beside it
    ("operations/permissions.py", "_rules"): 1,  # a warning to whoever may change them
    ("dcom/access.py", None): 1,  # DCOM knows no tokens
}


def test_nobody_else_decides_by_the_sids_of_a_caller() -> None:
    """Where a descriptor were asked without the scope, a token would have its account's rights."""
    root = Path(rpcqm.__file__).parent
    found: dict[tuple[str, str | None], int] = {}
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        name = path.relative_to(root).as_posix()
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                reads = [
                    node
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute) and node.attr == "sids"
                ]
                if reads:
                    place = (name, None if name.startswith("dcom/") else function.name)
                    found[place] = len(reads)
    assert found.keys() <= SIDS_READ_IN.keys()
