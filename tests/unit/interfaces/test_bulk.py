"""rpcqm_bulk: what is seen, read and removed is what RemoteRead sees, reads and removes (G700)."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import FaultStatus, HResult, MQError
from rpcqm.base.identity import authenticated
from rpcqm.client.message import from_packet
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.rpcqm_bulk import LOOKUP_RANGE
from rpcqm.interfaces import bulk
from rpcqm.interfaces._authentication import CallAdmission, RemoteReadSecurity
from rpcqm.rpc.interface_registry import NCALRPC
from rpcqm.service import interfaces
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    LEVEL_INTEGRITY,
    LEVEL_NONE,
    LEVEL_PRIVACY,
    NOBODY,
    Caller,
    CallServer,
    Fault,
    Served,
)
from tests.support.rpc.remote_reader import (
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    Reader,
    format_of,
    served_remote_read,
    status_name,
)

CAROL = authenticated("carol", "S-1-5-21-1-2-3-1002")
GONE = "MQ_ERROR_MESSAGE_NOT_FOUND"
PEEK_ADMIN = int(QueueAccessType.PEEK_ADMIN_ACCESS)
ENTRY = struct.Struct("<QIII")


@pytest.fixture
def server(qm: RunningQueueManager, tmp_path: Path) -> CallServer:
    return CallServer(
        qm,
        Served("rpcqm_bulk", interfaces.bulk(qm.engine, operations_of(qm, tmp_path)), bulk.POLICY),
    )


class Bulk:
    """The calls of one connection."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.handle = b""

    def open(self, name: Queue | str, access: int = RECEIVE_ACCESS) -> "Bulk":
        opened = self.caller.call("R_BulkOpen", pQueueFormat=format_of(name), dwAccess=access)
        if opened.result:
            raise MQError(HResult(opened.result))
        self.handle = opened.pphContext
        return self

    def listed(self, after: int = 0, most: int = 0) -> tuple[list[int], int]:
        told = self.caller.call("R_BulkList", phContext=self.handle, After=after, cMost=most)
        assert told.result == 0
        keys = [key for each in told.ppRanges for key in range(each.First, each.First + each.Count)]
        return keys, told.pNext

    def read(self, keys: Iterable[int]) -> list[tuple[int, str | bytes]]:
        return self._read(keys)[0]

    def _read(self, keys: Iterable[int]) -> tuple[list[tuple[int, str | bytes]], int]:
        ranges = [LOOKUP_RANGE(First=key, Count=1) for key in keys]
        told = self.caller.call(
            "R_BulkRead", phContext=self.handle, cRanges=len(ranges), pRanges=ranges
        )
        assert told.result == 0
        octets, at, found = told.ppMessages or b"", 0, []
        while at < len(octets):
            key, arrival, status, size = ENTRY.unpack_from(octets, at)
            packet = octets[at + ENTRY.size : at + ENTRY.size + size]
            at += ENTRY.size + size
            body = from_packet(packet, key, arrival).body if not status else status_name(status)
            found.append((key, body))
        assert told.pcDone == len(found)
        return found, told.pcDone

    def remove(self, keys: Iterable[int]) -> list[tuple[int, str]]:
        ranges = [LOOKUP_RANGE(First=key, Count=1) for key in keys]
        told = self.caller.call(
            "R_BulkRemove", phContext=self.handle, cRanges=len(ranges), pRanges=ranges
        )
        assert told.result == 0
        return [(each.LookupId, status_name(each.Status)) for each in told.ppRefused]


@pytest.fixture
def reader(server: CallServer) -> Bulk:
    return Bulk(server.connect())


def fault(reader: Bulk, operation: str, **fields: Any) -> str:
    """What a call is refused with."""
    try:
        result = reader.caller.call(operation, phContext=reader.handle, **fields).result
    except Fault as error:
        return FaultStatus(error.status).name if error.status < 0xC0000000 else str(error)
    return status_name(result)


