"""impacket's own IDispatch and ITypeInfo against objects: late binding by a client not ours."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dtypes import NULL

from rpcqm.base.errors import HResult
from rpcqm.codec.types.oautvalues import DISPID_PROPERTYPUT, VT_BSTR, VT_I4
from rpcqm.mqac.coclasses import MSMQ_MESSAGE, MSMQ_QUEUE_INFO
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.com_objects import EVERYBODY
from tests.support.dcom.dcom_client import served
from tests.support.dcom.dcom_impacket import connected, create

ENGLISH = 0x409


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served() as running:
        running.run("queue", "create", "orders", "--sddl", EVERYBODY)
        yield running


@pytest.fixture
def connection(server: PrivateQueueManager) -> Iterator[Any]:
    with connected(server.endpoint("epm")[1]) as found:
        yield found


def dispatch(reference: Any) -> Any:
    return oaut.IDispatch(reference)


def made(connection: Any, clsid: UUID) -> Any:
    return dispatch(create(connection, clsid, "IDispatch"))


def variant(vt: int, value: object) -> Any:
    found = oaut.VARIANT(None, False)
    found["clSize"] = 5
    found["vt"] = vt
    found["_varUnion"]["tag"] = vt
    if vt == VT_BSTR:
        found["_varUnion"]["bstrVal"]["asData"] = value
    else:
        found["_varUnion"]["lVal"] = value
    return found


def parameters(*arguments: Any, put: bool = False) -> Any:
    found = oaut.DISPPARAMS(None, False)
    found["cArgs"], found["cNamedArgs"] = len(arguments), int(put)
    if arguments:
        for argument in arguments:
            found["rgvarg"].append(argument)
    else:
        found["rgvarg"] = NULL
    if put:
        found["rgdispidNamedArgs"].append(DISPID_PROPERTYPUT & 0xFFFFFFFF)
    else:
        found["rgdispidNamedArgs"] = NULL
    return found


def invoke(target: Any, name: str, flags: int, *arguments: Any, put: bool = False) -> Any:
    (number,) = target.GetIDsOfNames((name,))
    return target.Invoke(number, ENGLISH, flags, parameters(*arguments, put=put), 0, [], [])


def object_of(target: Any, response: Any) -> Any:
    """The object that a VARIANT holds, as impacket's examples find it."""
    octets = b"".join(response["pVarResult"]["_varUnion"]["pdispVal"]["abData"])
    reference = dcomrt.OBJREF_STANDARD(octets)
    return dispatch(
        dcomrt.INTERFACE(
            target.get_cinstance(),
            None,
            target.get_ipidRemUnknown(),
            reference["std"]["ipid"],
            oxid=reference["std"]["oxid"],
            oid=reference["std"]["oid"],
            target=target.get_target(),
        )
    )


def test_a_property_is_written_and_read_by_its_name(connection: Any) -> None:
    message = made(connection, MSMQ_MESSAGE)
    invoke(message, "label", oaut.DISPATCH_PROPERTYPUT, variant(VT_BSTR, "späte Bindung"), put=True)
    found = invoke(message, "LABEL", oaut.DISPATCH_PROPERTYGET)
    assert found["pVarResult"]["vt"] == VT_BSTR
    assert found["pVarResult"]["_varUnion"]["bstrVal"]["asData"] == "späte Bindung"


def test_a_method_opens_a_queue_which_is_then_asked(connection: Any) -> None:
    info = made(connection, MSMQ_QUEUE_INFO)
    path = variant(VT_BSTR, ".\\private$\\orders")
    invoke(info, "PathName", oaut.DISPATCH_PROPERTYPUT, path, put=True)
    share, access = variant(VT_I4, 0), variant(VT_I4, 2)
    opened = invoke(info, "Open", oaut.DISPATCH_METHOD, share, access)
    queue = object_of(info, opened)
    assert (
        invoke(queue, "Access", oaut.DISPATCH_PROPERTYGET)["pVarResult"]["_varUnion"]["lVal"] == 2
    )


def test_a_failure_is_an_exception_with_its_code(connection: Any) -> None:
    """impacket's response lacks rgVarRef, so that the HRESULT itself is not found by it."""
    info = made(connection, MSMQ_QUEUE_INFO)
    path = variant(VT_BSTR, ".\\private$\\nowhere")
    invoke(info, "PathName", oaut.DISPATCH_PROPERTYPUT, path, put=True)
    with pytest.raises(oaut.DCERPCSessionError) as failed:
        invoke(info, "Open", oaut.DISPATCH_METHOD, variant(VT_I4, 0), variant(VT_I4, 2))
    exception = failed.value.get_packet()["pExcepInfo"]
    assert exception["scode"] & 0xFFFFFFFF == HResult.MQ_ERROR_QUEUE_NOT_FOUND
    assert exception["bstrSource"]["asData"] == "MSMQQueueInfo"


def test_an_unknown_name_is_told(connection: Any) -> None:
    with pytest.raises(oaut.DCERPCSessionError) as failed:
        made(connection, MSMQ_MESSAGE).GetIDsOfNames(("Nonsense",))
    assert failed.value.get_error_code() == HResult.DISP_E_UNKNOWNNAME


def test_type_information_is_read(connection: Any) -> None:
    message = made(connection, MSMQ_MESSAGE)
    info = oaut.ITypeInfo(message.GetTypeInfo())
    attributes = info.GetTypeAttr()["ppTypeAttr"]
    assert attributes["cFuncs"] == 98
