"""Access checks (G9) and default descriptors ([MS-MQDMPR] 3.1.7.1.3.1)."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import MQError
from rpcqm.base.identity import ANONYMOUS, EVERYONE, Identity, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.codec.security.descriptor import (
    Ace,
    Acl,
    SecurityDescriptor,
    SecurityInformation,
)
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.default_security import MIGRATED_KEY
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.records import Family
from tests.support.queue_manager import SETTINGS, RunningQueueManager, refusal

ADMINISTRATOR = authenticated("root", "S-1-5-21-1-2-3-500", "S-1-5-32-544")
ANN = authenticated("ann", "S-1-5-21-1-2-3-1000")
BOB = authenticated("bob", "S-1-5-21-1-2-3-1001")
DACL = SecurityInformation.DACL_SECURITY_INFORMATION
OWNER = SecurityInformation.OWNER_SECURITY_INFORMATION

RECEIVE, SEND, PEEK, MOVE = (
    QueueAccessType.RECEIVE_ACCESS,
    QueueAccessType.SEND_ACCESS,
    QueueAccessType.PEEK_ACCESS,
    QueueAccessType.MOVE_ACCESS,
)


def descriptor(*aces: tuple[str, int]) -> bytes:
    entries = tuple(Ace(0, mask=int(mask), sid=Sid.parse(sid)) for sid, mask in aces)
    return SecurityDescriptor(dacl=Acl(entries)).encode()


def protect(qm: RunningQueueManager, queue: Queue, *aces: tuple[str, int]) -> None:
    qm.done(qm.engine.queues.set_security(queue, DACL, descriptor(*aces)))


NEEDED = [(RECEIVE, 0x3), (PEEK, 0x2), (SEND, 0x4), (MOVE, 0x3)]


@pytest.mark.conformance("MQDMPR-event-open_queue", "MQDMPR-element-QueueAccessType")
@pytest.mark.parametrize(("access", "rights"), NEEDED)
def test_opening_needs_the_rights_of_its_access(
    qm: RunningQueueManager, access: QueueAccessType, rights: int
) -> None:
    """receive 0x3, peek 0x2, send 0x4, move as receive; else 0xC00E0025 (G9)."""
    queue = qm.create()
    protect(qm, queue, (ANN.sid, rights), (BOB.sid, 0xF003F & ~rights))
    qm.open(queue, access, identity=ANN)
    for identity in (BOB, ANONYMOUS):
        assert refusal(qm.open, queue, access, identity=identity) == "MQ_ERROR_ACCESS_DENIED"


def test_a_part_of_the_rights_is_not_enough(qm: RunningQueueManager) -> None:
    queue = qm.create()
    protect(qm, queue, (ANN.sid, MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE))
    qm.open(queue, PEEK, identity=ANN)
    assert refusal(qm.open, queue, RECEIVE, identity=ANN) == "MQ_ERROR_ACCESS_DENIED"


def test_the_queue_manager_itself_is_not_checked(qm: RunningQueueManager) -> None:
    queue = qm.create()
    protect(qm, queue)
    qm.open(queue, RECEIVE)
    assert refusal(qm.open, queue, RECEIVE, identity=ADMINISTRATOR) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.parametrize(("access", "rights"), [(RECEIVE, 0xA), (PEEK, 0x2)])
def test_a_journal_has_rights_of_its_own(
    qm: RunningQueueManager, access: QueueAccessType, rights: int
) -> None:
    """Receiving from a journal is 0xA (G9)."""
    queue = qm.create()
    journal = f"DIRECT=OS:{queue.pathname};JOURNAL"
    protect(qm, queue, (ANN.sid, rights), (BOB.sid, 0xF003F & ~rights))
    qm.open(journal, access, identity=ANN)
    assert refusal(qm.open, journal, access, identity=BOB) == "MQ_ERROR_ACCESS_DENIED"


def test_a_subqueue_has_the_descriptor_of_its_parent(qm: RunningQueueManager) -> None:
    queue = qm.create()
    protect(qm, queue, (ANN.sid, 0x3))
    name = f"DIRECT=OS:{queue.pathname};sub"
    assert refusal(qm.open, name, RECEIVE, identity=BOB) == "MQ_ERROR_ACCESS_DENIED"
    assert queue.subqueue_collection == {}
    qm.open(name, RECEIVE, identity=ANN)
    assert refusal(qm.open, name, RECEIVE, identity=BOB) == "MQ_ERROR_ACCESS_DENIED"


SYSTEM = [
    ("DEADLETTER", RECEIVE, MQQMACCESSMASK.MQSEC_RECEIVE_DEADLETTER_MESSAGE),
    ("DEADXACT", PEEK, MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE),
    ("JOURNAL", RECEIVE, MQQMACCESSMASK.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE),
    ("JOURNAL", PEEK, MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE),
]


@pytest.mark.parametrize(("name", "access", "rights"), SYSTEM)
def test_queues_of_the_system_have_their_rights_in_the_machines_descriptor(
    qm: RunningQueueManager, name: str, access: QueueAccessType, rights: int
) -> None:
    """G9."""
    change = descriptor((ANN.sid, rights), (BOB.sid, 0xF00F7 & ~rights))
    qm.done(qm.engine.access.set_queue_manager_security(DACL, change, None))
    qm.restart()
    system = rf"DIRECT=OS:.\SYSTEM$;{name}"
    qm.open(system, access, identity=ANN)
    assert refusal(qm.open, system, access, identity=BOB) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.parametrize("name", ["order_queue$", "notify_queue$"])
def test_applications_do_not_touch_the_internal_queues(qm: RunningQueueManager, name: str) -> None:
    queue = rf"DIRECT=OS:.\private$\{name}"
    for access in (RECEIVE, SEND, PEEK):
        refused = refusal(qm.open, queue, access, identity=ADMINISTRATOR)
        assert refused == "MQ_ERROR_ACCESS_DENIED"


def test_an_outgoing_queue_is_read_by_administrators_only(qm: RunningQueueManager) -> None:
    qm.open(r"DIRECT=OS:other\q", SEND, identity=ANN)
    access = QueueAccessType.PEEK_ADMIN_ACCESS
    refused = refusal(qm.open, r"DIRECT=OS:other\q", access, identity=ANN)
    assert refused == "MQ_ERROR_ACCESS_DENIED"
    qm.open(r"DIRECT=OS:other\q", access, identity=ADMINISTRATOR)


# Default descriptors


def rights_of(security: bytes, identity: Identity) -> int:
    from rpcqm.codec.security.access_check import PreparedDescriptor

    prepared = PreparedDescriptor(SecurityDescriptor.decode(security))
    return prepared.granted(identity.sids) & 0xFFFFF


FULL = int(MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL)
WORKGROUP = QueueManagerSettings(SETTINGS.computer_name, workgroup_default_security=True)


def created_by(qm: RunningQueueManager, identity: Identity | None) -> SecurityDescriptor:
    """The descriptor of a queue that is created with nothing said of permissions."""
    queues = qm.engine.queues
    if identity is not None:
        granted = descriptor((identity.sid, MQQMACCESSMASK.MQSEC_CREATE_QUEUE))
        qm.done(qm.engine.access.set_queue_manager_security(DACL, granted, None))
    queue = queues.new_queue(r".\private$\mine", identity)
    return SecurityDescriptor.decode(
        qm.done(queues.create_queue(queue, identity=identity)).security
    )


ADMINISTRATORS = "S-1-5-32-544"
LOCAL_USER = Identity("joe", EVERYONE)


@pytest.mark.parametrize(
    ("creator", "owner"),
    [
        (ANN, ANN.sid),
        (ADMINISTRATOR, ADMINISTRATOR.sid),
        (None, ADMINISTRATORS),
        (ANONYMOUS, ADMINISTRATORS),
        (LOCAL_USER, ADMINISTRATORS),
    ],
)
def test_a_new_queue_belongs_to_its_creator_or_to_administrators(
    qm: RunningQueueManager, creator: Identity | None, owner: str
) -> None:
    """The owner may do everything, Everyone peek, receive and send, Anonymous send (G83)."""
    security = created_by(qm, creator)
    assert str(security.owner) == owner
    assert security.dacl is not None
    entries = [(ace.type, ace.flags, str(ace.sid), ace.mask) for ace in security.dacl.aces]
    assert entries == [(0, 0, owner, FULL), (0, 0, EVERYONE, 0x7), (0, 0, "S-1-5-7", 0x4)]


def test_anonymous_may_send_to_a_new_queue_and_no_more(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.open(queue, SEND, identity=ANONYMOUS)
    for access in (RECEIVE, PEEK, MOVE):
        assert refusal(qm.open, queue, access, identity=ANONYMOUS) == "MQ_ERROR_ACCESS_DENIED"
    assert rights_of(queue.security, ANONYMOUS) == 0x4


@pytest.mark.parametrize("supplied", ["O:AND:(A;;0x3;;;WD)", "O:AN"])
def test_anonymous_cannot_be_made_the_owner_of_a_new_queue(
    qm: RunningQueueManager, supplied: str
) -> None:
    security = qm.engine.access.default_queue_security(ANN, parse_sddl(supplied).encode())
    assert str(SecurityDescriptor.decode(security).owner) == ADMINISTRATORS


@pytest.mark.conformance("MQDMPR-rule-3.1.7.1.3.1")
def test_a_switch_gives_new_queues_the_permissions_of_a_workgroup(
    qm: RunningQueueManager,
) -> None:
    qm.restart(WORKGROUP)
    security = created_by(qm, ANN)
    assert security == parse_sddl("O:AND:(A;;0xf003f;;;WD)")
    assert rights_of(security.encode(), ANN) & FULL == FULL


@pytest.mark.conformance("MQDMPR-rule-3.1.7.1.3.1")
def test_with_srmp_everyone_and_anonymous_may_send(qm: RunningQueueManager) -> None:
    qm.restart(replace(WORKGROUP, srmp_http_support=True))
    assert created_by(qm, None) == parse_sddl("O:AND:(A;;0xf003f;;;WD)(A;;0x4;;;AN)")


def test_anonymous_has_no_rights_as_an_owner(qm: RunningQueueManager) -> None:
    qm.restart(WORKGROUP)
    queue = qm.create()
    for parts in (OWNER, DACL):
        refused = refusal(qm.engine.queues.get_security, queue, parts, identity=ANONYMOUS)
        assert refused == "MQ_ERROR_ACCESS_DENIED"
    refused = refusal(qm.engine.queues.set_security, queue, DACL, descriptor(), identity=ANONYMOUS)
    assert refused == "MQ_ERROR_ACCESS_DENIED"
    assert rights_of(queue.security, ANONYMOUS) == 0


# What earlier versions gave to new queues

OLD = ["O:AND:(A;;0xf003f;;;WD)", "O:AND:(A;;0xf003f;;;WD)(A;;0x4;;;AN)", "O:AND:(A;;GA;;;WD)"]
CHOSEN = [
    "O:BAD:(A;;0xf003f;;;WD)",
    "O:AND:(A;;0x3;;;WD)",
    "O:AND:(A;;0xf003f;;;WD)(A;;0x7;;;AN)",
    "O:AND:(D;;0xf003f;;;WD)",
    "O:AN",
]


def written_before(qm: RunningQueueManager, sddl: str) -> None:
    """A queue with a descriptor as an earlier version has left it."""
    queue = qm.create()
    parts = OWNER | DACL
    qm.done(qm.engine.queues.set_security(queue, parts, parse_sddl(sddl).encode()))
    with qm.store.transaction("as an earlier version") as change:
        change.delete(Family.META, MIGRATED_KEY)
    qm.settle()


@pytest.mark.parametrize("sddl", OLD)
def test_old_defaults_are_replaced_once_and_kept_when_set_again(
    qm: RunningQueueManager, sddl: str
) -> None:
    """G84."""
    written_before(qm, sddl)
    with capture_logs() as logs:
        qm.restart()
    new = parse_sddl("O:BAD:(A;;0xf003f;;;BA)(A;;0x7;;;WD)(A;;0x4;;;AN)")
    assert SecurityDescriptor.decode(qm.find().security) == new
    named = [log["queue"] for log in logs if "old default" in log["event"]]
    assert named == [qm.find().pathname]
    again = parse_sddl(sddl).encode()
    qm.done(qm.engine.queues.set_security(qm.find(), OWNER | DACL, again))
    with capture_logs() as logs:
        qm.restart()
    assert SecurityDescriptor.decode(qm.find().security) == parse_sddl(sddl)
    assert not [log for log in logs if "old default" in log["event"]]


@pytest.mark.parametrize("sddl", CHOSEN)
def test_what_somebody_has_chosen_is_not_replaced(qm: RunningQueueManager, sddl: str) -> None:
    written_before(qm, sddl)
    before = qm.find().security
    with capture_logs() as logs:
        qm.restart()
    assert qm.find().security == before
    assert not [log for log in logs if "old default" in log["event"]]


def test_a_new_data_directory_has_nothing_to_replace(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.done(qm.engine.queues.set_security(queue, OWNER | DACL, parse_sddl(OLD[0]).encode()))
    qm.restart()
    assert SecurityDescriptor.decode(qm.find().security) == parse_sddl(OLD[0])


@pytest.mark.conformance("MQDMPR-rule-3.1.7.1.3.1")
def test_a_supplied_access_list_is_kept(qm: RunningQueueManager) -> None:
    queue = qm.engine.queues.new_queue(r".\private$\mine", ANN)
    queue.security = descriptor((ANN.sid, 0x3))
    created = qm.done(qm.engine.queues.create_queue(queue, identity=ANN))
    final = SecurityDescriptor.decode(created.security)
    supplied = SecurityDescriptor.decode(descriptor((ANN.sid, 0x3)))
    assert final.dacl == supplied.dacl
    assert str(final.owner) == ANN.sid


def test_bytes_that_are_no_descriptor_are_refused(qm: RunningQueueManager) -> None:
    queue = qm.engine.queues.new_queue(r".\private$\mine")
    queue.security = b"nonsense"
    refused = refusal(qm.engine.queues.create_queue, queue)
    assert refused == "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"
    existing = qm.create()
    refused = refusal(qm.engine.queues.set_security, existing, DACL, b"nonsense")
    assert refused == "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"


def test_the_descriptor_of_a_queue_is_read_and_changed_in_parts(qm: RunningQueueManager) -> None:
    queue = qm.create()
    before = queue.modify_time
    qm.advance(3_000)
    owner = SecurityDescriptor(owner=Sid.parse(ANN.sid)).encode()
    qm.done(qm.engine.queues.set_security(queue, OWNER, owner))
    part = SecurityDescriptor.decode(qm.engine.queues.get_security(queue, OWNER))
    assert str(part.owner) == ANN.sid
    assert part.dacl is None
    assert SecurityDescriptor.decode(queue.security).dacl is not None
    qm.restart()
    assert qm.find().security == queue.security
    assert qm.find().modify_time == before + 3


def test_each_part_of_a_descriptor_needs_its_own_right(qm: RunningQueueManager) -> None:
    queue = qm.create()
    mask = MQQUEUEACCESSMASK
    protect(
        qm,
        queue,
        (ANN.sid, mask.MQSEC_CHANGE_QUEUE_PERMISSIONS | mask.MQSEC_GET_QUEUE_PERMISSIONS),
        (BOB.sid, mask.MQSEC_TAKE_QUEUE_OWNERSHIP | mask.MQSEC_SET_QUEUE_PROPERTIES),
    )
    queues = qm.engine.queues
    owner = SecurityDescriptor(owner=Sid.parse(BOB.sid)).encode()
    denied = "MQ_ERROR_ACCESS_DENIED"
    assert refusal(queues.set_security, queue, OWNER, owner, identity=ANN) == denied
    assert refusal(queues.set_security, queue, DACL, descriptor(), identity=BOB) == denied
    assert refusal(queues.get_security, queue, DACL, identity=BOB) == denied
    assert refusal(queues.set_properties, queue, {"label": "x"}, identity=ANN) == denied
    queues.get_security(queue, DACL, identity=ANN)
    qm.done(queues.set_properties(queue, {"label": "x"}, identity=BOB))
    qm.done(queues.set_security(queue, OWNER, owner, identity=BOB))
    qm.done(queues.set_security(queue, DACL, descriptor(), identity=ANN))


def test_the_machines_descriptor_lets_users_create_and_administrators_do_all(
    qm: RunningQueueManager,
) -> None:
    access = qm.engine.access
    mask = MQQMACCESSMASK
    access.check_queue_manager(ADMINISTRATOR, mask.MQSEC_MACHINE_GENERIC_ALL)
    access.check_queue_manager(ANN, mask.MQSEC_CREATE_QUEUE)
    access.check_queue_manager(LOCAL_USER, mask.MQSEC_MACHINE_WORLD_RIGHTS)
    for identity, rights in (
        (ANN, mask.MQSEC_SET_MACHINE_PROPERTIES),
        (LOCAL_USER, mask.MQSEC_CREATE_QUEUE),
        (ANONYMOUS, mask.MQSEC_GET_MACHINE_PROPERTIES),
    ):
        refused = refusal(access.check_queue_manager, identity, rights)
        assert refused == "MQ_ERROR_ACCESS_DENIED"
    change = access.set_queue_manager_security
    assert refusal(change, DACL, descriptor(), ANN) == "MQ_ERROR_ACCESS_DENIED"
    part = access.get_queue_manager_security(OWNER, ANN)
    assert str(SecurityDescriptor.decode(part).owner) == "S-1-5-32-544"


def test_what_is_allowed_can_be_asked_without_refusal(qm: RunningQueueManager) -> None:
    queue = qm.create()
    protect(qm, queue, (ANN.sid, 0x3))
    assert qm.engine.access.allows(queue, ANN, 0x3)
    assert not qm.engine.access.allows(queue, BOB, 0x2)


def test_every_refusal_is_logged_with_who_wanted_what(qm: RunningQueueManager) -> None:
    qm.create(security=parse_sddl("O:BAD:(A;;0x2;;;WD)").encode())
    refused = {
        r"DIRECT=OS:.\private$\orders": r"WORKSTATION\private$\orders",
        r"DIRECT=OS:.\private$\order_queue$": r"WORKSTATION\private$\order_queue$",
        r"DIRECT=OS:.\system$;JOURNAL": "the queue manager",
    }
    with capture_logs() as lines:
        for name in refused:
            with pytest.raises(MQError):
                qm.open(name, identity=ANN)
    assert [line["object"] for line in lines] == list(refused.values())
    assert [line["rights"] for line in lines] == ["0x3", "0x3", "0xc0"]
    for line in lines:
        said = (line["event"], line["who"], line["sid"])
        assert said == ("access refused", "ann", ANN.sid)


def test_only_administrators_see_and_change_what_is_audited(qm: RunningQueueManager) -> None:
    queue = qm.create(security=parse_sddl("O:BAD:(A;;GA;;;WD)S:(AU;FA;GA;;;WD)").encode())
    queues, sacl = qm.engine.queues, int(SecurityInformation.SACL_SECURITY_INFORMATION)
    descriptor = parse_sddl("S:").encode()
    denied = "MQ_ERROR_PRIVILEGE_NOT_HELD"
    assert refusal(queues.get_security, queue, sacl, identity=ANN) == denied
    assert refusal(queues.set_security, queue, sacl, descriptor, identity=ANN) == denied
    assert queues.get_security(queue, sacl, identity=ADMINISTRATOR)


def test_a_queue_is_taken_and_not_given_away(qm: RunningQueueManager) -> None:
    queue = qm.create(security=parse_sddl("O:BAD:(A;;GA;;;WD)").encode())
    owner = int(SecurityInformation.OWNER_SECURITY_INFORMATION)
    mine, theirs = (parse_sddl(f"O:{sid}").encode() for sid in (ANN.sid, "S-1-5-21-9-9-9-9"))
    change = qm.engine.queues.set_security
    assert refusal(change, queue, owner, theirs, identity=ANN) == "MQ_ERROR_ACCESS_DENIED"
    qm.done(change(queue, owner, mine, identity=ANN))
    qm.done(change(queue, owner, theirs, identity=ADMINISTRATOR))


# Auditing by the system access control list ([MS-DTYP] 2.4.4.1, 2.4.4.10)


def audited_queue(qm: RunningQueueManager, sacl: str) -> Queue:
    """Ann may do everything, Bob nothing."""
    text = f"O:BAD:(A;;0xf003f;;;{ANN.sid}){sacl}"
    return qm.create(security=parse_sddl(text).encode())


def audit_lines(
    qm: RunningQueueManager, queue: Queue, access: QueueAccessType = RECEIVE
) -> list[tuple[str, str, str, bool]]:
    """What is logged when Ann and Bob open a queue: event, who, rights, and whether audited."""
    with capture_logs() as logs:
        qm.open(queue, access, identity=ANN)
        assert refusal(qm.open, queue, access, identity=BOB) == "MQ_ERROR_ACCESS_DENIED"
    return [(line["event"], line["who"], line["rights"], line["audited"]) for line in logs]


GRANTED, REFUSED = ("access granted", "ann", "0x3"), ("access refused", "bob", "0x3")


@pytest.mark.parametrize(
    ("sacl", "granted", "refused"),
    [
        ("", False, False),
        ("S:(AU;SA;0x3;;;WD)", True, False),
        ("S:(AU;FA;0x3;;;WD)", False, True),
        ("S:(AU;SAFA;0x2;;;WD)", True, True),
        ("S:(AU;SAFA;GA;;;WD)", True, True),
        ("S:(AU;SAFA;0x4;;;WD)", False, False),
        (f"S:(AU;SAFA;GA;;;{ANN.sid})", True, False),
        (f"S:(AU;SA;GA;;;{BOB.sid})(AU;FA;GA;;;{ANN.sid})", False, False),
        ("S:(AU;IOSAFA;GA;;;WD)", False, False),
    ],
)
def test_the_sacl_says_which_accesses_are_recorded(
    qm: RunningQueueManager, sacl: str, granted: bool, refused: bool
) -> None:
    """One line for each; a refusal has its line in any case."""
    lines = audit_lines(qm, audited_queue(qm, sacl))
    assert lines == [(*GRANTED, True)] * granted + [(*REFUSED, refused)]


def test_every_right_that_is_used_is_recorded(qm: RunningQueueManager) -> None:
    queue = audited_queue(qm, "S:(AU;SA;GA;;;WD)")
    with capture_logs() as logs:
        qm.open(queue, SEND, identity=ANN)
        qm.done(qm.engine.queues.set_properties(queue, {"label": "new"}, identity=ANN))
        qm.done(qm.engine.queues.delete_queue(queue, identity=ANN))
    recorded = [(line["rights"], line["object"], line["log_level"]) for line in logs]
    path = queue.pathname
    assert recorded == [("0x4", path, "info"), ("0x10", path, "info"), ("0x10000", path, "info")]


def test_what_is_done_to_the_machine_is_recorded_too(qm: RunningQueueManager) -> None:
    sacl = parse_sddl("S:(AU;SA;GA;;;WD)").encode()
    parts = SecurityInformation.SACL_SECURITY_INFORMATION
    qm.done(qm.engine.access.set_queue_manager_security(parts, sacl, None))
    with capture_logs() as logs:
        qm.engine.access.check_queue_manager(ADMINISTRATOR, MQQMACCESSMASK.MQSEC_DELETE_MACHINE)
    assert [(line["event"], line["object"]) for line in logs] == [
        ("access granted", "the queue manager")
    ]


def test_the_queue_manager_itself_is_not_audited(qm: RunningQueueManager) -> None:
    queue = audited_queue(qm, "S:(AU;SAFA;GA;;;WD)")
    with capture_logs() as logs:
        qm.open(queue, RECEIVE)
    assert logs == []


def test_auditing_of_a_new_queue_needs_the_privilege_as_changing_it_does(
    qm: RunningQueueManager,
) -> None:
    text = "D:(A;;GA;;;WD)S:(AU;SA;GA;;;WD)"

    def create(identity: Identity) -> None:
        queue = qm.engine.queues.new_queue(r".\private$\audited", identity)
        queue.security = parse_sddl(text).encode()
        qm.done(qm.engine.queues.create_queue(queue, identity=identity))

    assert refusal(create, ANN) == "MQ_ERROR_PRIVILEGE_NOT_HELD"
    create(ADMINISTRATOR)


def test_who_may_only_look_peeks_at_what_waits_for_elsewhere_and_sends_nothing(
    qm: RunningQueueManager,
) -> None:
    """G654."""
    looker = authenticated("eve", "S-1-5-21-1-2-3-1002", "S-1-5-32-544", read_only=True)
    away = FormatName.parse(r"DIRECT=OS:other\private$\x")
    queue = qm.engine.opening.open_queue(away, SEND, identity=ADMINISTRATOR).queue_reference
    assert queue is not None
    access = qm.engine.access
    opened = (RECEIVE, SEND, PEEK, QueueAccessType.PEEK_ADMIN_ACCESS)
    assert [access.may_open(queue, looker, each) for each in opened] == [False, False, True, True]
    assert not access.has_scope(looker, "DIRECT=OS:other\\private$\\y")
    assert access.has_scope(ANN, "DIRECT=OS:other\\private$\\y")


def test_what_is_explained_of_who_may_only_look_is_what_is_checked(
    qm: RunningQueueManager,
) -> None:
    looker = authenticated("eve", "S-1-5-21-1-2-3-1002", "S-1-5-32-544", read_only=True)
    for queue in (qm.create(), None):
        told = qm.engine.access.explain(queue, looker).verdicts
        granted = {each.word for each in told if each.granted}
        assert granted == {each for each in granted if each.startswith(("peek", "get-"))}
        assert {each.because for each in told if not each.granted} == {"read-only"}
