"""A C client of widl, mingw and Wine's rpcrt4: none of its NDR or PDU code is ours."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.base.hresult import HResult
from rpcqm.codec.packet.enums import BodyType
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.types.remoteread import SectionType
from tests.support.accounts import PASSWORD
from tests.support.codec.packets import split_message_packet
from tests.support.codec.wine import PROGRAMS as WINE_PROGRAMS
from tests.support.codec.wine import Step, Wine, compile_program
from tests.support.network.namespace import Namespace
from tests.support.served import ServedQueueManager

PROGRAMS = (*WINE_PROGRAMS, "ntlm_auth")

NONE, CONNECT, PACKET, INTEGRITY, PRIVACY = 1, 2, 4, 5, 6
NTLM, NEGOTIATE = 10, 9
"""Authentication types; Wine's Negotiate sends NTLM as it is, without SPNEGO around it."""

LEVELS = {
    (NONE, 0): "none",
    (CONNECT, NTLM): "connect",
    (PACKET, NTLM): "packet",
    (INTEGRITY, NTLM): "integrity",
    (PRIVACY, NTLM): "privacy",
    (PRIVACY, NEGOTIATE): "privacy by Negotiate",
}
CONFIGURATION = (
    "[security]\nallow_nonauthenticated_rpc = true\nallow_unprotected_rpc = true\n"
    "supporting_server = true\n"
)
BODIES = ("the first message", "the second", "the third", "the fourth")
EVERYONE = "D:(A;;GA;;;WD)(A;;GA;;;AN)"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Path:
    require(*PROGRAMS)
    return compile_program(tmp_path_factory.mktemp("client"), "client", ["remoteread"])


@pytest.fixture(scope="module")
def wine(
    client: Path, namespace: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wine]:
    wine = Wine(namespace, tmp_path_factory.mktemp("prefix"))
    try:
        wine.start()
        yield wine
    finally:
        wine.stop()


def run_client(
    server: ServedQueueManager, wine: Wine, client: Path, level: int, provider: int
) -> list[Step]:
    """Fill a queue of its own, run the client at a level, and give its steps."""
    queue, empty = f"wine-{level}-{provider}", f"wine-{level}-{provider}-empty"
    for name in (queue, empty):
        server.command("queue", "create", name, "--sddl", EVERYONE)
    for body in BODIES:
        server.command("send", queue, "--label", "to wine", stdin=body)
    names = [f"TCP:127.0.0.1\\private$\\{name}" for name in (queue, empty, "missing")]
    credentials = [provider, "alice", PASSWORD, ""] if provider else []
    return wine.steps(client, "127.0.0.1", *names, level, *credentials)


@pytest.fixture(scope="module", params=list(LEVELS), ids=list(LEVELS.values()))
def steps(
    request: pytest.FixtureRequest, server: ServedQueueManager, wine: Wine, client: Path
) -> dict[str, Step]:
    """What the client printed for each step, at one authentication level."""
    return {step["step"]: step for step in run_client(server, wine, client, *request.param)}


def succeeded(step: Step) -> bool:
    return (step["result"], step["exception"]) == (0, 0)


def sections(step: Step) -> list[bytes]:
    return [bytes.fromhex(section["bytes"]) for section in step["sections"]]


def body(step: Step) -> str:
    """The body of a whole packet, as the command line sends text."""
    assert succeeded(step), step
    assert [section["type"] for section in step["sections"]] == [SectionType.stFullPacket]
    packet, _ = split_message_packet(sections(step)[0])
    return packet.body.decode("utf-8")


def extension(step: Step) -> MessagePacketExtension:
    return split_message_packet(sections(step)[0])[1]


@pytest.mark.conformance("MQRR-op-0")
def test_the_port_of_remote_read_is_told(
    steps: dict[str, Step], server: ServedQueueManager
) -> None:
    assert steps["server port"]["port"] == server.rpc_port


@pytest.mark.conformance("MQRR-op-2")
def test_opening_a_missing_queue_throws_its_status(steps: dict[str, Step]) -> None:
    assert steps["open missing"]["exception"] == HResult.MQ_ERROR_QUEUE_NOT_FOUND
    assert not steps["open missing"]["opened"]


@pytest.mark.conformance("MQRR-op-2", "MQRR-op-3")
@pytest.mark.parametrize("step", ["open", "open empty", "open subqueue"])
def test_a_queue_is_opened(steps: dict[str, Step], step: str) -> None:
    assert succeeded(steps[step])
    assert steps[step]["opened"]


@pytest.mark.conformance("MQRR-op-3")
@pytest.mark.parametrize("step", ["close", "close empty", "close subqueue", "close target"])
def test_a_queue_is_closed_and_its_handle_cleared(steps: dict[str, Step], step: str) -> None:
    assert succeeded(steps[step])
    assert steps[step]["closed"]


