"""MSMQMessage by itself: what it takes, keeps and tells ([MC-MQAC] 3.17)."""

from decimal import Decimal
from uuid import UUID

import pytest

from rpcqm.base.completion import start
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.mqac.arguments import VT_BYTES, octets_variant
from rpcqm.mqac.coclasses import coclasses
from rpcqm.mqac.destination import MSMQDestination
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.message import MSMQMessage
from rpcqm.mqac.queue_info import MSMQQueueInfo
from rpcqm.mqac.transaction import MSMQTransactionDispenser
from rpcqm.service import interfaces
from tests.support.dcom.fake_com import call_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB

CALL = call_of()
NAME = r"DIRECT=OS:.\private$\orders"


@pytest.fixture
def machine(qm: RunningQueueManager) -> Machine:
    return interfaces.machine(qm.engine)


def destination(machine: Machine, name: str = NAME) -> MSMQDestination:
    made = MSMQDestination(machine)
    made.put_FormatName(CALL, name)
    made.Open(CALL)
    return made


@pytest.mark.parametrize(
    ("body", "octets"),
    [
        (Variant(VARENUM.VT_I1, -2), b"\xfe"),
        (Variant(VARENUM.VT_UI1, 200), b"\xc8"),
        (Variant(VARENUM.VT_I2, -2), b"\xfe\xff"),
        (Variant(VARENUM.VT_UI2, 0xFFFE), b"\xfe\xff"),
        (Variant(VARENUM.VT_I4, 1), b"\1\0\0\0"),
        (Variant(VARENUM.VT_UI4, 0xFFFFFFFF), b"\xff\xff\xff\xff"),
        (Variant(VARENUM.VT_R4, 0.5), b"\0\0\0?"),
        (Variant(VARENUM.VT_R8, 0.5), b"\0\0\0\0\0\0\xe0?"),
        (Variant(VARENUM.VT_CY, Decimal("1.5")), (15000).to_bytes(8, "little")),
        (Variant(VARENUM.VT_DATE, 0.5), b"\0\0\0\0\0\0\xe0?"),
        (Variant(VARENUM.VT_BOOL, True), b"\xff\xff"),
        (Variant(VARENUM.VT_BSTR, "häß"), "häß".encode("utf-16-le")),
        (Variant(VT_BYTES, SafeArray(VARENUM.VT_UI1, b"abc")), b"abc"),
    ],
)
def test_a_body_is_written_as_its_type_says_and_read_again(
    machine: Machine, body: Variant, octets: bytes
) -> None:
    message = MSMQMessage(machine)
    message.put_Body(CALL, body)
    assert message.attributes.body == octets
    assert message.attributes.body_type == body.vt
    assert message.get_Body(CALL) == body
    assert message.get_BodyLength(CALL) == len(octets)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (Variant(VARENUM.VT_EMPTY), HResult.E_INVALIDARG),
        (Variant(VARENUM.VT_I8, 1), HResult.E_INVALIDARG),
        (Variant(VARENUM.VT_UI1, 256), HResult.E_INVALIDARG),
        (Variant(VARENUM.VT_DISPATCH, None), HResult.E_NOINTERFACE),
    ],
)
def test_what_is_no_body_is_refused(machine: Machine, body: Variant, status: HResult) -> None:
    with pytest.raises(MQError) as refused:
        MSMQMessage(machine).put_Body(CALL, body)
    assert refused.value.status is status


def test_what_is_sent_is_in_the_queue(qm: RunningQueueManager, machine: Machine) -> None:
    qm.create()
    message = MSMQMessage(machine)
    message.put_Body(CALL, Variant(VARENUM.VT_BSTR, "hello"))
    message.put_Label(CALL, "first")
    sent = message.Send(CALL, destination(machine), None)
    qm.settle()
    sent.result()
    assert qm.bodies(qm.find()) == ["hello".encode("utf-16-le")]
    assert UUID(message.get_SourceMachineGuid(CALL)) == qm.engine.queue_manager.identifier
    assert message.get_MaxTimeToReceive(CALL) == -1


def test_a_transaction_that_nobody_holds_is_aborted(
    qm: RunningQueueManager, machine: Machine
) -> None:
    qm.create(transactional=True)
    transaction = MSMQTransactionDispenser(machine).BeginTransaction(CALL)
    message, target = MSMQMessage(machine), destination(machine)
    message.put_Body(CALL, octets_variant(b"x"))
    message.Send(CALL, target, Variant(VARENUM.VT_DISPATCH, transaction)).result()
    transaction.released()
    qm.settle()
    assert qm.bodies(qm.find()) == []
    single = message.Send(CALL, target, Variant(VARENUM.VT_I4, 3))
    qm.settle()
    single.result()
    assert qm.bodies(qm.find()) == [b"x"]
    with pytest.raises(MQError) as refused:
        message.Send(CALL, target, None).result()
    assert refused.value.status is HResult.MQ_ERROR_TRANSACTION_USAGE


@pytest.mark.bound("dcom.octets_per_caller")
def test_a_caller_holds_no_more_in_messages_than_the_bound(
    qm: RunningQueueManager, machine: Machine
) -> None:
    machine.held.most = 100
    first, second = MSMQMessage(machine), MSMQMessage(machine)
    first.put_Body(CALL, octets_variant(bytes(60)))
    second.put_Extension(CALL, octets_variant(bytes(40)))
    setters = (second.put_Body, second.put_Signature, second.put_SenderCertificate)
    for put in setters:
        with pytest.raises(MQError) as refused:
            put(CALL, octets_variant(b"x"))
        assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    with pytest.raises(MQError):
        second.put_SoapBody(CALL, "x")
    assert second.get_BodyLength(CALL) == 0
    MSMQMessage(machine).put_Body(call_of(BOB), octets_variant(bytes(100)))
    first.put_Body(CALL, octets_variant(bytes(59)))
    second.put_Body(CALL, octets_variant(b"x"))
    first.give_back()
    second.give_back()
    assert machine.held[ALICE.sid] == 0


@pytest.mark.bound("dcom.octets_per_caller")
def test_a_caller_reads_nothing_while_it_holds_too_much(
    qm: RunningQueueManager, machine: Machine
) -> None:
    coclasses(machine)
    qm.create()
    message = MSMQMessage(machine)
    message.Send(CALL, destination(machine), None)
    qm.settle()
    info = machine.queue_info(CALL, (FormatName.parse(NAME),))
    assert isinstance(info, MSMQQueueInfo)
    queue = start(info.Open(CALL, 32, 0)).result()
    machine.held.most = machine.held[ALICE.sid] + 100

    def peek() -> MSMQMessage:
        nothing = Variant(VARENUM.VT_I4, 0)
        peeking = start(queue.Peek(CALL, None, None, nothing, None))
        qm.settle()
        found = peeking.result()
        assert isinstance(found, MSMQMessage)
        return found

    held = peek()
    with pytest.raises(MQError) as refused:
        peek()
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    held.give_back()
    peek()
