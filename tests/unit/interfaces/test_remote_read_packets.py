"""What a remote reader gets of a message ([MS-MQRR] 2.2.5 to 2.2.7, 3.1.4.7 ppPacketSections)."""

import socket
from uuid import UUID

import pytest

from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import FaultStatus
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.base import BaseHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.remote_read import (
    AddressOverlay,
    ExtendedAddressHeader,
    HostAddress,
    MessagePacketExtension,
    SubqueueHeader,
)
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.remoteread import R_StartReceiveResponse, SectionType
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.codec.packets import split_message_packet
from tests.support.queue_manager import COMPUTER, RunningQueueManager
from tests.support.rpc.callers import CallServer, Fault
from tests.support.rpc.remote_reader import (
    PEEK_ACCESS,
    PEEK_CURRENT,
    Reader,
    body_of,
    packet_of,
    served_remote_read,
)

OWN = HostAddress.parse("192.0.2.7")
LOOPBACK = socket.if_nametoindex("lo")


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_remote_read(qm)


@pytest.fixture
def reader(server: CallServer) -> Reader:
    return Reader(server.connect())


def parts(response: R_StartReceiveResponse) -> tuple[UserMessage, MessagePacketExtension]:
    return split_message_packet(packet_of(response))


def store(qm: RunningQueueManager, queue: Queue, packet: bytes) -> None:
    """Put a packet into a queue, as it came from elsewhere."""
    qm.done(qm.engine.messages.enqueue_message(queue, Message(packet)))


# Sections


@pytest.mark.conformance(
    "MQRR-section-stFullPacket", "MQRR-packet-SectionBuffer", "MQRR-packet-MessagePacket"
)
@pytest.mark.parametrize("maximum", [10, 11, 5000])
def test_a_body_that_is_not_cut_comes_in_one_section(
    qm: RunningQueueManager, reader: Reader, maximum: int
) -> None:
    queue = qm.create()
    qm.send(queue, b"0123456789", label="tick")
    response = reader.read(reader.open(queue), maximum_body=maximum)
    (section,) = response.ppPacketSections
    assert section.SectionBufferType == SectionType.stFullPacket
    assert section.SectionSize == section.SectionSizeAlloc == len(section.pSectionBuffer)
    packet, extension = parts(response)
    packet.validate()
    assert (packet.body, packet.label) == (b"0123456789", "tick")
    assert extension.subqueue is not None


@pytest.mark.conformance(
    "MQRR-section-stBinaryFirstSection",
    "MQRR-section-stBinarySecondSection",
    "MQRR-packet-SectionBuffer",
)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 10])
@pytest.mark.parametrize("maximum", [0, 1, 5, 8])
def test_a_body_that_is_cut_comes_in_two_sections(
    qm: RunningQueueManager, reader: Reader, size: int, maximum: int
) -> None:
    queue = qm.create()
    body = bytes(range(65, 65 + size))
    qm.send(queue, body, label="tick", extension=b"ext")
    handle = reader.open(queue, PEEK_ACCESS)
    whole = reader.read(handle, PEEK_CURRENT)
    cut = reader.read(handle, PEEK_CURRENT, maximum_body=maximum)
    if maximum >= size:
        assert cut == whole
        return
    first, second = cut.ppPacketSections
    octets = packet_of(whole)
    headers = UserMessage(octets).body_offset
    assert first.SectionBufferType == SectionType.stBinaryFirstSection
    assert first.SectionSize == headers + maximum
    assert first.SectionSizeAlloc == headers + size
    assert first.pSectionBuffer == octets[: headers + maximum]
    assert second.SectionBufferType == SectionType.stBinarySecondSection
    assert second.SectionSize == second.SectionSizeAlloc
    assert second.pSectionBuffer == octets[headers + size :]
    assert body_of(cut) == body[:maximum]


