"""impacket calls every method of destinations, transactions and events.

What they do is what RemoteRead sees; who hears events: ../test_impacket_events.py.
"""

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac import coclasses
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import YES, number
from tests.support.dcom.impacket_place import REPORTS, Place
from tests.support.dcom.impacket_walker import Held, Walker, Way
from tests.support.qm.directories import OWN_QUEUE
from tests.support.waiting import until

DESTINATIONS = ("IMSMQDestination", "IMSMQPrivateDestination")
TRANSACTIONS = (
    *("IMSMQTransaction", "IMSMQTransactionDispenser"),
    "IMSMQCoordinatedTransactionDispenser",
)
EVENTS = ("IMSMQEvent", "IMSMQPrivateEvent")
WALKED = (*DESTINATIONS, *TRANSACTIONS, *EVENTS)
RECEIVE = QueueAccessType.RECEIVE_ACCESS


# MSMQDestination


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_destinations(place: Place, way: Way) -> None:
    with place.walk(way, DESTINATIONS) as walker:
        path = place.queue()
        made = walker.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")
        _opened(place, walker, made, path)
        _names(walker, made, path)
        _handles(place, walker, path)
        place.refused(walker, made, None)


def _opened(place: Place, walker: Walker, made: Held, path: str) -> None:
    assert walker.refusal(made, "Open") == HResult.MQ_ERROR_ILLEGAL_FORMATNAME
    walker.put(made, "FormatName", "DIRECT=OS:" + path)
    walker.call(made, "Open")
    assert walker.get(made, "IsOpen") is True
    walker.call(walker.message(), "Send", made, None)
    assert len(place.browse(path)) == 1
    walker.call(made, "Close")
    assert walker.get(made, "IsOpen") is False
    closed = walker.refusal(walker.message(), "Send", made, None)
    assert closed == HResult.MQ_ERROR_INVALID_HANDLE
    walker.put(made, "FormatName", f"DIRECT=OS:{path}x")
    assert walker.refusal(made, "Open") == HResult.MQ_ERROR_QUEUE_NOT_FOUND


def _names(walker: Walker, made: Held, path: str) -> None:
    walker.put(made, "PathName", path)
    assert walker.get(made, "PathName") == path
    assert walker.get(made, "FormatName") == "DIRECT=OS:" + path
    walker.put(made, "ADsPath", REPORTS)
    assert walker.get(made, "ADsPath") == REPORTS
    assert walker.get(made, "FormatName") == f"PUBLIC={OWN_QUEUE}"
    walker.put(made, "FormatName", "DIRECT=")
    assert walker.refusal(made, "Open") == HResult.MQ_ERROR_ILLEGAL_FORMATNAME
    wrong = walker.refusal(made, "put_PathName", "orders")
    assert wrong == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME
    nobody = walker.refusal(made, "put_ADsPath", "LDAP://CN=nobody")
    assert nobody == HResult.MQ_ERROR_QUEUE_NOT_FOUND


def _handles(place: Place, walker: Walker, path: str) -> None:
    first = walker.destination("DIRECT=OS:" + path)
    handle = walker.get(walker.query(first, "IMSMQPrivateDestination"), "Handle")
    assert handle.vt == VARENUM.VT_I8
    second = walker.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")
    private = walker.query(second, "IMSMQPrivateDestination")
    assert walker.get(private, "Handle") == Variant(VARENUM.VT_I8, -1)
    walker.put(private, "Handle", handle)
    walker.call(walker.message(), "Send", second, None)
    assert len(place.browse(path)) == 2


# Transactions


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_transactions(place: Place, way: Way) -> None:
    with place.walk(way, TRANSACTIONS) as walker:
        path = place.queue(QueueSettings(transactional=True))
        dispenser = walker.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
        _committed(place, walker, path, walker.call(dispenser, "BeginTransaction"))
        _aborted(place, walker, path, walker.call(dispenser, "BeginTransaction"))
        made = _standing_for(place, walker, path, walker.call(dispenser, "BeginTransaction"))
        place.refused(walker, made)
        place.refused(walker, dispenser)
        coordinated = walker.create(
            clsids.MSMQ_COORDINATED_TRANSACTION_DISPENSER,
            "IMSMQCoordinatedTransactionDispenser3",
        )
        none = walker.refusal(coordinated, "BeginTransaction")
        assert none == HResult.MQ_ERROR_DTC_CONNECT
        place.refused(walker, coordinated)


def _send(walker: Walker, path: str, transaction: Held) -> None:
    joined = Variant(VARENUM.VT_DISPATCH, transaction)
    walker.call(walker.message(), "Send", walker.destination("DIRECT=OS:" + path), joined)


def _committed(place: Place, walker: Walker, path: str, begun: Held) -> None:
    _send(walker, path, begun)
    assert place.browse(path) == []
    assert walker.refusal(begun, "Commit", YES, None, None) == HResult.XACT_E_NOTSUPPORTED
    walker.call(begun, "Commit", None, None, None)
    (read,) = place.browse(path)
    assert read.is_transactional
    again = walker.refusal(begun, "Commit", None, None, None)
    assert again == HResult.MQ_ERROR_TRANSACTION_SEQUENCE


def _aborted(place: Place, walker: Walker, path: str, begun: Held) -> None:
    queue = walker.open(path, RECEIVE)
    joined = Variant(VARENUM.VT_DISPATCH, begun)
    walker.call(queue, "Receive", joined, None, None, number(0), None)
    assert place.browse(path) == []
    assert walker.refusal(begun, "Abort", YES, None) == HResult.XACT_E_NOTSUPPORTED
    walker.call(begun, "Abort", None, None)
    until(lambda: len(place.browse(path)) == 1)
    late = walker.refusal(begun, "Abort", None, None)
    assert late == HResult.MQ_ERROR_TRANSACTION_SEQUENCE


def _standing_for(place: Place, walker: Walker, path: str, begun: Held) -> Held:
    """A new object for a transaction that there is."""
    made = walker.create(clsids.MSMQ_TRANSACTION, "IMSMQTransaction3")
    assert walker.get(made, "ITransaction") == EMPTY
    assert walker.refusal(made, "InitNew", number(1)) == HResult.E_INVALIDARG
    inner = walker.get(begun, "ITransaction")
    assert inner.vt == VARENUM.VT_UNKNOWN
    walker.call(made, "InitNew", Variant(VARENUM.VT_UNKNOWN, walker.held(inner.value, "IUnknown")))
    before = len(place.browse(path))
    _send(walker, path, made)
    walker.call(begun, "Commit", None, None, None)
    assert len(place.browse(path)) == before + 1
    return made


# MSMQEvent


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_events(place: Place, way: Way) -> None:
    with place.walk(way, EVENTS) as walker:
        event = walker.create(coclasses.MSMQ_EVENT, "IMSMQEvent3")
        place.refused(walker, event)
        queue = walker.open(place.queue(), RECEIVE)
        private = walker.query(event, "IMSMQPrivateEvent")
        assert walker.get(private, "Hwnd") == 0
        walker.call(private, "FireArrivedEvent", queue, 0)
        error = HResult.MQ_ERROR_IO_TIMEOUT - (1 << 32)
        walker.call(private, "FireArrivedErrorEvent", queue, error, 0)
        assert walker.refusal(private, "FireArrivedEvent", None, 0) == HResult.E_POINTER
