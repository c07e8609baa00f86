"""Who may do what, and why: the explanation is the check itself, and changes do not collide."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import (
    ANONYMOUS,
    Identity,
    TokenRight,
    TokenScope,
    Validity,
    authenticated,
)
from rpcqm.codec.names.written import format_name
from rpcqm.codec.security.access_check import GENERIC_ALL, GENERIC_READ
from rpcqm.codec.security.descriptor import Ace, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import (
    ANONYMOUS as ANONYMOUS_SID,
)
from rpcqm.codec.security.identifier import (
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    OWNER_RIGHTS,
    Sid,
)
from rpcqm.codec.security.permissions import MACHINE, QUEUE
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.operations.operations import Operations
from rpcqm.operations.permission_words import described_explanation, described_permissions
from rpcqm.operations.permissions import (
    LocksOutError,
    PermissionChange,
    PermissionsChangedError,
)
from rpcqm.qm.access import require_administrator
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR

ORDERS = format_name("orders")
ANN = authenticated("ann", "S-1-5-21-1-2-3-1001")
BOB = authenticated("bob", "S-1-5-21-1-2-3-1002", "S-1-5-32-545")
PART = 7
_SIDS = (
    Sid.parse(ANN.sid),
    Sid.parse(BOB.sid),
    EVERYONE,
    ANONYMOUS_SID,
    BUILTIN_ADMINISTRATORS,
    OWNER_RIGHTS,
)
_entries = st.builds(
    Ace,
    st.sampled_from([0, 0, 0, 1, 1, 0x09, 0x0A, 5]),
    st.sampled_from([0, 0, 0x10, 8]),
    st.integers(0, 0x3F) | st.sampled_from([0xF003F, 0x60000, GENERIC_ALL, GENERIC_READ]),
    st.sampled_from(_SIDS),
)
_descriptors = st.builds(
    SecurityDescriptor,
    st.sampled_from(_SIDS),
    st.none(),
    st.none(),
    st.none() | st.builds(Acl, st.lists(_entries, max_size=6).map(tuple)),
)
_scopes = st.none() | st.builds(
    TokenScope,
    st.just("meter"),
    st.frozensets(st.sampled_from(list(TokenRight))),
    st.none() | st.just(frozenset({r"private$\orders"})) | st.just(frozenset({"other"})),
)


def _ended() -> Identity:
    validity = Validity()
    validity.ended = True
    return authenticated("gone", ANN.sid, validity=validity)


_callers = st.builds(
    Identity.narrowed, st.sampled_from([ANN, BOB, ADMINISTRATOR]), _scopes
) | st.sampled_from([ANONYMOUS, _ended()])


@pytest.fixture
def orders(qm: RunningQueueManager) -> Queue:
    return qm.create()


@pytest.fixture
def protect(qm: RunningQueueManager, orders: Queue) -> Callable[[str], None]:
    def _protect(sddl: str) -> None:
        descriptor = parse_sddl(sddl)
        parts = PART if descriptor.owner else 4
        qm.done(qm.engine.queues.set_security(orders, parts, descriptor.encode()))

    return _protect


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(descriptor=_descriptors, identity=_callers)
def test_the_explanation_is_the_access_check(
    qm: RunningQueueManager, descriptor: SecurityDescriptor, identity: Identity
) -> None:
    """For each right, whatever the descriptor and whoever asks, narrowed by a token or not."""
    queue = qm.engine.registry.find_by_format_name(ORDERS) or qm.create()
    queue.security = descriptor.encode()
    explanation = qm.engine.access.explain(queue, identity)
    rights = {word: mask for word, mask in QUEUE.words.items() if word != "full"}
    assert {each.word for each in explanation.verdicts} == set(rights)
    for each in explanation.verdicts:
        assert each.granted == qm.engine.access.allows(queue, identity, rights[each.word]), each
        assert all(step.allows == each.granted for step in each.steps)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(descriptor=_descriptors, identity=_callers)
def test_so_is_that_of_the_queue_manager(
    qm: RunningQueueManager, descriptor: SecurityDescriptor, identity: Identity
) -> None:
    qm.engine.queue_manager.security = descriptor.encode()
    for each in qm.engine.access.explain(None, identity).verdicts:
        mask = MACHINE.words[each.word]
        granted = qm.engine.access._machine_grants(identity, mask, None)
        assert each.granted == granted, each


def explained(
    operations: Operations, account: str, token: str = "", by: Identity = ADMINISTRATOR
) -> dict[str, tuple[bool, str]]:
    told: Any = described_explanation(operations.permissions.explain(by, ORDERS, account, token))
    return {each["right"]: (each["granted"], each["why"]) for each in told["rights"]}


def test_the_entry_that_decides_is_named(
    qm: RunningQueueManager, operations: Operations, protect: Callable[[str], None]
) -> None:
    ann = qm.done(operations.accounts.add(ADMINISTRATOR, "ann", bytes(16)))
    protect(f"O:BAD:(D;;0x1;;;WD)(A;IO;0x4;;;WD)(A;;0x2;;;WD)(A;;0x4;;;{ann})(A;;0x60000;;;BA)")
    told = explained(operations, "ann")
    assert told["receive"] == (False, "entry 1 denies it to everyone")
    assert told["peek"] == (True, "entry 3 allows it to everyone")
    assert told["send"] == (True, "entry 4 allows it to ann")
    assert told["delete"] == (False, "no entry that concerns ann allows it")
    assert explained(operations, "anonymous")["peek"][0] is False
    own = explained(operations, "administrators")
    assert own["change-permissions"] == (True, "the owner, administrators, always may")
    assert own["take-ownership"] == (True, "administrators always may")
    steps: Any = described_explanation(operations.permissions.explain(ADMINISTRATOR, ORDERS, "ann"))
    assert [each["concern"] for each in steps["steps"]] == [
        *("counts", "inherited only", "counts", "counts", "others")
    ]


def test_a_token_narrows_what_its_account_may(
    qm: RunningQueueManager, operations: Operations, protect: Callable[[str], None]
) -> None:
    qm.done(operations.accounts.add(ADMINISTRATOR, "ann", bytes(16)))
    qm.done(operations.tokens.create(ADMINISTRATOR, "meter", "ann", [TokenRight.PEEK], ["orders"]))
    protect("O:BAD:(A;;0xF003F;;;WD)")
    told = explained(operations, "ann", "meter")
    assert told["peek"] == (True, "entry 1 allows it to everyone")
    assert told["send"] == (False, "the token meter leaves peek, for some queues only")
    with pytest.raises(MQError) as unknown:
        explained(operations, "bob", "meter")
    assert unknown.value.status is NtStatus.STATUS_NO_SUCH_USER


def test_others_than_administrators_ask_for_themselves_and_for_groups(
    qm: RunningQueueManager, operations: Operations, protect: Callable[[str], None]
) -> None:
    qm.done(operations.accounts.add(ADMINISTRATOR, "carl", bytes(16)))
    protect("O:BAD:(A;;0x20002;;;WD)(A;;0xF003F;;;BA)")
    assert explained(operations, "ANN", by=ANN)["peek"][0]
    assert explained(operations, "everyone", by=ANN)["peek"][0]
    for other in ("carl", "nobody", ADMINISTRATOR.sid):
        with pytest.raises(MQError) as refused:
            explained(operations, other, by=ANN)
        assert refused.value.status is NtStatus.STATUS_NO_SUCH_USER
    protect("D:(A;;0x2;;;WD)(A;;0xF003F;;;BA)")
    with pytest.raises(MQError) as refused:
        explained(operations, "ann", by=ANN)
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED


def test_an_account_that_was_removed_is_named_so(
    qm: RunningQueueManager, operations: Operations, protect: Callable[[str], None]
) -> None:
    sid = qm.done(operations.accounts.add(ADMINISTRATOR, "ann", bytes(16)))
    protect(f"O:BAD:(A;;0x2;;;{sid})(A;;0xF003F;;;BA)")
    qm.done(operations.accounts.remove(ADMINISTRATOR, "ann"))
    shown: Any = described_permissions(operations.permissions.shown(ADMINISTRATOR, ORDERS))
    assert shown["entries"][0]["name"] == f"removed account {sid}"
    assert shown["entries"][0]["removed"]
    for account in ("ann", sid):
        with pytest.raises(MQError) as refused:
            explained(operations, account)
        assert refused.value.status is NtStatus.STATUS_NO_SUCH_USER


def allow(who: str, word: str) -> PermissionChange:
    return PermissionChange("allow", who, QUEUE.words[word])


def test_of_two_who_change_the_same_permissions_the_second_looks_again(
    qm: RunningQueueManager, operations: Operations, orders: Queue
) -> None:
    permissions = operations.permissions
    version = permissions.shown(ADMINISTRATOR, ORDERS).version
    first = permissions.change(ADMINISTRATOR, ORDERS, [allow("users", "send")], version=version)
    qm.done(first)
    with pytest.raises(PermissionsChangedError):
        permissions.change(ADMINISTRATOR, ORDERS, [allow("guests", "send")], version=version)
    version = permissions.shown(ADMINISTRATOR, ORDERS).version
    qm.done(permissions.change(ADMINISTRATOR, ORDERS, [allow("guests", "send")], version=version))


def test_nobody_is_locked_out_without_saying_so(
    qm: RunningQueueManager, operations: Operations, protect: Callable[[str], None]
) -> None:
    protect("O:S-1-5-21-9-9-9-1D:(A;;0xF003F;;;BA)(A;;0x40000;;;BU)")
    change = [PermissionChange("revoke", "administrators", QUEUE.full)]
    with pytest.raises(LocksOutError):
        operations.permissions.change(ADMINISTRATOR, ORDERS, change)
    qm.done(operations.permissions.change(ADMINISTRATOR, ORDERS, change, lock_out=True))
    with pytest.raises(MQError) as refused:
        operations.permissions.change(ADMINISTRATOR, ORDERS, change, lock_out=True)
    assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED


def test_a_list_that_nobody_could_change_is_refused(
    operations: Operations, protect: Callable[[str], None]
) -> None:
    protect("O:BAD:(A;;0xF003F;;;BA)")
    change = [PermissionChange("deny", "administrators", QUEUE.full)]
    with pytest.raises(MQError) as refused:
        operations.permissions.change(ADMINISTRATOR, ORDERS, change, lock_out=True)
    assert refused.value.status is HResult.MQ_ERROR_UNSUPPORTED_OPERATION


def test_entries_and_owner_are_changed_in_one_order(
    qm: RunningQueueManager, operations: Operations, orders: Queue
) -> None:
    change = [allow("users", "send"), PermissionChange("deny", "anonymous", QUEUE.full)]
    qm.done(operations.permissions.change(ADMINISTRATOR, ORDERS, change, "administrators"))
    shown: Any = described_permissions(operations.permissions.shown(ADMINISTRATOR, ORDERS))
    assert shown["owner_name"] == "administrators"
    found = {each["name"]: each for each in shown["entries"]}
    assert found["users"]["allowed"] == ["send"]
    assert found["anonymous"]["denied"] == ["full"]


def test_a_refusal_names_the_missing_rights_and_their_cause(
    qm: RunningQueueManager, orders: Queue, protect: Callable[[str], None]
) -> None:
    protect("D:(A;;0x2;;;WD)")  # everybody may peek
    access, gone = qm.engine.access, _ended()
    bearer = ADMINISTRATOR.narrowed(TokenScope("meter", frozenset({TokenRight.PEEK})))
    looker = authenticated("looker", ANN.sid, "S-1-5-32-544", read_only=True)
    words = QUEUE.words
    causes = {
        ANN: "ann lacks send on {}",
        gone: "gone lacks peek and send on {}: the account has ended",
        bearer: "root lacks peek and send on {}: the token meter leaves only peek",
        looker: "looker lacks peek and send on {}: the account may only look",
    }
    for caller, says in causes.items():
        with pytest.raises(MQError) as caught:
            access.check_queue(orders, caller, words["peek"] | words["send"])
        assert caught.value.detail == says.format(orders.pathname)
    with pytest.raises(MQError) as caught:
        require_administrator(bearer)
    assert caught.value.detail == (
        "only administrators may do this, not root: the token meter leaves only peek"
    )
