"""MSMQApplication, MSMQQuery and MSMQQueueInfos by themselves ([MC-MQAC] 3.2, 3.13, 3.14)."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.config.directory import DirectoryFile
from rpcqm.dcom.com_object import ComCall, Outcome
from rpcqm.mqac.application import MSMQApplication
from rpcqm.mqac.arguments import octets_variant
from rpcqm.mqac.certificates import AT_MOST
from rpcqm.mqac.coclasses import coclasses
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.query import MSMQQuery, MSMQQueueInfos
from rpcqm.service import interfaces
from tests.support.certificates import certificate_of
from tests.support.dcom.fake_com import call_of
from tests.support.qm.directories import (
    DIRECTORY,
    OWN_QUEUE,
    ROUTER,
    THEIR_QUEUE,
    WORKSTATION,
    write_directory,
)
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, BOB

T = TypeVar("T")
CALL = call_of()
ADMIN = call_of(ADMINISTRATOR)


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    source = DirectoryFile(write_directory(tmp_path, _with_alice(DIRECTORY)))
    running = RunningQueueManager(tmp_path / "data", replace(SETTINGS, directory=source))
    yield running
    running.stop()


def _with_alice(text: str) -> str:
    return text.replace("S-1-5-21-1-2-3-1001", ALICE.sid).replace(', "MIIB"', "")


@pytest.fixture
def machine(qm: RunningQueueManager) -> Machine:
    made = interfaces.machine(qm.engine)
    coclasses(made)
    return made


def certificate() -> bytes:
    """Of a new key, so that it is like no other."""
    return certificate_of(ec.generate_private_key(ec.SECP256R1()))


def refusal(method: Callable[[], object]) -> HResult | None:
    with pytest.raises(MQError) as refused:
        method()
    status = refused.value.status
    return status if isinstance(status, HResult) else None


def text(value: str) -> Variant:
    return Variant(VARENUM.VT_BSTR, value)


def test_machines_are_found_by_name_and_by_identifier(machine: Machine) -> None:
    application = MSMQApplication(machine)
    assert application.MachineIdOfMachineName(CALL, None) == str(WORKSTATION)
    assert application.MachineIdOfMachineName(CALL, "router") == str(ROUTER)
    assert application.MachineIdOfMachineName(CALL, "router.example.org") == str(ROUTER)
    assert application.MachineNameOfMachineId(CALL, f"{{{ROUTER}}}") == "ROUTER"
    assert application.MachineNameOfMachineId(CALL, str(WORKSTATION)) == "WORKSTATION"
    unknown = HResult.MQ_ERROR_MACHINE_NOT_FOUND
    assert refusal(lambda: application.MachineIdOfMachineName(CALL, "nobody")) is unknown
    assert refusal(lambda: application.MachineNameOfMachineId(CALL, str(OWN_QUEUE))) is unknown
    assert refusal(lambda: application.MachineNameOfMachineId(CALL, "x")) is HResult.E_INVALIDARG


def test_the_version_is_of_the_local_queue_manager_only(machine: Machine) -> None:
    machine.queue_manager.queue_manager_version = "3.4.56789"
    application = MSMQApplication(machine)
    assert application.get_MSMQVersionMajor(CALL) == 4
    assert application.get_MSMQVersionMinor(CALL) == 1
    assert application.get_MSMQVersionBuild(CALL) == 0x7FFF
    assert application.get_IsDsEnabled(CALL)
    application.put_Machine(CALL, "ROUTER")
    assert application.get_Machine(CALL) == "ROUTER"
    for method in (application.get_MSMQVersionMajor, application.get_IsDsEnabled):
        assert refusal(partial(method, CALL)) is HResult.MQ_ERROR_INVALID_PARAMETER


def now(coroutine: Coroutine[Completion[Any], None, T]) -> T:
    """The outcome of what waits for nobody."""
    return start(coroutine).result()


def test_only_administrators_manage(qm: RunningQueueManager, machine: Machine) -> None:
    application = MSMQApplication(machine)
    methods: tuple[Callable[[ComCall], Coroutine[Completion[Any], None, object]], ...] = (
        application.ActiveQueues,
        application.get_PrivateQueues,
        application.get_DirectoryServiceServer,
        application.get_IsConnected,
        application.get_BytesInAllQueues,
        application.Connect,
        application.Disconnect,
        application.Tidy,
    )
    for method in methods:
        denied = refusal(partial(now, method(CALL)))
        assert denied is HResult.MQ_ERROR_ACCESS_DENIED
    assert now(application.get_IsConnected(ADMIN))
    qm.done(start(application.Disconnect(ADMIN)))
    assert not now(application.get_IsConnected(ADMIN))
    application.put_Machine(ADMIN, "ROUTER")
    elsewhere = refusal(lambda: now(application.get_IsConnected(ADMIN)))
    assert elsewhere is HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE


def found(infos: MSMQQueueInfos, identity: Identity = ALICE) -> list[str]:
    names = []
    while (info := infos.Next(call_of(identity))) is not None:
        names.append(info.get_FormatName(CALL) or "")
    return names


def looked_up(machine: Machine, **given: Variant) -> list[str]:
    names = (
        "QueueGuid ServiceTypeGuid Label CreateTime ModifyTime RelServiceType RelLabel "
        "RelCreateTime RelModifyTime MulticastAddress RelMulticastAddress"
    )
    arguments = [given.get(name) for name in names.split()]
    return found(MSMQQuery(machine).LookupQueue(CALL, *arguments))


def test_queries_find_public_queues(machine: Machine) -> None:
    own, theirs = f"PUBLIC={OWN_QUEUE}", f"PUBLIC={THEIR_QUEUE}"
    assert looked_up(machine) == [own, theirs]
    assert looked_up(machine, QueueGuid=text(f"{{{OWN_QUEUE}}}")) == [own]
    assert looked_up(machine, Label=text("reports")) == [own]
    unequal = Variant(VARENUM.VT_I4, 2)
    assert looked_up(machine, Label=text("Reports"), RelLabel=unequal) == [theirs]
    nothing = Variant(VARENUM.VT_I2, 0)
    assert looked_up(machine, Label=text("Reports"), RelLabel=nothing) == [own, theirs]
    assert looked_up(machine, MulticastAddress=text("")) == [own, theirs]
    assert looked_up(machine, MulticastAddress=text("234.1.1.1:8001")) == []
    never = Variant(
        VARENUM.VT_DATE, 25569.0
    )  # the file says nothing of times, the queue manager does
    for relation, expected in ((1, [theirs]), (4, [own]), (6, [own, theirs])):
        given = Variant(VARENUM.VT_I4, relation)
        assert looked_up(machine, CreateTime=never, RelCreateTime=given) == expected


def test_what_is_no_relation_or_no_guid_is_refused(machine: Machine) -> None:
    with pytest.raises(MQError):
        looked_up(machine, Label=text("x"), RelLabel=Variant(VARENUM.VT_I4, 7))
    with pytest.raises(MQError):
        looked_up(machine, QueueGuid=text("x"))


def test_infos_begin_again(machine: Machine) -> None:
    infos = MSMQQuery(machine).LookupQueue_v2(CALL, *[None] * 9)
    assert len(found(infos)) == 2
    assert infos.Next(CALL) is None
    infos.Reset(CALL)
    assert len(found(infos)) == 2
    blank = MSMQQueueInfos(machine)
    for method in (blank.Next, blank.Reset):
        status = refusal(partial(method, CALL))
        assert status is HResult.MQ_ERROR_UNINITIALIZED_OBJECT


def test_a_public_queue_is_described(machine: Machine) -> None:
    infos = MSMQQuery(machine).LookupQueue_v2(CALL, text(str(OWN_QUEUE)), *[None] * 8)
    info = infos.Next(CALL)
    assert info is not None
    assert info.get_PathName(CALL) == r"WORKSTATION\reports"
    created = info.get_CreateTime(CALL).value
    assert isinstance(created, float)
    assert created > 25569
    assert info.get_QueueGuid(CALL) == f"{{{OWN_QUEUE}}}".upper()
    infos = MSMQQuery(machine).LookupQueue_v2(CALL, text(str(THEIR_QUEUE)), *[None] * 8)
    info = infos.Next(CALL)
    assert info is not None
    assert info.get_PathNameDNS(CALL) == r"server.example.org\orders"
    assert (info.get_IsTransactional(CALL), info.get_BasePriority(CALL)) == (1, 7)


def registers(
    machine: Machine, call: ComCall, flags: Variant | None, certificate: Variant | None
) -> Completion[Outcome]:
    return start(MSMQApplication(machine).RegisterCertificate(call, flags, certificate))


def test_a_certificate_is_registered_for_its_user(
    machine: Machine, qm: RunningQueueManager
) -> None:
    one = certificate()
    given = octets_variant(one)
    registered = registers(machine, CALL, None, given)
    qm.settle()
    assert registered.result() == Outcome(HResult.MQ_OK)
    owners = machine.directory.certificate_owners(one)
    assert len(owners) == 1
    if_new = Variant(VARENUM.VT_I4, 2)
    for call, flags, octets, expected in (
        (CALL, None, octets_variant(b"no certificate"), HResult.MQ_ERROR_INVALID_CERTIFICATE),
        (call_of(BOB), None, given, HResult.MQ_ERROR_ILLEGAL_USER),
        (CALL, if_new, given, HResult.MQ_ERROR_INVALID_PARAMETER),
        (CALL, None, None, HResult.MQ_ERROR_CANNOT_CREATE_CERT_STORE),
    ):
        assert refusal(registers(machine, call, flags, octets).result) is expected
    machine.protection.own_certificate = one
    exists = registers(machine, CALL, if_new, None).result()
    assert exists == Outcome(HResult.MQ_INFORMATION_INTERNAL_USER_CERT_EXIST)
    elsewhere = MSMQApplication(machine)
    elsewhere.put_Machine(CALL, "WORKSTATION")
    refused = refusal(start(elsewhere.RegisterCertificate(CALL, None, given)).result)
    assert refused is HResult.E_NOTIMPL


@pytest.mark.conformance("MQAC-IMSMQApplication2-8-RegisterCertificate")
@pytest.mark.parametrize("own", [False, True])
def test_a_certificate_is_durable_before_its_user_is_told(
    qm: RunningQueueManager, machine: Machine, own: bool
) -> None:
    one = certificate()
    machine.protection.own_certificate = one
    with capture_logs() as lines:
        registered = registers(machine, CALL, None, None if own else octets_variant(one))
    assert not registered.done
    (told,) = [line for line in lines if line["event"] == "an operator acts"]
    assert (told["who"], told["action"]) == (CALL.identity.name, "register certificate")
    qm.settle()
    assert registered.result() == Outcome(HResult.MQ_OK)
    qm.crash()
    assert len(qm.engine.directory.certificate_owners(one)) == 1


@pytest.mark.bound("dcom.certificates_of_a_user")
def test_a_user_has_so_many_certificates(machine: Machine) -> None:
    for _ in range(1, AT_MOST):  # one is in the file
        registers(machine, CALL, None, octets_variant(certificate()))
    refused = refusal(registers(machine, CALL, None, octets_variant(certificate())).result)
    assert refused is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


def test_lists_are_arrays_of_texts(machine: Machine) -> None:
    listed = now(MSMQApplication(machine).get_PrivateQueues(ADMIN))
    assert listed.vt == VARENUM.VT_ARRAY | VARENUM.VT_BSTR
    assert isinstance(listed.value, SafeArray)
