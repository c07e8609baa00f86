"""Accounts, backups and compaction by rpcqm_admin."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.queue_manager import StandingOrder
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.properties import QueueProperty
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.security.descriptor import SecurityDescriptor, SecurityInformation
from rpcqm.codec.security.identifier import BUILTIN_ADMINISTRATORS
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqmq import CALPWSTR, OBJECTID
from rpcqm.interfaces import admin
from rpcqm.interfaces.admin import Admin
from rpcqm.operations.operations import Operations
from rpcqm.qm.message_lookup import LocationState
from rpcqm.qm.program_work import RequestKey, Sending
from rpcqm.qm.standing_orders import OFFLINE_KEY
from rpcqm.qm.trail import TrailEventType
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, NCALRPC
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.service.accounts import Accounts
from rpcqm.service.backups import Backups
from rpcqm.service.tokens import tokens_of
from rpcqm.store.backup import restore_backup
from rpcqm.store.records import Family
from tests.support.qm.sending import keep_sending
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, Caller, CallServer, Served
from tests.support.rpc.remote_reader import status_name

HASH = bytes(range(16))
NO_MESSAGE = OBJECTID(Lineage=UUID(int=0), Uniquifier=0)
LABEL = {
    "SDSize": 0,
    "cp": 1,
    "aProp": [QueueProperty.PROPID_Q_LABEL],
    "apVar": [propvariant_of(QueueProperty.PROPID_Q_LABEL.variant("New"))],
}
RULE = '{"name": "t", "queue": "orders", "program": ["/bin/true"]}'
NOWHERE = FormatName.parse(r"DIRECT=OS:.\private$\nowhere")


@pytest.fixture
def accounts(qm: RunningQueueManager, tmp_path: Path) -> Accounts:
    directory = tmp_path / "accounts"
    directory.mkdir()
    return Accounts(qm.store, directory, clock=qm.clock)


@pytest.fixture
def operations(qm: RunningQueueManager, accounts: Accounts) -> Operations:
    backups = Backups(qm.engine, accounts.user_file)
    return Operations(qm.engine, accounts, backups.make, tokens_of(qm.engine, accounts))


@pytest.fixture
def server(qm: RunningQueueManager, operations: Operations) -> CallServer:
    return CallServer(qm, Served("rpcqm_admin", Admin(operations), admin.POLICY))


@pytest.fixture
def caller(server: CallServer) -> Caller:
    return server.connect(ADMINISTRATOR, transport=NCALRPC)


def groups(*names: str | None) -> CALPWSTR:
    return CALPWSTR(cElems=len(names), pElems=list(names))


def listed(caller: Caller) -> list[Any]:
    response = caller.call("R_ListAccounts")
    assert response.pcAccounts == len(response.ppAccounts)
    return [
        (account.pwszName, account.pwszSid, account.Groups.pElems)
        for account in response.ppAccounts
    ]


def test_accounts_are_added_listed_and_removed(caller: Caller, accounts: Accounts) -> None:
    assert listed(caller) == []
    added = caller.call(
        "R_AddAccount", pwszName="alice", NtHash=HASH, pGroups=groups("administrators", None)
    )
    assert added.result == 0
    assert added.ppwszSid.startswith(accounts.machine_sid)
    assert listed(caller) == [("alice", added.ppwszSid, ["administrators", "users"])]
    assert HASH.hex().upper() in accounts.user_file.read_text()
    assert caller.call("R_RemoveAccount", pwszName="ALICE").result == 0
    assert listed(caller) == []
    assert HASH.hex().upper() not in accounts.user_file.read_text()


def test_a_password_is_replaced(caller: Caller, accounts: Accounts) -> None:
    caller.call("R_AddAccount", pwszName="alice", NtHash=HASH, pGroups=groups())
    other = bytes(reversed(HASH))
    assert caller.call("R_SetAccountPassword", pwszName="alice", NtHash=other).result == 0
    assert other.hex().upper() in accounts.user_file.read_text()
    assert HASH.hex().upper() not in accounts.user_file.read_text()


@pytest.mark.parametrize(
    ("operation", "fields", "status"),
    [
        ("R_AddAccount", {"pwszName": "alice", "pGroups": groups()}, "STATUS_USER_EXISTS"),
        ("R_AddAccount", {"pwszName": "a:b", "pGroups": groups()}, "STATUS_INVALID_ACCOUNT_NAME"),
        ("R_AddAccount", {"pwszName": "bob", "pGroups": groups("x")}, "STATUS_NO_SUCH_ALIAS"),
        ("R_SetAccountPassword", {"pwszName": "bob"}, "STATUS_NO_SUCH_USER"),
        ("R_RemoveAccount", {"pwszName": "bob"}, "STATUS_NO_SUCH_USER"),
    ],
)
def test_what_accounts_refuse_is_told(
    caller: Caller, operation: str, fields: dict[str, Any], status: str
) -> None:
    caller.call("R_AddAccount", pwszName="alice", NtHash=HASH, pGroups=groups())
    more = {} if operation == "R_RemoveAccount" else {"NtHash": HASH}
    response = caller.call(operation, **fields, **more)
    assert status_name(response.result) == status
    assert [name for name, _, _ in listed(caller)] == ["alice"]


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("R_AddAccount", {"pwszName": "bob", "NtHash": HASH, "pGroups": groups()}),
        ("R_SetAccountPassword", {"pwszName": "bob", "NtHash": HASH}),
        ("R_RemoveAccount", {"pwszName": "bob"}),
        ("R_ListAccounts", {}),
        ("R_LookUpAccounts", {"pWho": CALPWSTR(cElems=0, pElems=[])}),
        ("R_CreateToken", {"pwszName": "t", "pwszAccount": "alice", "Rights": 1, "Life": 0}),
        ("R_ListTokens", {}),
        ("R_DeleteToken", {"pwszName": "t"}),
        ("R_AddTrigger", {"pwszRule": RULE}),
        ("R_SetTrigger", {"pwszRule": RULE}),
        ("R_RemoveTrigger", {"pwszName": "t"}),
        ("R_ListTriggers", {}),
        ("R_ReportTriggers", {"pwszReport": "{}"}),
        ("R_GetOverview", {}),
        ("R_GetQuotaUses", {}),
        ("R_GetInFlight", {}),
        ("R_MakeBackup", {"pwszDirectory": "/nowhere"}),
        ("R_Compact", {}),
        ("R_SetMaintenance", {"fOn": 1, "pwszReason": ""}),
        ("R_Disconnect", {"pwszReason": "why"}),
        ("R_SetEventTrail", {"pQueueFormat": queue_format_of(NOWHERE), "fOn": 1}),
        ("R_GetEventTrailState", {"pQueueFormat": queue_format_of(NOWHERE)}),
        ("R_GetEventTrail", {"pMessageId": NO_MESSAGE}),
        ("R_FindMessage", {"pMessageId": NO_MESSAGE}),
        ("R_ListPublicQueues", {}),
        ("R_ListOutgoingQueues", {}),
        ("R_CreatePublicQueue", {"pwszPathName": r".\new", **LABEL}),
    ],
)
def test_only_administrators_manage_accounts_and_data(
    server: CallServer, operation: str, fields: dict[str, Any]
) -> None:
    alice = server.connect(ALICE, transport=NCALRPC)
    assert status_name(alice.call(operation, **fields).result) == "MQ_ERROR_ACCESS_DENIED"


def test_a_backup_holds_the_store_and_the_accounts(
    caller: Caller, qm: RunningQueueManager, tmp_path: Path
) -> None:
    caller.call("R_AddAccount", pwszName="alice", NtHash=HASH, pGroups=groups())
    response = caller.call("R_MakeBackup", pwszDirectory=str(tmp_path / "copy"))
    assert (response.result, response.ppwszProblem) == (0, "")
    note = restore_backup(tmp_path / "copy", tmp_path / "restored")
    assert note["queue_manager"] == qm.engine.queue_manager.computer_name
    assert note["identifier"] == str(qm.engine.queue_manager.identifier)
    assert HASH.hex().upper() in (tmp_path / "restored" / "accounts").read_text()


def test_a_backup_holds_keys_of_requests_and_digests_of_tokens(
    caller: Caller, qm: RunningQueueManager, tmp_path: Path
) -> None:
    queue = qm.create()

    def send(qm: RunningQueueManager) -> object:
        attributes = MessageAttributes(body=b"one", delivery_guarantee=1)
        sending = Sending(qm.engine.queues.format_name_of(queue), attributes)
        key = RequestKey("k1", bytes(32))
        return qm.done(qm.engine.program_work.perform(ALICE, [sending], key=key))

    caller.call("R_AddAccount", pwszName="alice", NtHash=HASH, pGroups=groups())
    created = caller.call("R_CreateToken", pwszName="t", pwszAccount="alice", Rights=1, Life=0)
    first = send(qm)
    caller.call("R_MakeBackup", pwszDirectory=str(tmp_path / "copy"))
    restore_backup(tmp_path / "copy", tmp_path / "restored")
    other = RunningQueueManager(tmp_path / "restored")
    assert send(other) == first
    assert other.bodies(other.find()) == [b"one"]
    accounts = Accounts(other.store, tmp_path / "restored", clock=other.clock)
    assert tokens_of(other.engine, accounts).verify(created.ppwszToken) is not None
    other.stop()


def test_a_sentence_says_why_there_is_no_backup(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    problems = [
        caller.call("R_MakeBackup", pwszDirectory=str(path)).ppwszProblem
        for path in ("relative", tmp_path, tmp_path / "file" / "inside")
    ]
    assert problems[0] == "relative is no absolute path."
    assert problems[1] == f"{tmp_path} is not empty: name a new directory."
    assert problems[2].startswith(f"The queue manager cannot write {tmp_path}")


@pytest.mark.bound("overview.reason")
def test_orders_that_hold_are_kept_with_who_has_given_them_and_why(
    caller: Caller, qm: RunningQueueManager
) -> None:
    """One that is given again holds since the first time; a reason has a bound."""
    caller.call("R_SetMaintenance", fOn=1, pwszReason="a new disk")
    caller.call("R_Disconnect", pwszReason="a new cable")
    first = qm.engine.queue_manager.maintenance
    qm.advance(60_000)
    assert caller.call("R_SetMaintenance", fOn=1, pwszReason="two disks").result == 0
    refused = caller.call("R_SetMaintenance", fOn=1, pwszReason="x" * 1001)
    assert status_name(refused.result) == "MQ_ERROR_INVALID_PARAMETER"
    qm.restart()
    machine = qm.engine.queue_manager
    assert first is not None
    assert first.since > 0
    assert machine.maintenance == replace(first, reason="two disks")
    assert machine.disconnected == replace(first, reason="a new cable")
    assert machine.connection_active is False


def test_an_order_of_an_older_version_holds_without_more(qm: RunningQueueManager) -> None:
    """What an older version has kept is a 1."""
    with qm.store.transaction("an older version") as change:
        change.put(Family.META, OFFLINE_KEY, b"1")
    qm.restart()
    assert qm.engine.queue_manager.disconnected == StandingOrder()
    assert qm.engine.queue_manager.connection_active is False


def test_compaction_tells_what_it_has_given_back(caller: Caller, qm: RunningQueueManager) -> None:
    for number in range(100):
        with qm.store.transaction("insert") as txn:
            txn.insert(16, number, bytes(50_000), arrival=0)
    qm.settle()
    caller.call("R_Compact")
    with qm.store.transaction("remove") as txn:
        for number in range(100):
            txn.remove(16, number)
    qm.settle()
    response = caller.call("R_Compact")
    assert response.result == 0
    assert response.pBytesBefore - response.pBytesAfter > 4_900_000
    assert response.pBytesAfter == qm.store.disk_bytes()


def test_a_trail_is_switched_on_and_told(caller: Caller, qm: RunningQueueManager) -> None:
    queue = qm.create()
    name = queue_format_of(qm.engine.queues.format_name_of(queue))
    assert caller.call("R_GetEventTrailState", pQueueFormat=name).pfOn == 0
    assert caller.call("R_SetEventTrail", pQueueFormat=name, fOn=1).result == 0
    assert caller.call("R_GetEventTrailState", pQueueFormat=name).pfOn == 1
    message = qm.compose(queue, b"a")
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.receive(qm.open(queue))
    identifier = message.attributes.identifier
    wanted = OBJECTID(Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal)
    response = caller.call("R_GetEventTrail", pMessageId=wanted)
    assert response.pcEvents == 2
    assert [(e.Happening, e.pwszQueue, e.LookupId) for e in response.ppEvents] == [
        (TrailEventType.ARRIVED, queue.pathname, message.lookup_identifier),
        (TrailEventType.RECEIVED, queue.pathname, message.lookup_identifier),
    ]


@pytest.mark.parametrize("operation", ["R_SetEventTrail", "R_GetEventTrailState"])
def test_a_trail_needs_a_queue(caller: Caller, operation: str) -> None:
    more = {"fOn": 1} if operation == "R_SetEventTrail" else {}
    response = caller.call(operation, pQueueFormat=queue_format_of(NOWHERE), **more)
    assert status_name(response.result) == "MQ_ERROR_QUEUE_NOT_FOUND"


def test_a_message_is_found(caller: Caller, qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"a", label="fruit")
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    identifier = message.attributes.identifier
    wanted = OBJECTID(Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal)
    assert caller.call("R_FindMessage", pMessageId=NO_MESSAGE).ppPlaces == []
    (place,) = caller.call("R_FindMessage", pMessageId=wanted).ppPlaces
    assert (place.pwszQueue, place.pwszLabel) == (queue.pathname, "fruit")
    assert (place.LookupId, place.Arrived) == (message.lookup_identifier, qm.clock.now())
    assert place.State == LocationState.WAITING


def test_queues_to_elsewhere_are_listed_even_if_they_are_empty(
    qm: RunningQueueManager, caller: Caller
) -> None:
    assert caller.call("R_ListOutgoingQueues").pNames.pElems in (None, [])
    queue = keep_sending(qm, r"DIRECT=OS:other\private$\orders")
    names = caller.call("R_ListOutgoingQueues").pNames
    assert (names.cElems, names.pElems) == (1, [queue.destination_format_name])


def test_without_a_directory_there_are_no_public_queues(caller: Caller) -> None:
    assert caller.call("R_ListPublicQueues").pcQueues == 0
    created = caller.call("R_CreatePublicQueue", pwszPathName=r".\new", **LABEL)
    assert status_name(created.result) == "MQ_ERROR_NO_DS"
    private = caller.call("R_CreatePublicQueue", pwszPathName=r".\private$\new", **LABEL)
    assert status_name(private.result) == "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"


def test_a_descriptor_of_no_octets_is_none(caller: Caller) -> None:
    empty = {"pSecurityDescriptor": b"", **LABEL}
    created = caller.call("R_CreatePublicQueue", pwszPathName=r".\new", **empty)
    assert status_name(created.result) == "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR"


def test_accounts_cannot_be_reached_over_a_network(server: CallServer) -> None:
    remote = server.connect(ADMINISTRATOR, transport=NCACN_IP_TCP)
    interface = server.interfaces["rpcqm_admin"].interface
    assert remote.client.context_of(SyntaxId(interface.uuid, *interface.version)) is None


def machine_security(parts: str, sddl: str) -> dict[str, Any]:
    raw = parse_sddl(sddl).encode()
    return {
        "SecurityInformation": int(SecurityInformation[f"{parts}_SECURITY_INFORMATION"]),
        "cbDescriptor": len(raw),
        "pDescriptor": raw,
    }


MACHINE_CHANGES = [
    machine_security("DACL", "D:(A;;0xf00f7;;;WD)"),
    machine_security("OWNER", f"O:{ALICE.sid}"),
]


@pytest.mark.parametrize("change", MACHINE_CHANGES)
def test_others_see_the_descriptor_of_the_machine_but_do_not_change_it(
    server: CallServer, qm: RunningQueueManager, change: dict[str, Any]
) -> None:
    before = qm.engine.queue_manager.security
    caller = server.connect(ALICE, transport=NCALRPC)
    response = caller.call("R_GetMachineSecurity", RequestedInformation=5)
    shown = SecurityDescriptor.decode(bytes(response.ppDescriptor))
    assert (shown.owner, shown.dacl is None) == (BUILTIN_ADMINISTRATORS, False)
    response = caller.call("R_SetMachineSecurity", **change)
    assert status_name(response.result) == "MQ_ERROR_ACCESS_DENIED"
    assert qm.engine.queue_manager.security == before


def test_auditing_of_the_machine_needs_the_privilege(
    server: CallServer, caller: Caller, qm: RunningQueueManager
) -> None:
    """Also for who may change the permissions."""
    assert not caller.call("R_SetMachineSecurity", **MACHINE_CHANGES[0]).result
    change = machine_security("SACL", "S:(AU;SAFA;GA;;;WD)")
    alice = server.connect(ALICE, transport=NCALRPC)
    response = alice.call("R_SetMachineSecurity", **change)
    assert status_name(response.result) == "MQ_ERROR_PRIVILEGE_NOT_HELD"
    response = alice.call("R_GetMachineSecurity", RequestedInformation=8)
    assert status_name(response.result) == "MQ_ERROR_PRIVILEGE_NOT_HELD"
    assert not caller.call("R_SetMachineSecurity", **change).result
    qm.restart()
    assert SecurityDescriptor.decode(qm.engine.queue_manager.security).sacl is not None


def test_the_machine_is_given_to_nobody_but_oneself(
    server: CallServer, caller: Caller, qm: RunningQueueManager
) -> None:
    assert not caller.call("R_SetMachineSecurity", **MACHINE_CHANGES[0]).result
    alice = server.connect(ALICE, transport=NCALRPC)
    for sid, outcome in (("S-1-5-21-9-9-9-9", "MQ_ERROR_ACCESS_DENIED"), (ALICE.sid, "MQ_OK")):
        change = machine_security("OWNER", f"O:{sid}")
        response = alice.call("R_SetMachineSecurity", **change)
        assert status_name(response.result) == outcome
    owner = SecurityDescriptor.decode(qm.engine.queue_manager.security).owner
    assert str(owner) == ALICE.sid
