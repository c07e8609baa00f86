"""Objects called by names, as scripts do ([MS-OAUT] 3.1), against the methods of their vtables."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import EMPTY, MISSING, Variant
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import (
    DISPATCH_METHOD,
    DISPATCH_PROPERTYGET,
    DISPATCH_PROPERTYPUT,
    DISPATCH_PROPERTYPUTREF,
    DISPID_PROPERTYPUT,
    INVOKEKIND,
    VT_BOOL,
    VT_BSTR,
    VT_BYREF,
    VT_DISPATCH,
    VT_I2,
    VT_R8,
    VT_VARIANT,
    DISPATCH_zeroArgErr,
)
from rpcqm.mqac.coclasses import MSMQ_MESSAGE, MSMQ_QUEUE_INFO
from tests.support.dcom.com_objects import QUEUE, Objects, number, served_objects, text
from tests.support.dcom.dcom_client import DcomClient, Reference

NULL = UUID(int=0)


@pytest.fixture(scope="module")
def objects() -> Iterator[Objects]:
    with served_objects() as found:
        yield found


class Script:
    """An object as a script has it."""

    def __init__(self, com: DcomClient, reference: Reference) -> None:
        self.com = com
        self.reference = reference

    @classmethod
    def create(cls, com: DcomClient, clsid: UUID) -> "Script":
        return cls(com, com.create(clsid, "IDispatch"))

    def numbers(self, *names: str) -> list[int]:
        found: list[int] = self.com.call(
            self.reference, "GetIDsOfNames", NULL, list(names), len(names), 0
        )
        return found

    def invoke(
        self,
        name: str,
        flags: int,
        *arguments: Variant,
        named: tuple[int, ...] = (),
        references: dict[int, Variant] | None = None,
    ) -> Any:
        """The response of Invoke; arguments are as they are on the wire."""
        parameters = DISPPARAMS(
            rgvarg=[self._sent(each) for each in arguments] or None,
            rgdispidNamedArgs=list(named) or None,
            cArgs=len(arguments),
            cNamedArgs=len(named),
        )
        given = references or {}
        return self.com.response(
            self.reference,
            "Invoke",
            self.numbers(name)[0],
            NULL,
            0x409,
            flags,
            parameters,
            len(given),
            list(given),
            list(given.values()),
        )

    @staticmethod
    def _sent(argument: Variant) -> Variant:
        if isinstance(argument.value, Reference):
            return Variant(argument.vt, argument.value.pack())
        return argument

    def get(self, name: str) -> Variant:
        response = self.invoke(name, DISPATCH_METHOD | DISPATCH_PROPERTYGET)
        assert response.result == 0
        found: Variant = response.pVarResult
        return found

    def put(self, name: str, value: Variant, flags: int = DISPATCH_PROPERTYPUT) -> None:
        response = self.invoke(name, flags, value, named=(DISPID_PROPERTYPUT,))
        assert response.result == 0

    def do(self, name: str, *arguments: Variant) -> Variant:
        """Call a method with arguments in their order."""
        response = self.invoke(name, DISPATCH_METHOD, *reversed(arguments))
        assert response.result == 0, hex(response.pExcepInfo.scode)
        found: Variant = response.pVarResult
        return found

    def object(self, found: Variant) -> "Script":
        assert found.vt == VT_DISPATCH
        assert isinstance(found.value, bytes)
        return Script(self.com, self.com.reference(found.value))


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda syntax: syntax.name)
def test_a_script_sends_and_receives(objects: Objects, syntax: TransferSyntax) -> None:
    """Late-bound programs give numbers as they come: I2 for I4, text and truth for numbers."""
    with DcomClient(objects.machine.endpoint("epm"), syntax=syntax) as com:
        info = Script.create(com, MSMQ_QUEUE_INFO)
        info.put("pathNAME", text(QUEUE))
        sending = info.object(info.do("Open", Variant(VT_I2, 2), Variant(VT_BSTR, "0")))
        message = Script.create(com, MSMQ_MESSAGE)
        message.put("Label", text("by name"))
        message.put("Body", text("späte Bindung"))
        message.put("Priority", Variant(VT_R8, 5.4))
        message.do("send", Variant(VT_DISPATCH, sending.reference))
        reading = info.object(info.do("Open", number(1), number(0)))
        received = reading.object(reading.do("Receive", MISSING, MISSING, MISSING, number(0)))
        assert received.get("Label") == text("by name")
        assert received.get("Body") == text("späte Bindung")
        assert received.get("Priority") == number(5)
        assert reading.get("IsOpen").value
        reading.do("Close")
        assert not reading.get("IsOpen").value


def test_a_script_reads_what_the_vtable_reads(objects: Objects) -> None:
    """Every property of a new message, by either way: the value, or the code of the refusal."""
    message = objects.message()
    script = Script(objects.com, objects.com.query_interface(message, "IDispatch"))
    info = objects.com.call(script.reference, "GetTypeInfo", 0, 0)
    attributes, _ = objects.com.call(info, "GetTypeAttr")
    compared = 0
    for index in range(attributes.cFuncs):
        function, _ = objects.com.call(info, "GetFuncDesc", index)
        if function.invkind != INVOKEKIND.INVOKE_PROPERTYGET:
            continue
        ((name,), _) = objects.com.call(info, "GetNames", function.memid, 5)
        by_name = script.invoke(name, DISPATCH_PROPERTYGET)
        direct = objects.com.response(message, f"get_{name}")
        assert by_name.result in (direct.result, HResult.DISP_E_EXCEPTION)
        assert by_name.pExcepInfo.scode == direct.result
        if direct.result == 0:
            (field,) = set(direct.__slots__) - {"orpcthat", "result"}
            value = getattr(direct, field)
            expected = value.value if isinstance(value, Variant) else value
            if not isinstance(expected, bytes):
                assert by_name.pVarResult.value == expected
        compared += 1
    assert compared == 54


def test_an_object_is_assigned_by_value_and_by_reference(objects: Objects) -> None:
    message = Script.create(objects.com, MSMQ_MESSAGE)
    info = objects.queue_info()
    for flags in (DISPATCH_PROPERTYPUT, DISPATCH_PROPERTYPUTREF):
        message.put("ResponseQueueInfo", Variant(VT_DISPATCH, info), flags)
        found = message.object(message.get("ResponseQueueInfo"))
        assert found.get("PathName").value
    wrong = message.invoke(
        "ResponseQueueInfo",
        DISPATCH_PROPERTYPUTREF,
        Variant(VT_DISPATCH, message.reference),
        named=(DISPID_PROPERTYPUT,),
    )
    assert wrong.result == HResult.DISP_E_TYPEMISMATCH


def test_arguments_are_named_missing_and_referred_to(objects: Objects) -> None:
    opened = objects.open(QueueAccessType.RECEIVE_ACCESS)
    queue = Script(objects.com, objects.com.query_interface(opened, "IDispatch"))
    receive, timeout, body = queue.numbers("receive", "ReceiveTimeout", "WANTBODY")
    assert receive > 0
    empty = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    named = queue.invoke(
        "Receive", DISPATCH_METHOD, number(0), Variant(VT_BOOL, True), named=(timeout, body)
    )
    assert (named.result, named.pExcepInfo.scode) == (HResult.DISP_E_EXCEPTION, empty)
    referred = Variant(VT_BYREF | VT_VARIANT, number(0))
    response = queue.invoke(
        "Receive", DISPATCH_METHOD, EMPTY, MISSING, MISSING, MISSING, references={0: referred}
    )
    assert (response.result, response.pExcepInfo.scode) == (HResult.DISP_E_EXCEPTION, empty)
    assert response.rgVarRef == [referred]


def test_what_a_script_gets_wrong_is_told_and_others_go_on(objects: Objects) -> None:
    info = Script.create(objects.com, MSMQ_QUEUE_INFO)

    def status(*arguments: Any, **named: Any) -> tuple[int, int]:
        response = info.invoke(*arguments, **named)
        return response.result, response.pArgErr

    many = [number(1)] * 1000
    assert status("Open", DISPATCH_METHOD, *many) == (HResult.DISP_E_BADPARAMCOUNT, 0)
    assert status("Open", DISPATCH_METHOD, number(1)) == (HResult.DISP_E_BADPARAMCOUNT, 0)
    assert status("Open", DISPATCH_METHOD, text("x"), number(1)) == (
        HResult.DISP_E_TYPEMISMATCH,
        0,
    )
    assert status("Open", DISPATCH_METHOD, number(0), Variant(VT_R8, 1e10)) == (
        HResult.DISP_E_OVERFLOW,
        1,
    )
    assert status("Open", DISPATCH_METHOD, MISSING, number(1)) == (
        HResult.DISP_E_PARAMNOTOPTIONAL,
        0,
    )
    assert status("Open", DISPATCH_METHOD, number(0), number(1), named=(0, 9)) == (
        HResult.DISP_E_PARAMNOTFOUND,
        1,
    )
    assert status("Open", DISPATCH_PROPERTYGET)[0] == HResult.DISP_E_MEMBERNOTFOUND
    nothing = Variant(VT_BYREF | VT_VARIANT, EMPTY)
    assert status("Open", DISPATCH_METHOD, EMPTY, number(1), references={5: nothing}) == (
        HResult.E_INVALIDARG,
        0,
    )
    response = objects.com.response(info.reference, "GetIDsOfNames", NULL, ["Open", "nobody"], 2, 0)
    assert response.result == HResult.DISP_E_UNKNOWNNAME
    assert response.rgDispId == [info.numbers("Open")[0], -1]
    response = objects.com.response(info.reference, "GetTypeInfo", 1, 0)
    assert response.result == HResult.DISP_E_BADINDEX
    info.put("PathName", text(QUEUE))
    assert str(info.get("PathName").value).endswith(QUEUE[1:])


def test_a_script_that_does_not_ask_which_argument_is_wrong_is_told_0(objects: Objects) -> None:
    info = Script.create(objects.com, MSMQ_QUEUE_INFO)
    wrong = number(0), Variant(VT_R8, 1e10)
    told = info.invoke("Open", DISPATCH_METHOD, *wrong)
    assert (told.result, told.pArgErr) == (HResult.DISP_E_OVERFLOW, 1)
    untold = info.invoke("Open", DISPATCH_METHOD | DISPATCH_zeroArgErr, *wrong)
    assert (untold.result, untold.pArgErr) == (HResult.DISP_E_OVERFLOW, 0)
