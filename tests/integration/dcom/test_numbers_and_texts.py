"""Arguments at the borders of their types: times, lookup identifiers, odd texts, transactions."""

from collections.abc import Iterator

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import NO, STREAM, Objects, number, served_objects
from tests.support.dcom.dcom_client import ComError, Reference

V = VARENUM
BEYOND = [
    (V.VT_I8, 1 << 40),
    (V.VT_I8, 1 << 32),
    (V.VT_I8, -(1 << 31) - 1),
    (V.VT_UI8, (1 << 64) - 1),
    (V.VT_R8, 4294967996.0),
    (V.VT_R8, -2147483649.0),
    (V.VT_R8, 1e300),
]
WITHIN = [(V.VT_I8, 0), (V.VT_R8, 0.0), (V.VT_I2, 0), (V.VT_UI4, 0), (V.VT_BOOL, False)]


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with served_objects() as made:
        yield made


def refusal(objects: Objects, made: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(made, operation, *arguments)
    return refused.value.status


@pytest.mark.parametrize(("vt", "value"), BEYOND)
def test_a_time_to_wait_that_is_no_long_is_an_overflow(
    objects: Objects, vt: VARENUM, value: float
) -> None:
    """It is not the time that its last 32 bits make (G416)."""
    queue, time = objects.open(QueueAccessType.RECEIVE_ACCESS), Variant(vt, value)
    for operation in ("Peek", "PeekCurrent", "PeekNext"):
        status = refusal(objects, queue, operation, NO, NO, time, NO)
        assert status is HResult.DISP_E_OVERFLOW
    for operation in ("Receive", "ReceiveCurrent"):
        status = refusal(objects, queue, operation, number(0), NO, NO, time, NO)
        assert status is HResult.DISP_E_OVERFLOW
    event = objects.create(clsids.MSMQ_EVENT, "IMSMQEvent3")
    status = refusal(objects, queue, "EnableNotification", event, number(0), time)
    assert status is HResult.DISP_E_OVERFLOW
    objects.com.call(queue, "Close")


@pytest.mark.parametrize(("vt", "value"), WITHIN)
def test_a_time_to_wait_is_taken_in_any_type(objects: Objects, vt: VARENUM, value: float) -> None:
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    status = refusal(objects, queue, "Peek", NO, NO, Variant(vt, value), NO)
    assert status is HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    objects.com.call(queue, "Close")


@pytest.mark.parametrize(("vt", "value"), [(V.VT_R8, 2.0**64 + 2**20), (V.VT_R8, -(2.0**70))])
def test_a_number_beyond_64_bits_is_no_lookup_identifier(
    objects: Objects, vt: VARENUM, value: float
) -> None:
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    status = refusal(objects, queue, "PeekByLookupId", Variant(vt, value), NO, NO, NO)
    assert status is HResult.MQ_ERROR_INVALID_PARAMETER
    objects.com.call(queue, "Close")


def test_octets_that_are_no_text_are_no_label(objects: Objects) -> None:
    """A BSTR may have an odd number of octets (G413)."""
    illegal = HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    for made, names in (
        (objects.message(), ("Label", "SoapBody")),
        (objects.queue_info(), ("Label", "PathName", "FormatName", "ServiceTypeGuid")),
    ):
        for name in names:
            assert refusal(objects, made, f"put_{name}", b"abc") is illegal, name


@pytest.mark.parametrize("vt", [V.VT_I1, V.VT_UI1, V.VT_I2, V.VT_I4, V.VT_I8, V.VT_R4, V.VT_R8])
def test_a_transaction_is_named_by_a_number_of_any_type(objects: Objects, vt: VARENUM) -> None:
    """[MC-MQAC] 3.17.4.1.48 knows VT_I4 alone; languages pass what they have (G414)."""
    destination = objects.destination(f"DIRECT=OS:{STREAM}")
    single = Variant(vt, 3.0 if vt in (V.VT_R4, V.VT_R8) else 3)
    objects.send(objects.message(), destination, single)
    assert len(objects.bodies(STREAM)) == 1
    objects.empty()


def test_a_transaction_that_has_ended_is_refused(objects: Objects) -> None:
    """It is not begun again under its identifier (G414)."""
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    transaction = objects.com.call(dispenser, "BeginTransaction")
    objects.com.call(transaction, "Abort", NO, NO)
    destination = objects.destination(f"DIRECT=OS:{STREAM}")
    given = Variant(V.VT_DISPATCH, transaction)
    status = refusal(objects, objects.message(), "Send", destination, given)
    assert status is HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert objects.bodies(STREAM) == []