def test_what_is_listed_is_in_the_order_of_the_queue(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    keys = [qm.send(queue, b"%d" % priority, priority=priority) for priority in (3, 7, 3, 0)]
    ordered = [keys[1], keys[0], keys[2], keys[3]]
    reader.open(queue)
    assert reader.listed() == (ordered, 0)
    assert reader.listed(most=3) == (ordered[:3], ordered[2])
    assert reader.listed(after=ordered[2]) == (ordered[3:], 0)
    assert reader.listed(after=ordered[3]) == ([], 0)


@pytest.mark.parametrize("syntax", list(TransferSyntax))
def test_messages_are_read_as_they_were_sent(
    qm: RunningQueueManager, server: CallServer, syntax: TransferSyntax
) -> None:
    queue = qm.create()
    keys = [qm.send(queue, body) for body in (b"one", b"", b"x" * 5000)]
    reader = Bulk(server.connect(syntax=syntax)).open(queue, PEEK_ACCESS)
    absent = keys[-1] + 1
    assert reader.read([keys[2], absent, keys[0]]) == [
        (keys[2], b"x" * 5000),
        (absent, GONE),
        (keys[0], b"one"),
    ]
    assert qm.bodies(queue) == [b"one", b"", b"x" * 5000]


def test_remote_read_gives_the_same_octets(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    key = qm.send(queue, b"body", label="a label", extension=b"more")
    remote = Reader(served_remote_read(qm).connect())
    section = remote.read(remote.open(queue), 0x80000000).ppPacketSections[0]
    reader.open(queue)
    ranges = [LOOKUP_RANGE(First=key, Count=1)]
    told = reader.caller.call("R_BulkRead", phContext=reader.handle, cRanges=1, pRanges=ranges)
    assert told.ppMessages[ENTRY.size :] == section.pSectionBuffer


@pytest.mark.bound("bulk.octets")
def test_an_answer_has_at_most_a_mebibyte_but_for_one_message(
    qm: RunningQueueManager, reader: Bulk
) -> None:
    queue = qm.create()
    half = bulk.MOST_BULK_OCTETS // 2
    keys = [qm.send(queue, bytes(size)) for size in (half, half // 2, half, 2 * half, 1)]
    reader.open(queue)
    counts = []
    while keys:
        _, done = reader._read(keys)
        counts.append(done)
        keys = keys[done:]
    assert counts == [2, 1, 1, 1]


@pytest.mark.bound("bulk.messages")
def test_a_call_is_about_so_many_messages(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    key = qm.send(queue, b"one")
    reader.open(queue)
    most = bulk.MOST_BULK_MESSAGES
    for count, status in ((most, "MQ_OK"), (most + 1, "MQ_ERROR_INVALID_PARAMETER")):
        ranges = [LOOKUP_RANGE(First=key + 1, Count=count)]
        told = reader.caller.call("R_BulkRead", phContext=reader.handle, cRanges=1, pRanges=ranges)
        assert status_name(told.result) == status
        assert told.pcDone == (count if status == "MQ_OK" else 0)
        assert fault(reader, "R_BulkRemove", cRanges=1, pRanges=ranges) == status
    beyond = [LOOKUP_RANGE(First=(1 << 64) - 1, Count=2)]
    refused = "MQ_ERROR_INVALID_PARAMETER"
    assert fault(reader, "R_BulkRead", cRanges=1, pRanges=beyond) == refused
    assert qm.bodies(queue) == [b"one"]


def test_sizes_and_counts_come_without_messages(qm: RunningQueueManager, reader: Bulk) -> None:
    """The sizes are those that the quota counts, in the order that was asked for."""
    queue = qm.create()
    keys = [qm.send(queue, bytes(size)) for size in (10, 3000, 0)]
    reader.open(queue, PEEK_ACCESS)
    asked = [LOOKUP_RANGE(First=key, Count=1) for key in (keys[1], keys[0], 7, keys[2])]
    told = reader.caller.call(
        "R_BulkSizes", phContext=reader.handle, cRanges=len(asked), pRanges=asked
    )
    large, small, absent, least = told.ppSizes
    assert (large > 3000 > small > least > 0, absent) == (True, 0)
    assert large + small + least == queue.total_bytes
    assert reader.caller.call("R_BulkCount", phContext=reader.handle).pMessages == len(keys)
    qm.engine.positions.lock(queue, _at(qm, queue, keys[0]), object())
    assert reader.caller.call("R_BulkCount", phContext=reader.handle).pMessages == len(keys) - 1


def test_what_is_removed_has_left_in_one_commit_and_stays_away(
    qm: RunningQueueManager, reader: Bulk
) -> None:
    queue = qm.create()
    keys = [qm.send(queue, b"%d" % number) for number in range(50)]
    reader.open(queue)
    before = qm.store.metrics.snapshot()["store_writes"]
    assert reader.remove([*keys[:40], keys[0], keys[-1] + 1]) == [
        (keys[0], GONE),
        (keys[-1] + 1, GONE),
    ]
    assert qm.store.metrics.snapshot()["store_writes"] - before == 1
    assert qm.bodies(queue) == [b"%d" % number for number in range(40, 50)]
    qm.restart()
    assert qm.bodies(qm.find()) == [b"%d" % number for number in range(40, 50)]


def test_a_removal_is_answered_when_it_is_durable(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    key = qm.send(queue, b"one")
    reader.open(queue)
    ranges = [LOOKUP_RANGE(First=key, Count=1)]
    call = reader.caller.send("R_BulkRemove", phContext=reader.handle, cRanges=1, pRanges=ranges)
    assert not call.answered
    reader.caller.settle()
    assert call.result().result == 0


def test_a_removal_has_the_consequences_of_receiving(qm: RunningQueueManager, reader: Bulk) -> None:
    queue, admin = qm.create(), qm.create(r"private$\admin")
    plain = qm.send(queue, b"plain")
    told = qm.send(
        queue,
        b"told",
        acknowledgements_requested=2,
        administration_queue_format_name=FormatName.parse(f"DIRECT=OS:{admin.pathname}"),
    )
    kept = qm.send(queue, b"kept", positive_journaling_requested=True)
    assert reader.open(queue).remove([plain, told, kept]) == []
    qm.settle()
    assert (qm.bodies(queue), len(qm.bodies(admin))) == ([], 1)
    queue.journaling = True
    again = qm.send(queue, b"again")
    assert reader.remove([again]) == []
    assert qm.bodies(queue.journal_queue_reference) == [b"again"]


def test_what_another_holds_is_neither_listed_nor_removed(
    qm: RunningQueueManager, reader: Bulk
) -> None:
    queue = qm.create()
    keys = [qm.send(queue, b"%d" % number) for number in range(3)]
    qm.engine.positions.lock(queue, _at(qm, queue, keys[1]), object())
    reader.open(queue)
    assert reader.listed() == ([keys[0], keys[2]], 0)
    assert reader.read([keys[1]]) == [(keys[1], "MQ_ERROR_TRANSACTION_USAGE")]
    assert reader.remove(keys) == [(keys[1], GONE)]
    queue.peekable_when_locked.add(keys[1])
    assert reader.listed() == ([keys[1]], 0)
    assert reader.read([keys[1]]) == [(keys[1], b"1")]


def _at(qm: RunningQueueManager, queue: Queue, key: int) -> Message:
    return qm.engine.positions.message_at(queue, key)


# Who may


def test_whoever_may_not_read_a_queue_opens_nothing(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create(security=parse_sddl(f"D:(A;;0x1;;;{ALICE.sid})(A;;0x2;;;{BOB.sid})").encode())
    key = qm.send(queue, b"secret")
    bob = Bulk(server.connect(BOB)).open(queue, PEEK_ACCESS)
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        Bulk(server.connect(BOB)).open(queue, RECEIVE_ACCESS)
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        Bulk(server.connect(CAROL)).open(queue, PEEK_ACCESS)
    ranges = [LOOKUP_RANGE(First=key, Count=1)]
    assert fault(bob, "R_BulkRemove", cRanges=1, pRanges=ranges) == "MQ_ERROR_ACCESS_DENIED"
    assert qm.bodies(queue) == [b"secret"]


@pytest.mark.parametrize("access", [0, 2, 4, 0x40, 0xFFFFFFFF])
def test_nothing_is_opened_for_anything_else(
    qm: RunningQueueManager, reader: Bulk, access: int
) -> None:
    with pytest.raises(MQError, match="INVALID_PARAMETER"):
        reader.open(qm.create(), access)


def test_only_calls_that_are_private_are_served(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    for identity, level in ((ALICE, LEVEL_INTEGRITY), (NOBODY, LEVEL_PRIVACY)):
        with pytest.raises(Fault) as caught:
            Bulk(server.connect(identity, level)).open(queue)
        assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED
        caller = server.connect(identity, level)
        with pytest.raises(Fault) as caught:
            caller.call("R_BulkSearch", pQueueFormat=format_of(queue), pwszSearch="{}")
        assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED
    Bulk(server.connect(ALICE, transport=NCALRPC)).open(queue)


def test_no_switch_opens_it_to_calls_that_are_not_private(
    qm: RunningQueueManager, tmp_path: Path
) -> None:
    queue = qm.create(security=parse_sddl("O:BAD:(A;;GA;;;WD)(A;;GA;;;AN)").encode())
    security = RemoteReadSecurity(
        allow_nonauthenticated_rpc=True,
        new_remote_read_server_allow_none_security_client=True,
        debug_rpc=True,
        allow_unprotected_rpc=True,
    )
    handlers = interfaces.bulk(qm.engine, operations_of(qm, tmp_path), CallAdmission(security))
    server = CallServer(qm, Served("rpcqm_bulk", handlers, bulk.POLICY))
    for identity, level in ((NOBODY, LEVEL_NONE), (ALICE, LEVEL_INTEGRITY)):
        caller = server.connect(identity, level)
        with pytest.raises(Fault) as caught:
            Bulk(caller).open(queue)
        assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED
        with pytest.raises(Fault) as caught:
            caller.call("R_BulkSearch", pQueueFormat=format_of(queue), pwszSearch="{}")
        assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED


def test_what_waits_for_a_queue_elsewhere_is_for_administrators(
    qm: RunningQueueManager, server: CallServer
) -> None:
    away = r"DIRECT=OS:elsewhere\private$\orders"
    queue = qm.open(away, QueueAccessType.SEND_ACCESS).queue_reference
    assert queue is not None
    qm.send(queue, b"on its way")
    boss = Bulk(server.connect(ADMINISTRATOR)).open(away, PEEK_ADMIN)
    assert len(boss.listed()[0]) == 1
    with pytest.raises(MQError):
        Bulk(server.connect(ALICE)).open(away, PEEK_ADMIN)


def test_what_is_gone_with_its_queue_is_said(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    reader.open(queue)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert fault(reader, "R_BulkList", After=0, cMost=0) == "MQ_ERROR_QUEUE_NOT_AVAILABLE"


def test_a_handle_that_was_closed_is_worth_nothing(qm: RunningQueueManager, reader: Bulk) -> None:
    queue = qm.create()
    reader.open(queue)
    closed = reader.caller.call("R_BulkClose", pphContext=reader.handle)
    assert (closed.result, closed.pphContext) == (0, bytes(20))
    assert not queue.active
    mismatch = "nca_s_fault_context_mismatch"
    assert fault(reader, "R_BulkList", After=0, cMost=0) == mismatch
    reader.open(queue)
    reader.caller.lose()
    assert not queue.active
