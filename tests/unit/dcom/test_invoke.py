"""IDispatch over the members of a class ([MS-OAUT] 3.1.4)."""

from typing import Any, cast
from uuid import UUID

import pytest

from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.automation.type_library import describe
from rpcqm.codec.automation.values import EMPTY, MISSING, Variant
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import (
    DISPATCH_METHOD,
    DISPATCH_PROPERTYGET,
    DISPATCH_PROPERTYPUT,
    DISPATCH_PROPERTYPUTREF,
    DISPID_PROPERTYPUT,
    VT_BOOL,
    VT_BSTR,
    VT_BYREF,
    VT_DISPATCH,
    VT_I2,
    VT_I4,
    VT_R8,
    VT_VARIANT,
    DISPATCH_zeroExcepInfo,
    DISPATCH_zeroVarResult,
)
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.com_object import ComCall, Outcome, WaitingCalls

NULL = UUID(int=0)
NEWEST = UUID("eba96b20-2168-11d3-898c-00e02c074f6b")
OLDEST = UUID("d7d6e076-dccd-11d0-aa4b-0060970debae")


class Message(Automation):
    INTERFACES = ("IMSMQMessage4", "IMSMQMessage3", "IMSMQMessage2", "IMSMQMessage")

    def __init__(self) -> None:
        self.put: list[object] = []

    def put_Priority(self, call: ComCall, lPriority: int) -> None:
        self.put.append(lPriority)

    def putref_ResponseQueueInfo(self, call: ComCall, pqinfoResponse: object) -> None:
        self.put.append(pqinfoResponse)


class Queue(Automation):
    """What IMSMQQueue4 needs in these tests, remembering what it was called with."""

    INTERFACES = ("IMSMQQueue4", "IMSMQQueue3", "IMSMQQueue2", "IMSMQQueue")

    def __init__(self) -> None:
        self.called: tuple[object, ...] = ()
        self.waiting: Completion[Message] = Completion()

    def get_Access(self, call: ComCall) -> int:
        return 7

    def get_IsOpen(self, call: ComCall) -> int:
        raise MQError(HResult.MQ_ERROR_QUEUE_DELETED, "a path that nobody needs to know")

    def Close(self, call: ComCall) -> None:
        raise MQError(NtStatus.STATUS_ACCESS_DENIED)

    def Receive_v1(self, call: ComCall, *arguments: object) -> Message:
        self.called = ("Receive_v1", *arguments)
        return Message()

    def Receive(self, call: ComCall, *arguments: object) -> Message:
        self.called = ("Receive", *arguments)
        return Message()

    def EnableNotification(self, call: ComCall, *arguments: object) -> None:
        self.called = ("EnableNotification", *arguments)

    async def Peek(self, call: ComCall, *arguments: object) -> Message:
        return await self.waiting


def a_call(iid: UUID = NEWEST) -> ComCall:
    return ComCall(cast(Any, None), iid, WaitingCalls(1))


def number(name: str, interface: str = "IMSMQQueue4") -> int:
    described = describe(interface)
    return next(each.dispid for each in described.members if each.name == name)


def invoke(
    target: Automation,
    name: str | int,
    flags: int,
    *arguments: Variant,
    named: tuple[int, ...] = (),
    references: dict[int, Variant] | None = None,
    riid: UUID = NULL,
    iid: UUID = NEWEST,
) -> Outcome:
    """Invoke with arguments as they are on the wire: named ones first, the others reversed."""
    dispid = number(name, target.INTERFACES[0]) if isinstance(name, str) else name
    parameters = DISPPARAMS(
        rgvarg=list(arguments) or None,
        rgdispidNamedArgs=list(named) or None,
        cArgs=len(arguments),
        cNamedArgs=len(named),
    )
    given = references or {}
    outcome = target.Invoke(
        a_call(iid), dispid, riid, 0, flags, parameters, len(given), [*given], [*given.values()]
    )
    if not isinstance(outcome, Outcome):
        return start(outcome).result()
    return outcome


def test_names_are_found_whatever_their_case() -> None:
    outcome = Queue().GetIDsOfNames(a_call(), NULL, ["rECEIVE", "wantbody", "TRANSACTION"], 3, 0)
    assert outcome == Outcome(HResult.MQ_OK, ([number("Receive"), 2, 0],))


