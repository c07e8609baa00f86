"""MSMQManagement by itself: what its state decides ([MC-MQAC] 3.3 to 3.5)."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.mqac.application import MSMQApplication
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.management import MSMQManagement
from rpcqm.service import interfaces
from tests.support.dcom.fake_com import call_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

T = TypeVar("T")
CALL = call_of(ADMINISTRATOR)
HERE = r"DIRECT=OS:.\private$\orders"
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"


@pytest.fixture
def machine(qm: RunningQueueManager) -> Machine:
    return interfaces.machine(qm.engine)


def text(value: str) -> Variant:
    return Variant(VARENUM.VT_BSTR, value)


def now(coroutine: Coroutine[Completion[Any], None, T]) -> T:
    """The outcome of what waits for nobody."""
    return start(coroutine).result()


def managed(machine: Machine, name: str) -> MSMQManagement:
    made = MSMQManagement(machine)
    now(made.Init(CALL, None, None, text(name)))
    return made


def status(
    function: Callable[..., Coroutine[Completion[Any], None, object]], *arguments: object
) -> HResult:
    with pytest.raises(MQError) as refused:
        now(function(*arguments))
    return HResult(refused.value.status)


def test_an_object_has_the_interface_that_its_queue_has(
    qm: RunningQueueManager, machine: Machine
) -> None:
    qm.create()
    qm.open(HERE)
    qm.open(ELSEWHERE, QueueAccessType.SEND_ACCESS)
    assert MSMQManagement(machine).interfaces == ("IMSMQManagement",)
    here, elsewhere = managed(machine, HERE), managed(machine, ELSEWHERE)
    assert here.interfaces == ("IMSMQQueueManagement", "IMSMQManagement")
    assert elsewhere.interfaces == ("IMSMQOutgoingQueueManagement", "IMSMQManagement")
    assert (now(here.get_IsLocal(CALL)), now(elsewhere.get_IsLocal(CALL))) == (True, False)
    assert (now(here.get_QueueType(CALL)), now(here.get_TransactionalStatus(CALL))) == (1, 1)
    qm.done(start(elsewhere.Pause(CALL)))
    assert now(elsewhere.get_State(CALL)) == 4
    assert now(elsewhere.EodGetSendInfo(CALL)).get_Count(CALL) == 11
    assert now(here.EodGetReceiveInfo(CALL)).vt == VARENUM.VT_ARRAY | VARENUM.VT_VARIANT


def test_what_is_not_initialized_or_not_active_tells_nothing(
    qm: RunningQueueManager, machine: Machine
) -> None:
    qm.create()
    made = MSMQManagement(machine)
    assert status(made.get_MessageCount, CALL) is HResult.MQ_ERROR_UNINITIALIZED_OBJECT
    assert status(made.Init, CALL, None, None, text(HERE)) is HResult.MQ_ERROR_QUEUE_NOT_ACTIVE
    assert status(made.Init, CALL, None, None, None) is HResult.MQ_ERROR_INVALID_PARAMETER
    alice = call_of(ALICE)
    assert status(made.Init, alice, None, None, text(HERE)) is HResult.MQ_ERROR_ACCESS_DENIED


class Teller:
    """Another queue manager, which tells one value whatever it is asked."""

    def __init__(self) -> None:
        self.value: object = "LOCAL"

    def told(self, machine: str, name: FormatName | None, identifier: int) -> Completion[object]:
        return completed(self.value)

    def ordered(self, machine: str, name: FormatName | None, action: str) -> Completion[None]:
        return completed(None)


NONSENSE = ("", "local", "ELSEWHERE", "x" * 100_000, None, 7, b"LOCAL", ["LOCAL"])


@pytest.mark.parametrize("told", NONSENSE, ids=range(len(NONSENSE)))
def test_what_another_queue_manager_tells_must_mean_something(
    machine: Machine, told: object
) -> None:
    """Nothing that is no value of the text passes for one that is (G292)."""
    machine.manage_elsewhere = teller = Teller()
    made, other = MSMQManagement(machine), text("other")
    name = text(r"DIRECT=OS:other\private$\q")
    invalid = HResult.MQ_ERROR_INVALID_PARAMETER
    teller.value = told
    assert status(made.Init, CALL, other, None, name) is invalid
    teller.value = "LOCAL"
    now(made.Init(CALL, other, None, name))
    assert now(made.get_IsLocal(CALL))
    application = MSMQApplication(machine)
    application.put_Machine(CALL, "other")
    teller.value = told
    for ask in (made.get_IsLocal, made.get_QueueType, application.get_IsConnected):
        assert status(ask, CALL) is invalid, ask


WRONG = ("12", b"1", 2**80, -(2**80), 1.5, ["x"])


@pytest.mark.parametrize("told", WRONG, ids=range(len(WRONG)))
def test_a_number_that_another_queue_manager_tells_must_be_one(
    machine: Machine, told: object
) -> None:
    machine.manage_elsewhere = teller = Teller()
    made = MSMQManagement(machine)
    now(made.Init(CALL, text("other"), None, text(r"DIRECT=OS:other\private$\q")))
    application = MSMQApplication(machine)
    application.put_Machine(CALL, "other")
    teller.value = told
    invalid = HResult.MQ_ERROR_INVALID_PARAMETER
    asks = (made.get_MessageCount, made.get_BytesInQueue, made.EodGetReceiveInfo)
    for ask in (*asks, made.EodGetSendInfo, application.get_BytesInAllQueues):
        assert status(ask, CALL) is invalid, ask
    if not isinstance(told, list | bytes):
        return
    teller.value = 7
    for ask in (made.get_NextHops, application.ActiveQueues, application.get_PrivateQueues):
        assert status(ask, CALL) is invalid, ask