@pytest.mark.conformance("MQRR-action-peek_current", "MQRR-section-stFullPacket")
def test_a_peek_leaves_the_first_message(steps: dict[str, Step]) -> None:
    assert body(steps["peek"]) == BODIES[0]
    assert split_message_packet(sections(steps["peek"])[0])[0].label == "to wine"
    assert body(steps["receive"]) == BODIES[0]


@pytest.mark.conformance("MQRR-action-lookup_peek_current", "MQRR-action-lookup_peek_next")
@pytest.mark.parametrize(
    ("step", "number"), [("lookup current", 0), ("lookup next", 1), ("lookup previous", 0)]
)
def test_a_message_is_found_by_its_identifier(
    steps: dict[str, Step], step: str, number: int
) -> None:
    assert body(steps[step]) == BODIES[number]


@pytest.mark.conformance("MQRR-action-lookup_peek_prev")
def test_nothing_is_found_before_the_first_message(steps: dict[str, Step]) -> None:
    assert steps["lookup before the first"]["result"] == HResult.MQ_ERROR_MESSAGE_NOT_FOUND


@pytest.mark.conformance("MQRR-section-stBinaryFirstSection", "MQRR-section-stBinarySecondSection")
def test_a_body_is_cut_to_the_size_asked_for(steps: dict[str, Step]) -> None:
    first, second = steps["peek five bytes"]["sections"]
    head, tail = sections(steps["peek five bytes"])
    whole = sections(steps["peek"])[0]
    packet, _ = split_message_packet(whole)
    assert first["type"] == SectionType.stBinaryFirstSection
    assert second["type"] == SectionType.stBinarySecondSection
    assert head == whole[: packet.body_offset + 5]
    assert first["allocated"] == packet.body_offset + packet.body_size
    assert tail == whole[first["allocated"] :]
    assert second["allocated"] == len(tail)


@pytest.mark.conformance("MQRR-op-4", "MQRR-action-peek_next")
def test_a_cursor_walks_along_the_queue(steps: dict[str, Step]) -> None:
    assert steps["create cursor"]["cursor"] != 0
    too_early = steps["cursor next too early"]["result"]
    assert too_early == HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert body(steps["cursor current"]) == BODIES[0]
    assert body(steps["cursor next"]) == BODIES[1]


@pytest.mark.conformance("MQRR-op-5")
def test_a_cursor_is_closed_once(steps: dict[str, Step]) -> None:
    assert succeeded(steps["close cursor"])
    assert steps["close cursor again"]["result"] & 0x80000000


@pytest.mark.conformance("MQRR-op-9", "MQRR-action-receive")
def test_a_negative_end_gives_the_message_back(steps: dict[str, Step]) -> None:
    assert succeeded(steps["end with nack"])
    assert body(steps["receive again"]) == BODIES[0]


@pytest.mark.conformance("MQRR-op-9", "MQRR-op-7")
def test_a_positive_end_removes_the_message(steps: dict[str, Step]) -> None:
    assert succeeded(steps["end with ack"])
    assert body(steps["peek the next"]) == BODIES[1]


@pytest.mark.conformance("MQRR-op-9")
def test_a_read_is_ended_once(steps: dict[str, Step]) -> None:
    assert steps["end twice"]["result"] == HResult.MQ_ERROR_INVALID_HANDLE


@pytest.mark.conformance("MQRR-action-lookup_receive_current")
def test_a_message_is_received_by_its_identifier(steps: dict[str, Step]) -> None:
    assert body(steps["receive by lookup"]) == BODIES[1]
    assert succeeded(steps["end by lookup"])
    assert body(steps["peek before the move"]) == BODIES[2]


@pytest.mark.conformance("MQRR-op-8")
def test_a_waiting_receive_is_cancelled_from_another_thread(steps: dict[str, Step]) -> None:
    assert succeeded(steps["cancel"])
    assert steps["cancel"]["ended"]
    assert steps["waiting receive"]["result"] == HResult.MQ_ERROR_OPERATION_CANCELLED


@pytest.mark.conformance("MQRR-op-8")
def test_cancelling_nothing_fails(steps: dict[str, Step]) -> None:
    assert steps["cancel nothing"]["result"] & 0x80000000


@pytest.mark.conformance("MQRR-op-10", "MQRR-op-11", "MQRR-header-SubqueueHeader")
def test_a_message_is_moved_to_a_subqueue(steps: dict[str, Step]) -> None:
    assert steps["open for move"]["opened"]
    assert steps["open for move"]["context"]
    assert succeeded(steps["move"])
    moved = steps["peek in the subqueue"]
    assert body(moved) == BODIES[2]
    subqueue = extension(moved).subqueue
    assert subqueue is not None
    assert (subqueue.subqueue_name, subqueue.move_counter) == ("later", 1)