def test_an_unknown_name_has_no_number_and_the_others_have_theirs() -> None:
    outcome = Queue().GetIDsOfNames(a_call(), NULL, ["Receive", "Nonsense", "WantBody", None], 4, 0)
    assert outcome.status == HResult.DISP_E_UNKNOWNNAME
    assert outcome.values == ([number("Receive"), -1, 2, -1],)
    unknown = Queue().GetIDsOfNames(a_call(), NULL, ["Nothing", "WantBody"], 2, 0)
    assert unknown.values == ([-1, -1],)


def test_the_interface_of_names_must_be_null() -> None:
    outcome = Queue().GetIDsOfNames(a_call(), NEWEST, ["Receive"], 1, 0)
    assert outcome == Outcome(HResult.DISP_E_UNKNOWNINTERFACE, ([-1],))
    refused = invoke(Queue(), "Access", DISPATCH_PROPERTYGET, riid=NEWEST)
    assert refused.status == HResult.DISP_E_UNKNOWNINTERFACE


def test_there_is_one_description_and_it_is_that_of_the_newest_interface() -> None:
    queue = Queue()
    assert queue.GetTypeInfoCount(a_call()) == 1
    attributes, _ = queue.GetTypeInfo(a_call(), 0, 0).GetTypeAttr(a_call())
    assert attributes.guid == NEWEST
    with pytest.raises(MQError, match="DISP_E_BADINDEX"):
        queue.GetTypeInfo(a_call(), 1, 0)


@pytest.mark.parametrize("flags", [DISPATCH_PROPERTYGET, DISPATCH_PROPERTYGET | DISPATCH_METHOD])
def test_a_property_is_read(flags: int) -> None:
    outcome = invoke(Queue(), "Access", flags)
    assert outcome.status == 0
    assert outcome.values[0] == Variant(VT_I4, 7)


def test_a_property_is_no_method_and_a_number_must_be_known() -> None:
    assert invoke(Queue(), "Access", DISPATCH_METHOD).status == HResult.DISP_E_MEMBERNOTFOUND
    assert invoke(Queue(), 999, DISPATCH_METHOD).status == HResult.DISP_E_MEMBERNOTFOUND
    written = invoke(
        Queue(), "Access", DISPATCH_PROPERTYPUT, Variant(VT_I4, 1), named=(DISPID_PROPERTYPUT,)
    )
    assert written.status == HResult.DISP_E_MEMBERNOTFOUND


@pytest.mark.parametrize("flags", [0, 5, 6, 9, 10, 15])
def test_what_is_asked_for_must_be_one_thing(flags: int) -> None:
    assert invoke(Queue(), "Access", flags).status == HResult.E_INVALIDARG


def test_arguments_by_position_are_reversed_and_missing_ones_are_marked() -> None:
    queue = Queue()
    timeout, transaction = Variant(VT_I4, 250), Variant(VT_I4, 0)
    outcome = invoke(queue, "Receive", DISPATCH_METHOD, timeout, MISSING, MISSING, transaction)
    assert outcome.status == 0
    assert queue.called == ("Receive", transaction, MISSING, MISSING, timeout, MISSING)
    result = outcome.values[0]
    assert isinstance(result, Variant)
    assert result.vt == VT_DISPATCH
    assert isinstance(result.value, Message)


def test_named_arguments_come_first_in_any_order() -> None:
    queue = Queue()
    body, timeout, transaction = Variant(VT_BOOL, True), Variant(VT_I4, 9), Variant(VT_I4, 3)
    invoke(queue, "Receive", DISPATCH_METHOD, timeout, body, transaction, named=(3, 2))
    assert queue.called == ("Receive", transaction, MISSING, body, timeout, MISSING)


@pytest.mark.parametrize(("named", "at_fault"), [((5,), 0), ((2, 0), 1), ((1, 1), 1), ((-1,), 0)])
def test_a_name_that_no_parameter_has_or_that_was_given_is_not_found(
    named: tuple[int, ...], at_fault: int
) -> None:
    values = [Variant(VT_I4, place) for place in range(len(named) + 1)]
    outcome = invoke(Queue(), "Receive", DISPATCH_METHOD, *values, named=named)
    assert outcome.status == HResult.DISP_E_PARAMNOTFOUND
    assert outcome.values[2] == at_fault


