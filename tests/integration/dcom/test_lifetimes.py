"""How long objects live, whatever becomes of those who hold them ([MS-DCOM] 3.1.1.6, 3.1.2.6)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.types.dcom import ComplexPingRequest, SimplePingRequest
from rpcqm.config.dcom_section import DcomSection
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.dcom.ping_sets import EXPIRY, LOOK, PING_PERIOD
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.dcom.dcom_service import (
    CLSID_WAITING,
    DISPENSER,
    TRANSACTION,
    DcomService,
    Made,
    Waiting,
    in_process,
)

SECTION = DcomSection(
    enabled=True,
    objects=40,
    objects_per_caller=30,
    waiting_calls_per_caller=3,
    ping_sets_per_caller=4,
    advertise=("queues.example",),
)
BOB = NtlmCredentials("bob", PASSWORD)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DcomService]:
    with in_process(tmp_path_factory.mktemp("service"), SECTION) as running:
        yield running


@pytest.fixture
def com(service: DcomService) -> Iterator[DcomClient]:
    """A client; every object is gone when the test is over."""
    with DcomClient(service.activators) as client:
        yield client
    service.advance(2 * EXPIRY)
    service.until(lambda: len(service.door.exporter) == 0)


def create(service: DcomService, com: DcomClient) -> tuple[Waiting, Reference]:
    reference = com.create(CLSID_WAITING, DISPENSER)
    return service.made[-1], reference


def ping(com: DcomClient, *references: Reference) -> int:
    """A new set of the references' objects."""
    oids = [each.std.oid for each in references]
    request = ComplexPingRequest(
        pSetId=0,
        SequenceNum=1,
        cAddToSet=len(oids),
        cDelFromSet=0,
        AddToSet=oids,
        DelFromSet=None,
    )
    response = com.ask("dcom.IObjectExporter", "ComplexPing", request)
    assert response.result == 0
    return int(response.pSetId)


def is_there(service: DcomService, reference: Reference) -> bool:
    found = service.loop.do(lambda: service.door.exporter.find(reference.ipid))
    return found is not None


def test_an_object_that_nobody_pings_ends_after_three_periods(
    service: DcomService, com: DcomClient
) -> None:
    made, reference = create(service, com)
    service.advance(EXPIRY - 1)
    assert is_there(service, reference)
    service.advance(LOOK + 1)
    assert made.ends == 1
    com.drop()
    with pytest.raises(RpcFault) as error:
        com.call(reference, "BeginTransaction")
    assert error.value.status is HResult.RPC_E_DISCONNECTED


def test_pings_keep_the_objects_of_a_set(service: DcomService, com: DcomClient) -> None:
    pinged, reference = create(service, com)
    forgotten, _ = create(service, com)
    set_id = ping(com, reference)
    for _ in range(4):
        service.advance(PING_PERIOD)
        com.drop()
        simple = SimplePingRequest(pSetId=set_id)
        assert com.ask("dcom.IObjectExporter", "SimplePing", simple).result == 0
    assert (pinged.ends, forgotten.ends) == (0, 1)
    service.advance(EXPIRY + LOOK)
    assert pinged.ends == 1


def test_a_client_that_dies_keeps_its_objects_until_pings_expire(
    service: DcomService, com: DcomClient
) -> None:
    made = [create(service, com) for _ in range(20)]
    ping(com, *(reference for _, reference in made))
    com.drop()
    service.advance(EXPIRY - LOOK)
    assert all(is_there(service, reference) for _, reference in made)
    service.advance(2 * LOOK)
    assert [each.ends for each, _ in made] == [1] * 20


def test_a_dropped_connection_cancels_the_calls_that_wait_on_it(
    service: DcomService, com: DcomClient
) -> None:
    made, reference = create(service, com)
    waiting = com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 1)
    com.drop()
    service.until(lambda: made.abandoned == 1)
    with pytest.raises(ConnectionError):
        waiting.result(10)
    service.loop.do(lambda: made.waits[0].succeed(None))
    assert is_there(service, reference)


