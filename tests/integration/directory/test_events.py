"""The directory events over what was read of Samba's directory, and one connection for several."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.adm.directory import (
    AttributeFilter,
    AttributeSortOrder,
    DirectoryContents,
    FilterOperator,
    equals,
)
from rpcqm.adm.directory_object import DirectoryObject, Enterprise, RoutingLink, Site
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.directory import searches
from rpcqm.directory.process import WORKER, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Settings
from rpcqm.directory.values import Entry, guid_base
from rpcqm.operations.routing import RoutingOperations
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.directory.domain import CONTROLLER, MACHINE, REALM, Domain
from tests.support.directory.domain_objects import OTHER
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR
from tests.support.waiting import PATIENCE

pytest.importorskip("ldap", reason="python-ldap is not installed (rpcqm[directory])")

SUCCESS = DirectoryOperationResult.SUCCESS


@pytest.fixture(scope="module")
def found(domain: Domain) -> Iterator[tuple[DirectoryContents, list[list[Entry]]]]:
    """Everything of the domain, and what two searches at once on one connection have found."""

    async def run() -> tuple[DirectoryContents, list[list[Entry]]]:
        settings = Settings(
            "corp.test",
            (CONTROLLER,),
            timeout=PATIENCE,
            keytab=str(domain.keytab),
            principal=f"{MACHINE}@{REALM}",
        )
        process = DirectoryProcess(PATIENCE, domain.namespace.argv(WORKER))
        try:
            reader = DirectoryReader(settings, process)
            await reader.connect()
            contents = await reader.read_all()
            bases = [guid_base(each.identifier) for each in contents.queue_managers]
            read = await asyncio.gather(*(process.read(base, ["objectGUID"]) for base in bases))
            assert process.started == 1
            return contents, [[each] for each in read if each is not None]
        finally:
            await process.stop()

    with pytest.MonkeyPatch.context() as patch:
        for name, value in domain.environment.items():
            patch.setenv(name, value)
        yield asyncio.run(run())


@pytest.fixture
def qm(
    found: tuple[DirectoryContents, list[list[Entry]]], tmp_path: Path
) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path, QueueManagerSettings(directory=lambda: found[0]))
    yield running
    running.stop()


def all_of(
    qm: RunningQueueManager, kind: type[DirectoryObject], *filters: AttributeFilter
) -> list[DirectoryObject]:
    directory, several = qm.engine.directory, list[DirectoryObject]()
    status, handle = directory.read_directory_begin(kind, filters)
    assert status is SUCCESS
    while (element := directory.read_directory_next(handle)[1]) is not None:
        several.append(element)
    assert directory.read_directory_next(handle)[0] is DirectoryOperationResult.END_OF_DATA
    assert directory.read_directory_end(handle) is SUCCESS
    assert directory.read_directory_end(handle) is DirectoryOperationResult.GENERIC_ERROR
    assert directory.read_directory_next(handle)[0] is DirectoryOperationResult.GENERIC_ERROR
    return several


def test_filters_choose_among_what_was_read(qm: RunningQueueManager) -> None:
    queues = all_of(qm, Queue, equals("transactional", True))
    assert [each.pathname for each in queues if isinstance(each, Queue)] == ["qm2\\orders"]
    more = AttributeFilter("base_priority", FilterOperator.LESS_THAN, 0)
    labelled = equals("label", "what WE offer")
    assert len(all_of(qm, Queue, more, labelled)) == 1
    (router,) = all_of(qm, QueueManager, equals("routing_server", True))
    assert isinstance(router, QueueManager)
    assert router.computer_name == "ROUTER1"
    (paris,) = all_of(qm, Site, equals("intra_site_replication_interval", 3))
    assert isinstance(paris, Site)
    assert len(all_of(qm, RoutingLink, equals("site2_identifier", paris.identifier))) == 1
    assert all_of(qm, RoutingLink, equals("actual_cost", 8)) == []
    assert len(all_of(qm, Enterprise, equals("default_time_to_live", 345_600))) == 1


def test_one_object_is_found_by_its_identifier_its_name_or_any_filter(
    domain: Domain, qm: RunningQueueManager
) -> None:
    read = qm.engine.directory.read_directory
    identifier = domain.identifier(f"CN=offers,{OTHER}")
    wanted = ("identifier", identifier), ("full_path", f"CN=offers,{OTHER}"), ("quota", 2048)
    for name, value in wanted:
        status, queue = read(Queue, [equals(name, value)])
        assert (status, queue is not None and queue.identifier) == (SUCCESS, identifier)
    assert read(Queue, [equals("quota", 1)])[0] is DirectoryOperationResult.OBJECT_NOT_FOUND
    assert not qm.engine.directory._queries


def test_objects_are_found_by_their_identifiers_on_one_connection(
    found: tuple[DirectoryContents, list[list[Entry]]],
) -> None:
    contents, several = found
    assert len(several) == len(contents.queue_managers) == 2
    for machine, (entry,) in zip(contents.queue_managers, several, strict=True):
        assert entry.first("objectGUID") == machine.identifier.bytes_le
        assert entry.name == machine.full_path


def test_what_is_sorted_is_sorted(qm: RunningQueueManager) -> None:
    order = AttributeSortOrder("pathname", 1, False)
    _, handle = qm.engine.directory.read_directory_begin(Queue, (), None, [order])
    names = []
    while isinstance(queue := qm.engine.directory.read_directory_next(handle)[1], Queue):
        names.append(queue.pathname)
    assert names == sorted(names, reverse=True)


def test_the_page_of_routing_shows_sites_machines_and_links(qm: RunningQueueManager) -> None:
    graph = RoutingOperations(qm.engine).graph(ADMINISTRATOR)
    assert {"Berlin", "Paris"} <= {each.name for each in graph.sites}
    assert {each.name for each in graph.queue_managers if each.routing_server} == {"ROUTER1"}
    assert [each.cost for each in graph.links] == [7]


def test_attributes_of_windows_2000_and_unused_ones_are_not_asked_for() -> None:
    asked = {*searches.CHANGED_ATTRIBUTES, *searches.CONFIGURATION_ATTRIBUTES}
    unused = ("OwnerID", "SiteID", "PrevSiteGates", "ComputerType", "Label", "SiteName")
    assert not asked & {f"mSMQ{each}" for each in unused}
    assert "MSMQ-SecuredSource" not in asked
    assert not [each for each in asked if each.endswith("Mig")]