def test_too_many_arguments_are_refused() -> None:
    many = [Variant(VT_I4, 1)] * 1000
    for count in (6, 1000):
        outcome = invoke(Queue(), "Receive", DISPATCH_METHOD, *many[:count])
        assert outcome.status == HResult.DISP_E_BADPARAMCOUNT
    extra = invoke(Queue(), "Access", DISPATCH_PROPERTYGET, Variant(VT_I4, 1))
    assert extra.status == HResult.DISP_E_BADPARAMCOUNT


def test_an_argument_that_is_needed_is_missing_by_count_or_by_mark() -> None:
    too_few = invoke(Queue(), "EnableNotification", DISPATCH_METHOD)
    assert too_few.status == HResult.DISP_E_BADPARAMCOUNT
    marked = invoke(Queue(), "EnableNotification", DISPATCH_METHOD, MISSING)
    assert (marked.status, marked.values[2]) == (HResult.DISP_E_PARAMNOTOPTIONAL, 0)
    named = invoke(Queue(), "EnableNotification", DISPATCH_METHOD, Variant(VT_I4, 1), named=(1,))
    assert named.status == HResult.DISP_E_PARAMNOTOPTIONAL


@pytest.mark.parametrize(
    "value",
    [Variant(VT_I2, 5), Variant(VT_BSTR, " 5 "), Variant(VT_R8, 4.6), Variant(VT_BYREF | VT_I4, 5)],
)
def test_a_value_becomes_the_type_of_the_property(value: Variant) -> None:
    message = Message()
    outcome = invoke(message, "Priority", DISPATCH_PROPERTYPUT, value, named=(DISPID_PROPERTYPUT,))
    assert outcome.status == 0
    assert message.put == [5]
    assert type(message.put[0]) is int


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (Variant(VT_BSTR, "high"), HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_R8, 3e9), HResult.DISP_E_OVERFLOW),
        (Variant(0x77, None), HResult.DISP_E_BADVARTYPE),
        (Variant(VT_BYREF | VT_VARIANT, None), HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_DISPATCH, None), HResult.DISP_E_TYPEMISMATCH),
    ],
)
def test_a_value_that_cannot_become_the_type_is_refused(value: Variant, status: HResult) -> None:
    message = Message()
    outcome = invoke(message, "Priority", DISPATCH_PROPERTYPUT, value, named=(DISPID_PROPERTYPUT,))
    assert (outcome.status, outcome.values[2]) == (status, 0)
    assert message.put == []


@pytest.mark.parametrize(
    "flags", [DISPATCH_PROPERTYPUT, DISPATCH_PROPERTYPUTREF, 12], ids=["put", "putref", "both"]
)
def test_an_object_is_assigned_either_way(flags: int) -> None:
    message, info = Message(), QueueInfo()
    outcome = invoke(
        message,
        "ResponseQueueInfo",
        flags,
        Variant(VT_DISPATCH, info),
        named=(DISPID_PROPERTYPUT,),
    )
    assert outcome.status == 0
    assert message.put == [info]


class QueueInfo(Automation):
    INTERFACES = ("IMSMQQueueInfo4", "IMSMQQueueInfo3", "IMSMQQueueInfo2", "IMSMQQueueInfo")


def test_an_object_of_another_class_is_refused() -> None:
    outcome = invoke(
        Message(),
        "ResponseQueueInfo",
        DISPATCH_PROPERTYPUTREF,
        Variant(VT_DISPATCH, Queue()),
        named=(DISPID_PROPERTYPUT,),
    )
    assert outcome.status == HResult.DISP_E_TYPEMISMATCH


def test_references_take_the_places_that_are_empty_for_them() -> None:
    queue = Queue()
    transaction = Variant(VT_BYREF | VT_VARIANT, Variant(VT_I4, 3))
    outcome = invoke(
        queue,
        "Receive",
        DISPATCH_METHOD,
        Variant(VT_I4, 10),
        MISSING,
        MISSING,
        EMPTY,
        references={3: transaction},
    )
    assert outcome.status == 0
    assert queue.called[1] == Variant(VT_I4, 3)
    assert outcome.values[3] == [transaction]


