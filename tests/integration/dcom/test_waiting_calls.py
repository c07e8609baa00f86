"""A caller whose calls wait, as many as may, still does everything that does not wait."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.automation.values import EMPTY, MISSING
from rpcqm.codec.types.dcom import SimplePingRequest
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import DISPATCH_METHOD
from tests.support.dcom.com_objects import Objects, number, served_objects
from tests.support.dcom.dcom_client import ENABLED, ComError, Reference

MOST = 3
CONFIGURATION = ENABLED.replace("true", f"true\nwaiting_calls_per_caller = {MOST}", 1)
NULL = UUID(int=0)
BY_VTABLE = ("Receive", "ReceiveCurrent", "Peek", "PeekCurrent", "PeekNext")
INFINITE = number(-1)


@pytest.fixture(scope="module")
def served() -> Iterator[Objects]:
    with served_objects(CONFIGURATION) as objects:
        yield objects


def begin(objects: Objects, queue: Reference) -> "Future[Any]":
    return objects.com.start(queue, "Receive", MISSING, MISSING, MISSING, INFINITE, MISSING)


def filled(objects: Objects) -> tuple[Reference, "list[Future[Any]]"]:
    """An open queue in which as many calls wait as may."""
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS)
    waits = [begin(objects, queue) for _ in range(MOST)]
    objects.get(queue, "IsOpen2")
    assert not any(each.done() for each in waits)
    return queue, waits


def ended(waits: "list[Future[Any]]") -> None:
    for each in waits:
        with pytest.raises(ComError) as error:
            each.result(30)
        assert error.value.status is HResult.MQ_ERROR_OPERATION_CANCELLED


@pytest.mark.bound("dcom.waiting_calls_per_caller")
def test_what_does_not_wait_gets_through_and_ends_the_waits(objects: Objects) -> None:
    queue, waits = filled(objects)
    with pytest.raises(RpcFault) as error:
        begin(objects, queue).result(30)
    assert error.value.status is FaultStatus.nca_s_server_too_busy
    made = objects.message()
    assert objects.get(made, "Priority") == 3
    assert objects.com.release(made) == 0
    ping = SimplePingRequest(pSetId=1)
    assert objects.com.ask("dcom.IObjectExporter", "SimplePing", ping).result == 1912
    objects.com.call(queue, "Close")
    ended(waits)
    queue, waits = filled(objects)
    objects.com.call(queue, "Close")
    ended(waits)


@pytest.mark.parametrize("name", BY_VTABLE)
def test_every_method_that_waits_is_counted(objects: Objects, name: str) -> None:
    queue, waits = filled(objects)
    receives = name.startswith("Receive")
    for operation in (name, f"{name}_v1"):
        arguments = [MISSING] * (2 + receives) + [number(0)]
        arguments += [] if operation.endswith("_v1") else [MISSING]
        with pytest.raises(RpcFault) as error:
            objects.com.call(queue, operation, *arguments)
        assert error.value.status is FaultStatus.nca_s_server_too_busy, operation
    objects.com.call(queue, "Close")
    ended(waits)


def invoke(objects: Objects, script: Reference, name: str, *arguments: Any) -> "Future[Any]":
    (dispid,) = objects.com.call(script, "GetIDsOfNames", NULL, [name], 1, 0)
    parameters = DISPPARAMS(
        rgvarg=list(reversed(arguments)) or None,
        rgdispidNamedArgs=None,
        cArgs=len(arguments),
        cNamedArgs=0,
    )
    given: tuple[object, ...] = (dispid, NULL, 0, DISPATCH_METHOD, parameters, 0, [], [])
    return objects.com.start(script, "Invoke", *given)


def test_scripts_wait_as_often_and_close_as_well(objects: Objects) -> None:
    opened = objects.open(QueueAccessType.RECEIVE_ACCESS)
    script = objects.com.query_interface(opened, "IDispatch")
    arguments = (MISSING, MISSING, MISSING, INFINITE)
    waits = [invoke(objects, script, "Receive", *arguments) for _ in range(MOST)]
    assert objects.get(opened, "IsOpen2")
    with pytest.raises(RpcFault) as error:
        invoke(objects, script, "PeekCurrent", MISSING, MISSING, number(0)).result(30)
    assert error.value.status is FaultStatus.nca_s_server_too_busy
    assert invoke(objects, script, "Close").result(30)[0] == EMPTY
    for each in waits:
        with pytest.raises(ComError) as failed:
            each.result(30)
        assert failed.value.status is HResult.DISP_E_EXCEPTION