def test_a_call_that_waits_keeps_its_object(service: DcomService, com: DcomClient) -> None:
    made, reference = create(service, com)
    waiting = com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 1)
    com.release(reference)
    service.advance(3 * EXPIRY)
    assert made.ends == 0
    service.loop.do(lambda: made.waits[0].succeed(None))
    assert waiting.result(10) is None
    assert made.ends == 1


def test_an_object_whose_receiver_is_gone_is_not_kept(
    service: DcomService, com: DcomClient
) -> None:
    made, reference = create(service, com)
    com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 1)
    com.drop()
    service.until(lambda: made.abandoned == 1)
    given = Made()
    service.loop.do(lambda: made.waits[0].succeed(given))
    assert given.ends == 1


def test_a_result_of_a_call_that_waited_is_an_object(service: DcomService, com: DcomClient) -> None:
    made, reference = create(service, com)
    waiting = com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 1)
    given = Made()
    service.loop.do(lambda: made.waits[0].succeed(given))
    found = waiting.result(10)
    assert found.interface == TRANSACTION
    com.release(found)
    assert given.ends == 1


@pytest.mark.bound("dcom.waiting_calls_per_caller")
def test_a_caller_has_so_many_waiting_calls_and_no_more(
    service: DcomService, com: DcomClient
) -> None:
    made, reference = create(service, com)
    waiting = [com.start(reference, "BeginTransaction") for _ in range(3)]
    service.until(lambda: len(made.waits) == 3)
    with pytest.raises(RpcFault) as error:
        com.call(reference, "BeginTransaction")
    assert error.value.status is FaultStatus.nca_s_server_too_busy
    with DcomClient(service.activators, BOB) as other:
        bobs, held = create(service, other)
        begun = other.start(held, "BeginTransaction")
        service.until(lambda: len(bobs.waits) == 1)
        service.loop.do(lambda: bobs.waits[0].succeed(None))
        assert begun.result(10) is None
    for outcome in made.waits:
        service.loop.do(lambda outcome=outcome: outcome.succeed(None))  # type: ignore[misc]
    assert [each.result(10) for each in waiting] == [None] * 3
    last = com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 4)
    service.loop.do(lambda: made.waits[3].succeed(None))
    assert last.result(10) is None


def test_a_caller_holds_so_many_objects_and_others_go_on(
    service: DcomService, com: DcomClient
) -> None:
    for _ in range(30):
        create(service, com)
    iids = [object_interfaces()[DISPENSER].iid]
    with pytest.raises(ComError) as error:
        com.create(CLSID_WAITING, DISPENSER)
    assert error.value.status is HResult.E_OUTOFMEMORY
    assert service.made[-1].ends == 1
    assert com.remote_activation(CLSID_WAITING, iids).phr == HResult.E_OUTOFMEMORY
    with DcomClient(service.activators, BOB) as other:
        create(service, other)


def test_a_method_that_gives_an_object_is_not_called_for_who_cannot_hold_it(
    service: DcomService, com: DcomClient
) -> None:
    """Else a message would be received, and lost."""
    made, reference = create(service, com)
    waiting = com.start(reference, "BeginTransaction")
    service.until(lambda: len(made.waits) == 1)
    for _ in range(29):
        create(service, com)
    with pytest.raises(ComError) as error:
        com.call(reference, "BeginTransaction")
    assert error.value.status is HResult.E_OUTOFMEMORY
    assert len(made.waits) == 1
    service.loop.do(lambda: made.waits[0].succeed(Made()))
    assert waiting.result(10).interface == TRANSACTION, "it was asked before"


def test_references_to_an_object_that_ends_with_its_service_are_given_back(
    tmp_path: Path,
) -> None:
    with in_process(tmp_path) as running, DcomClient(running.activators) as client:
        made, _ = create(running, client)
    assert made.ends == 1


def test_what_an_operator_advertises_is_named(service: DcomService, com: DcomClient) -> None:
    create(service, com)
    host, port = service.service.ready.endpoints["dcom"]
    named = [each.address for each in com.bindings.strings]
    assert named[:2] == [f"{host}[{port}]", f"queues.example[{port}]"]
