"""The level that reading a queue needs follows the descriptor that counts for that queue."""

import pytest

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.access_check import MQQMACCESSMASK
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.interfaces._authentication import RemoteReadSecurity, level_of_queue
from rpcqm.rpc.constants import AuthenticationLevel
from tests.support.queue_manager import RunningQueueManager

NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
SWITCH = RemoteReadSecurity(new_remote_read_server_allow_none_security_client=True)

JOURNALS = ["MACHINE={};JOURNAL", r"DIRECT=OS:.\SYSTEM$;JOURNAL"]
DEADLETTERS = [
    "MACHINE={};DEADLETTER",
    "MACHINE={};DEADXACT",
    r"DIRECT=OS:.\SYSTEM$;DEADLETTER",
    r"DIRECT=OS:.\SYSTEM$;DEADXACT",
]
ORDERS = [
    r"DIRECT=OS:.\private$\orders",
    r"DIRECT=OS:.\private$\orders;JOURNAL",
    r"DIRECT=OS:.\private$\orders;new",
]
OTHERS = [
    r"DIRECT=OS:.\private$\others",
    r"DIRECT=OS:.\private$\others;JOURNAL",
    r"DIRECT=OS:.\private$\order_queue$",
    r"DIRECT=OS:.\private$\missing",
    r"DIRECT=OS:elsewhere\private$\orders",
]
ALL = JOURNALS + DEADLETTERS + ORDERS + OTHERS


@pytest.fixture
def qm(qm: RunningQueueManager) -> RunningQueueManager:
    qm.create()
    qm.create(r"private$\others")
    return qm


def open_to_anonymous(qm: RunningQueueManager) -> list[str]:
    """The names that callers may read who have not logged on."""
    found = {name: level(qm, name) for name in ALL}
    assert set(found.values()) <= {NONE, PRIVACY}
    return [name for name in ALL if found[name] == NONE]


def level(
    qm: RunningQueueManager, name: str, security: RemoteReadSecurity = SWITCH
) -> AuthenticationLevel:
    text = name.format(qm.engine.queue_manager.identifier)
    return level_of_queue(
        qm.engine.registry, qm.engine.access, security, FormatName.parse(text), workgroup=False
    )


def grant_machine(qm: RunningQueueManager, rights: int) -> None:
    change = parse_sddl(f"D:(A;;{rights:#x};;;AN)").encode()
    part = SecurityInformation.DACL_SECURITY_INFORMATION
    qm.done(qm.engine.access.set_queue_manager_security(part, change, None))


def grant_orders(qm: RunningQueueManager, sddl: str) -> None:
    part = SecurityInformation.DACL_SECURITY_INFORMATION
    qm.done(qm.engine.queues.set_security(qm.find(), part, parse_sddl(sddl).encode()))


def test_by_default_no_queue_is_open_to_who_has_not_logged_on(qm: RunningQueueManager) -> None:
    assert open_to_anonymous(qm) == []


def test_journals_and_dead_letters_of_the_machine_follow_its_descriptor(
    qm: RunningQueueManager,
) -> None:
    grant_machine(qm, MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE)
    assert open_to_anonymous(qm) == JOURNALS
    grant_machine(qm, MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE)
    assert open_to_anonymous(qm) == DEADLETTERS


def test_a_queue_its_journal_and_its_subqueues_follow_the_queues_descriptor(
    qm: RunningQueueManager,
) -> None:
    grant_orders(qm, "D:(A;;0x2;;;AN)")
    assert open_to_anonymous(qm) == ORDERS
    grant_orders(qm, "D:(A;;0x2;;;WD)(A;;0x4;;;AN)")
    assert open_to_anonymous(qm) == []


def test_without_the_switch_what_is_granted_changes_no_level(qm: RunningQueueManager) -> None:
    grant_orders(qm, "D:(A;;0xf003f;;;AN)")
    grant_machine(qm, MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL)
    assert {level(qm, name, RemoteReadSecurity()) for name in ALL} == {PRIVACY}