@pytest.mark.parametrize(
    ("references", "status"),
    [
        ({4: Variant(VT_BYREF | VT_I4, 1)}, HResult.E_INVALIDARG),
        ({0: Variant(VT_BYREF | VT_I4, 1)}, HResult.E_INVALIDARG),
        ({1: Variant(VT_I4, 1)}, HResult.DISP_E_TYPEMISMATCH),
        ({1: Variant(VT_BYREF | VT_I4, None)}, HResult.DISP_E_TYPEMISMATCH),
        ({1: Variant(VT_BYREF | VT_VARIANT, EMPTY)}, HResult.MQ_OK),
    ],
    ids=["no such argument", "a value is there", "no reference", "to nothing", "to empty"],
)
def test_references_that_do_not_fit_are_refused(
    references: dict[int, Variant], status: HResult
) -> None:
    outcome = invoke(
        Queue(), "Receive", DISPATCH_METHOD, Variant(VT_I4, 1), EMPTY, references=references
    )
    assert outcome.status == status
    assert outcome.values[3] == [*references.values()]


def test_a_failure_of_the_member_is_an_exception() -> None:
    outcome = invoke(Queue(), "IsOpen", DISPATCH_PROPERTYGET)
    assert outcome.status == HResult.DISP_E_EXCEPTION
    result, exception, argument, _ = cast(Any, outcome.values)
    assert (result, argument) == (EMPTY, 0)
    assert (exception.wCode, exception.scode) == (0, HResult.MQ_ERROR_QUEUE_DELETED)
    assert exception.bstrSource == "Queue"
    assert exception.bstrDescription == HResult.MQ_ERROR_QUEUE_DELETED.meaning


def test_an_ntstatus_is_told_as_an_hresult() -> None:
    _, exception, *_ = cast(Any, invoke(Queue(), "Close", DISPATCH_METHOD).values)
    assert exception.scode == 0xD0000022


def test_a_client_that_wants_no_result_and_no_exception_gets_none() -> None:
    flags = DISPATCH_PROPERTYGET | DISPATCH_zeroVarResult
    assert invoke(Queue(), "Access", flags).values[0] == EMPTY
    flags = DISPATCH_PROPERTYGET | DISPATCH_zeroExcepInfo
    outcome = invoke(Queue(), "IsOpen", flags)
    assert outcome.status == HResult.DISP_E_EXCEPTION
    assert cast(Any, outcome.values[1]).scode == 0


def test_a_member_that_waits_answers_later() -> None:
    queue = Queue()
    parameters = DISPPARAMS(rgvarg=None, rgdispidNamedArgs=None, cArgs=0, cNamedArgs=0)
    waiting = queue.Invoke(a_call(), number("Peek"), NULL, 0, 1, parameters, 0, None, None)
    assert not isinstance(waiting, Outcome)
    outcome = start(waiting)
    assert not outcome.done
    message = Message()
    queue.waiting.succeed(message)
    assert outcome.result().values[0] == Variant(VT_DISPATCH, message)


def test_a_member_that_fails_later_is_an_exception_too() -> None:
    queue = Queue()
    queue.waiting.fail(MQError(HResult.MQ_ERROR_IO_TIMEOUT))
    outcome = invoke(queue, "Peek", DISPATCH_METHOD)
    assert outcome.status == HResult.DISP_E_EXCEPTION
    assert cast(Any, outcome.values[1]).scode == HResult.MQ_ERROR_IO_TIMEOUT


def test_an_older_interface_has_its_own_names_for_the_same_methods() -> None:
    queue = Queue()
    found = queue.GetIDsOfNames(a_call(OLDEST), NULL, ["Receive"], 1, 0)
    assert found.status == 0
    ((dispid,),) = cast(Any, found.values)
    outcome = invoke(queue, dispid, DISPATCH_METHOD, iid=OLDEST)
    assert outcome.status == 0
    assert queue.called == ("Receive_v1", MISSING, MISSING, MISSING, MISSING)