@pytest.mark.conformance("MQRR-packet-MessagePacket", "MQRR-section-stBinarySecondSection")
def test_sections_that_are_put_together_are_a_valid_packet(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    names = parse_format_names(r"DIRECT=OS:a\private$\b,DIRECT=OS:c\private$\d")
    qm.send(queue, b"01234", destination_multi_queue_format_name=names, tracing_requested=True)
    response = reader.read(reader.open(queue), maximum_body=2)
    packet, extension = parts(response)
    packet.validate()
    assert packet.body == b"01\0\0\0"
    trailer = packet.multi_queue_format_header
    assert trailer is not None
    assert trailer.destination == names
    assert extension.extended_address is not None


SRMP_BODY = b"<the body of a message that came by HTTP>"
SRMP_MESSAGE = b"POST /msmq/private$/orders HTTP/1.1\r\n\r\n" + SRMP_BODY


def srmp_packet() -> bytes:
    return build_user_message(
        MessageAttributes(
            destination_queue_format_name=FormatName.parse(
                r"DIRECT=OS:WORKSTATION\private$\orders"
            ),
            body=SRMP_BODY,
            soap_envelope="<se:Envelope/>",
            soap_compound_message=SRMP_MESSAGE,
            time_to_reach_queue=NEVER,
        )
    )


@pytest.mark.conformance("MQRR-section-stSrmpFirstSection", "MQRR-section-stSrmpSecondSection")
def test_an_srmp_message_is_cut_in_its_compound_message(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    store(qm, queue, srmp_packet())
    handle = reader.open(queue)
    whole = reader.read(handle, PEEK_CURRENT, maximum_body=0)
    assert [each.SectionBufferType for each in whole.ppPacketSections] == [0]
    octets = packet_of(whole)
    start = octets.index(SRMP_MESSAGE) - 16
    response = reader.caller.call(
        "R_StartReceive",
        phContext=handle,
        LookupId=0,
        hCursor=0,
        ulAction=PEEK_CURRENT,
        ulTimeout=0,
        dwRequestId=3,
        dwMaxBodySize=0xFFFFFFFF,
        dwMaxCompoundMessageSize=20,
    )
    first, second = response.ppPacketSections
    kinds = first.SectionBufferType, second.SectionBufferType
    assert kinds == (SectionType.stSrmpFirstSection, SectionType.stSrmpSecondSection)
    assert first.pSectionBuffer == octets[: start + 20]
    assert first.SectionSizeAlloc == start + 16 + len(SRMP_MESSAGE)
    assert second.pSectionBuffer == octets[first.SectionSizeAlloc :]


# UserMessage


@pytest.mark.conformance("MQRR-packet-UserMessage")
@pytest.mark.parametrize("maximum", [0, 100])
def test_the_time_to_reach_the_queue_is_absolute(
    qm: RunningQueueManager, reader: Reader, maximum: int
) -> None:
    queue = qm.create()
    qm.send(queue, b"one", time_to_reach_queue=60)
    sent = qm.clock.now() // 1000
    qm.advance(5_000)
    packet, _ = parts(reader.read(reader.open(queue), maximum_body=maximum))
    assert BaseHeader.decode(packet.buffer).time_to_reach_queue == sent + 60


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_a_message_without_a_limit_never_expires(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one", time_to_reach_queue=NEVER)
    packet, _ = parts(reader.read(reader.open(queue)))
    assert BaseHeader.decode(packet.buffer).time_to_reach_queue == 0xFFFFFFFF


@pytest.mark.conformance("MQRR-packet-UserMessage", "MQRR-header-ExtendedAddressHeader")
def test_a_message_from_this_machine_has_its_address(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    packet, extension = parts(reader.read(reader.open(queue)))
    assert bytes(packet.buffer[32:48]) == AddressOverlay.of(OWN).encode()
    assert extension.extended_address is not None
    assert extension.extended_address.host == OWN


@pytest.mark.conformance("MQRR-packet-UserMessage", "MQRR-header-ExtendedAddressHeader")
@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("198.51.100.4", HostAddress(bytes((198, 51, 100, 4)))),
        ("::ffff:198.51.100.4", HostAddress(bytes((198, 51, 100, 4)))),
        ("2001:db8::1", HostAddress(bytes.fromhex("20010db8" + "00" * 11 + "01"))),
        ("fe80::1%3", HostAddress(bytes.fromhex("fe80" + "00" * 13 + "01"), 3)),
        ("fe80::1%lo", HostAddress(bytes.fromhex("fe80" + "00" * 13 + "01"), LOOPBACK)),
        ("fe80::1%none", HostAddress(bytes.fromhex("fe80" + "00" * 13 + "01"))),
    ],
)
def test_a_message_has_the_address_it_came_from_also_after_a_restart(
    qm: RunningQueueManager, address: str, host: HostAddress
) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"one")
    message.source_address = address
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.restart()
    reader = Reader(served_remote_read(qm).connect())
    packet, extension = parts(reader.read(reader.open(qm.find())))
    assert packet.body == b"one"
    assert bytes(packet.buffer[32:48]) == AddressOverlay.of(host).encode()
    assert extension.extended_address == ExtendedAddressHeader.of(host)


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_another_destination_keeps_its_queue_manager(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    own = qm.engine.queue_manager.identifier
    name = FormatName.private(own, queue.private_queue_number)
    attributes = MessageAttributes(destination_queue_format_name=name, time_to_reach_queue=NEVER)
    store(qm, queue, build_user_message(attributes))
    packet, _ = parts(reader.read(reader.open(queue)))
    assert bytes(packet.buffer[32:48]) == own.bytes_le


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (("127.0.0.1", "192.0.2.9"), "192.0.2.9"),
        (("127.0.0.1",), "127.0.0.1"),
        ((), "127.0.0.1"),
        (("::1", "2001:db8::7"), "2001:db8::7"),
        (("::1", "fe80::7%3"), "fe80::7%3"),
    ],
)
def test_the_own_address_is_one_that_others_can_reach(
    qm: RunningQueueManager, addresses: tuple[str, ...], expected: str
) -> None:
    qm.restart(QueueManagerSettings(computer_name=COMPUTER, addresses=addresses))
    queue = qm.create()
    qm.send(queue, b"one")
    reader = Reader(served_remote_read(qm).connect())
    _, extension = parts(reader.read(reader.open(queue)))
    assert extension.extended_address is not None
    assert extension.extended_address.host == HostAddress.parse(expected)