@pytest.mark.conformance("MQRR-op-10")
def test_a_moved_message_is_no_longer_in_its_source(steps: dict[str, Step]) -> None:
    assert steps["move what is gone"]["result"] == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert body(steps["peek before the purge"]) == BODIES[3]


@pytest.mark.conformance("MQRR-op-6")
def test_a_purge_empties_the_queue(steps: dict[str, Step]) -> None:
    assert succeeded(steps["purge"])
    assert steps["peek after the purge"]["result"] == HResult.MQ_ERROR_IO_TIMEOUT


# A dependent client and remote reader: qmcomm, qmcomm2 and qm2qm


@pytest.fixture(scope="module")
def dependent(
    server: ServedQueueManager, wine: Wine, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Step]:
    """What the program of qmcomm, qmcomm2 and qm2qm printed for each step."""
    interfaces = ("qmcomm", "qmcomm2", "qm2qm")
    program = compile_program(tmp_path_factory.mktemp("dependent"), "dependent", interfaces)
    server.command("queue", "create", "dependent", "--sddl", EVERYONE)
    server.command("queue", "create", "transactional", "--transactional", "--sddl", EVERYONE)
    names = [rf"TCP:127.0.0.1\private$\{name}" for name in ("dependent", "transactional")]
    return {step["step"]: step for step in wine.steps(program, "127.0.0.1", *names)}


def buffered_body(step: Step) -> str:
    assert succeeded(step), step
    octets = bytes.fromhex(step["body"])
    assert len(octets) == step["size"]
    return octets.decode().removesuffix("\0")


def packet_body(step: Step) -> str:
    assert succeeded(step), step
    return PacketMessage(bytes.fromhex(step["packet"])).body.decode().removesuffix("\0")


@pytest.mark.conformance("MQMP-op-19", "MQMP-op-20")
@pytest.mark.parametrize("step", ["open for sending", "open for receiving"])
def test_a_queue_is_opened_by_a_dependent_client(dependent: dict[str, Step], step: str) -> None:
    assert succeeded(dependent[step])
    assert dependent[step]["opened"]
    assert not dependent[step]["elsewhere"]


@pytest.mark.conformance("MQMP-op-20")
@pytest.mark.parametrize("step", ["close sending", "close reading"])
def test_a_queue_is_closed_and_its_handle_cleared_by_a_dependent_client(
    dependent: dict[str, Step], step: str
) -> None:
    assert succeeded(dependent[step])
    assert dependent[step]["closed"]


def test_messages_are_sent_and_numbered(dependent: dict[str, Step]) -> None:
    sent = [dependent[step] for step in ("send", "send again", "send urgently")]
    assert all(map(succeeded, sent))
    first, second, third = (step["number"] for step in sent)
    assert 0 < first < second < third


def test_the_urgent_message_comes_first_with_all_its_fields(dependent: dict[str, Step]) -> None:
    peek = dependent["peek"]
    assert buffered_body(peek) == "urgent"
    assert (peek["priority"], peek["type"]) == (6, BodyType.VT_BSTR)
    assert peek["label"] == "from a stranger"


def test_a_cursor_walks_along_the_queue_by_a_dependent_client(dependent: dict[str, Step]) -> None:
    assert dependent["create cursor"]["cursor"] != 0
    assert buffered_body(dependent["cursor current"]) == "urgent"
    assert buffered_body(dependent["cursor next"]) == "first"
    assert succeeded(dependent["close cursor"])


def test_a_message_that_does_not_fit_stays_and_tells_its_size(dependent: dict[str, Step]) -> None:
    small = dependent["receive too small"]
    assert small["result"] == HResult.MQ_ERROR_BUFFER_OVERFLOW
    assert small["size"] == len("urgent\0")
    assert buffered_body(dependent["receive"]) == "urgent"


@pytest.mark.conformance("MQMP-op-16", "MQMP-op-17", "MQMP-op-c2_1")
def test_messages_are_sent_in_transactions_of_a_dependent_client(
    dependent: dict[str, Step],
) -> None:
    """What was aborted never arrives, what is committed does so then."""
    for step in ("enlist", "send and take back", "send in a transaction", "commit sending"):
        assert succeeded(dependent[step]), step
    assert dependent["enlist"]["opened"]
    assert dependent["commit sending"]["closed"]
    assert dependent["peek before the commit"]["result"] == HResult.MQ_ERROR_IO_TIMEOUT
    assert buffered_body(dependent["receive and give back"]) == "certain"