# The headers behind the message


@pytest.mark.conformance("MQRR-header-ExtensionHeader", "MQRR-header-SubqueueHeader")
def test_a_message_that_was_never_moved_has_an_empty_subqueue_header(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    response = reader.read(reader.open(queue))
    octets = packet_of(response)
    extension = octets[UserMessage(octets).size :]
    assert len(extension) == 12 + 148 + 28
    assert extension[:12] == bytes.fromhex("0c000000b0000000 12 000000")
    assert extension[12:160] == (148).to_bytes(4, "little") + bytes(144)


@pytest.mark.conformance("MQRR-header-SubqueueHeader")
def test_the_subqueue_header_tells_of_moves_and_aborts(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create(transactional=True)
    transaction = qm.engine.transactions.create_transaction(queue.identifier)
    qm.send(queue, b"one", transaction)
    qm.done(qm.engine.transactions.transaction_commit(queue.identifier))
    late = qm.subqueue(queue, "Late")
    (key,) = queue.message_position_list.page(None, 2)
    position = qm.engine.messages.position(queue, key)
    assert position is not None
    qm.advance(5_500)
    qm.done(qm.engine.messages.move_message(position, late))
    moved = qm.clock.now() // 1000
    _abort_a_receive(qm, late)
    handle = reader.open(f"DIRECT=OS:{queue.pathname};late")
    _, extension = parts(reader.read(handle, PEEK_CURRENT))
    header = extension.subqueue
    assert header is not None
    counters = header.abort_counter, header.move_counter, header.last_move_time
    assert counters == (1, 1, moved)
    assert (header.subqueue_name, header.target_subqueue_name) == ("Late", "")


@pytest.mark.conformance("MQRR-header-SubqueueHeader")
def test_the_subqueue_header_has_the_class_of_an_acknowledgement(
    qm: RunningQueueManager, reader: Reader
) -> None:
    admin = FormatName.parse(r"DIRECT=OS:.\private$\admin")
    queue, told = qm.create(), qm.create(r"private$\admin")
    qm.send(queue, b"a", administration_queue_format_name=admin, acknowledgements_requested=1)
    _, extension = parts(reader.read(reader.open(told)))
    assert extension.subqueue is not None
    kind = extension.subqueue.flags.ACKNOWLEDGEMENT_CLASS
    assert kind == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE


@pytest.mark.conformance("MQRR-header-SubqueueHeader")
@pytest.mark.parametrize("number", [MessageClass.MQMSG_CLASS_NORMAL, 0x0100])
def test_a_message_that_is_being_moved_tells_where_to(
    qm: RunningQueueManager, reader: Reader, number: int
) -> None:
    """An application may give it a class of its own."""
    queue = qm.create(transactional=True)
    late = qm.subqueue(queue, "Late")
    sending = qm.engine.transactions.create_transaction(UUID(int=1))
    qm.send(queue, b"one", sending, allow_peek_when_locked=True, message_class=number)
    qm.done(qm.engine.transactions.transaction_commit(UUID(int=1)))
    (key,) = queue.message_position_list.page(None, 2)
    position = qm.engine.messages.position(queue, key)
    assert position is not None
    moving = qm.engine.transactions.create_transaction(UUID(int=2))
    qm.done(qm.engine.messages.move_message(position, late, moving))
    handle = reader.open(queue, PEEK_ACCESS)
    header = _subqueue_of(reader.read(handle, PEEK_CURRENT))
    assert (header.subqueue_name, header.target_subqueue_name) == ("", "Late")
    kind = header.flags.ACKNOWLEDGEMENT_CLASS
    assert kind == number
    qm.done(qm.engine.transactions.transaction_abort(UUID(int=2)))
    header = _subqueue_of(reader.read(handle, PEEK_CURRENT))
    assert (header.subqueue_name, header.target_subqueue_name) == ("", "")


def _subqueue_of(response: R_StartReceiveResponse) -> SubqueueHeader:
    header = parts(response)[1].subqueue
    assert header is not None
    return header


def _abort_a_receive(qm: RunningQueueManager, queue: Queue) -> None:
    transaction = qm.engine.transactions.create_transaction(queue.identifier)
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname}")
    qm.receive(descriptor, transaction=transaction)
    qm.done(qm.engine.transactions.transaction_abort(queue.identifier))


# Damage


def test_a_damaged_packet_does_not_stay_locked(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    packet = bytearray(qm.compose(queue, b"one").packet)
    packet[64:66] = b"\xff\xff"  # the length of the destination's name
    store(qm, queue, bytes(packet))
    handle = reader.open(queue)
    with pytest.raises(Fault) as caught:
        reader.read(handle, maximum_body=0, request_id=7)
    assert caught.value.status == FaultStatus.nca_s_fault_unspec
    assert queue.message_position_list.available == 1
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQRR-header-DeadLetterHeader")
def test_the_dead_letter_queue_of_the_application_is_told(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"a")
    message.application_deadletter_queue = r".\private$\chosen"
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    packet, extension = parts(reader.read(reader.open(queue)))
    packet.validate()
    assert packet.body == b"a"
    assert extension.dead_letter is not None
    assert extension.dead_letter.dead_letter_path_name == r".\private$\chosen"
    assert extension.dead_letter_invalid


@pytest.mark.conformance("MQRR-header-ExtensionHeader")
@pytest.mark.parametrize(
    ("transactional", "chosen", "invalid"),
    [
        (False, r".\private$\chosen", False),
        (True, r".\private$\chosen", True),
        (False, r".\private$\none", True),
        (False, r".\private$\chosen;sub", True),
    ],
)
def test_a_dead_letter_queue_that_cannot_be_used_is_called_invalid(
    qm: RunningQueueManager, reader: Reader, transactional: bool, chosen: str, invalid: bool
) -> None:
    queue = qm.create()
    qm.subqueue(qm.create(r"private$\chosen", transactional=transactional), "sub")
    message = qm.compose(queue, b"a")
    message.application_deadletter_queue = chosen
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    _, extension = parts(reader.read(reader.open(queue)))
    assert extension.dead_letter_invalid is invalid