@pytest.mark.conformance("MQMP-op-18", "MQMP-op-17", "MQMP-op-c2_2")
def test_messages_are_received_in_transactions_of_a_dependent_client(
    dependent: dict[str, Step],
) -> None:
    """What was aborted is there again, what is committed is gone."""
    assert dependent["receive what is held"]["result"] == HResult.MQ_ERROR_IO_TIMEOUT
    assert succeeded(dependent["abort receiving"])
    assert dependent["abort receiving"]["closed"]
    assert buffered_body(dependent["receive in a transaction"]) == "certain"
    assert succeeded(dependent["commit receiving"])
    assert dependent["receive after the commit"]["result"] == HResult.MQ_ERROR_IO_TIMEOUT


@pytest.mark.conformance("MQMP-op-26", "MQMP-op-27", "MQMP-op-31")
def test_a_dependent_client_purges_a_queue_and_asks_for_names_and_ports(
    dependent: dict[str, Step], server: ServedQueueManager
) -> None:
    named = dependent["format name"]
    text = bytes.fromhex(named["text"]).decode("utf-16-le")
    assert text == r"DIRECT=TCP:127.0.0.1\private$\dependent"
    assert named["length"] == len(text) + 1
    assert succeeded(dependent["purge as dependent client"])
    assert dependent["receive after the purge"]["result"] == HResult.MQ_ERROR_IO_TIMEOUT
    assert dependent["port of qmcomm"]["port"] == server.rpc_port


@pytest.mark.conformance("MQQP-op-2", "MQQP-rule-2.1")
def test_a_queue_opened_through_qmcomm_is_taken_over(dependent: dict[str, Step]) -> None:
    assert succeeded(dependent["open remote"])
    assert succeeded(dependent["take over"])
    assert dependent["take over"]["opened"]
    assert succeeded(dependent["close remote"])


@pytest.mark.conformance("MQQP-op-7", "MQQP-op-8")
def test_port_and_version_are_told(dependent: dict[str, Step], server: ServedQueueManager) -> None:
    assert dependent["port"]["port"] == server.ready["endpoints"]["qm2qm"][1]
    assert dependent["version"]["version"][:2] == [6, 1]


@pytest.mark.conformance("MQQP-op-0", "MQQP-packet-REMOTEREADDESC")
def test_a_message_is_peeked_at(dependent: dict[str, Step]) -> None:
    assert packet_body(dependent["remote peek"]) == "first"
    assert not dependent["remote peek"]["locked"]


@pytest.mark.conformance("MQQP-op-0", "MQQP-op-1", "MQQP-action-receive")
def test_a_message_is_received_in_two_phases(dependent: dict[str, Step]) -> None:
    for step in ("remote receive", "remote receive again"):
        assert packet_body(dependent[step]) == "first"
        assert dependent[step]["locked"]
    assert succeeded(dependent["end with nack"])
    assert succeeded(dependent["end with ack"])
    assert packet_body(dependent["peek the rest"]) == "second"


@pytest.mark.conformance("MQQP-op-9", "MQQP-op-10", "MQQP-packet-REMOTEREADDESC2")
def test_a_message_is_received_by_the_identifier_that_it_was_told_with(
    dependent: dict[str, Step],
) -> None:
    peeked, received = dependent["peek for the identifier"], dependent["receive by identifier"]
    assert packet_body(peeked) == packet_body(received) == "second"
    assert 0 < peeked["identifier"] == received["identifier"]
    assert (peeked["locked"], received["locked"]) == (False, True)
    assert succeeded(dependent["end by identifier"])


@pytest.mark.conformance("MQQP-op-4", "MQMP-op-4")
def test_a_cursor_of_a_remote_reader_is_made_used_and_closed(dependent: dict[str, Step]) -> None:
    assert dependent["create remote cursor"]["cursor"] != 0
    assert packet_body(dependent["peek with remote cursor"]) == "second"
    assert succeeded(dependent["close remote cursor"])
    again = dependent["close remote cursor again"]
    assert again["result"] == HResult.MQ_ERROR_INVALID_HANDLE


@pytest.mark.conformance("MQQP-op-6", "MQQP-op-5", "MQQP-error-0x400E03E9")
def test_a_wait_in_the_purged_queue_is_cancelled_from_another_thread(
    dependent: dict[str, Step],
) -> None:
    assert succeeded(dependent["purge"])
    assert succeeded(dependent["cancel"])
    assert dependent["cancel"]["ended"]
    waiting = dependent["waiting receive"]
    assert waiting["result"] == HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT
    assert not waiting["locked"]


@pytest.mark.conformance("MQQP-op-3")
def test_the_session_is_closed_and_its_handle_cleared(dependent: dict[str, Step]) -> None:
    assert succeeded(dependent["close session"])
    assert dependent["close session"]["closed"]
