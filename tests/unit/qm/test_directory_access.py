"""The directory events over a static directory ([MS-MQDMPR] 3.1.7.1.18 to .25)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.directory import (
    AttributeFilter,
    AttributeSortOrder,
    DirectoryContents,
    DirectoryUnavailableError,
    FilterOperator,
    equals,
)
from rpcqm.adm.directory_object import DirectoryObject, Enterprise, RoutingLink, Site, User
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import PropVariant, QueueProperty, VarType
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType
from rpcqm.config.directory import DirectoryFile, load_directory
from rpcqm.interfaces._queue_properties import values_of
from tests.support.qm.directories import (
    DIRECTORY,
    INNER_LIST,
    LIST,
    OWN_QUEUE,
    ROUTER,
    SERVER,
    THEIR_QUEUE,
    WORKSTATION,
    write_directory,
)
from tests.support.queue_manager import MEMORY, SETTINGS, RunningQueueManager, refusal

SUCCESS = DirectoryOperationResult.SUCCESS
NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
NOT_CONNECTED = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
SEND = QueueAccessType.SEND_ACCESS


class Source:
    """A directory that can be out of reach."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.there = True

    def __call__(self) -> DirectoryContents:
        if not self.there:
            raise DirectoryUnavailableError("cut off")
        return load_directory(self.path)


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="rpcqm-directory-", dir=MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
def source(directory: Path) -> Source:
    return Source(write_directory(directory))


@pytest.fixture
def qm(directory: Path, source: Source) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(directory / "data", replace(SETTINGS, directory=source))
    yield running
    running.stop()


def named(elements: list[DirectoryObject]) -> list[str]:
    return [
        getattr(element, "computer_name", "") or getattr(element, "name", "")
        for element in elements
    ]


def all_of(
    qm: RunningQueueManager,
    kind: type[DirectoryObject],
    filters: list[AttributeFilter] | None = None,
    order: list[AttributeSortOrder] | None = None,
) -> list[DirectoryObject]:
    status, handle = qm.engine.directory.read_directory_begin(
        kind, filters or [], None, order or []
    )
    assert status is SUCCESS
    found: list[DirectoryObject] = []
    while True:
        status, element = qm.engine.directory.read_directory_next(handle)
        if status is DirectoryOperationResult.END_OF_DATA:
            break
        assert element is not None
        found.append(element)
    assert qm.engine.directory.read_directory_end(handle) is SUCCESS
    return found


# Reading


@pytest.mark.conformance("MQDMPR-event-read_directory")
def test_the_first_object_that_satisfies_all_filters_is_read(qm: RunningQueueManager) -> None:
    read = qm.engine.directory.read_directory
    status, machine = read(QueueManager, [equals("computer_name", "server")])
    assert status is SUCCESS
    assert machine is not None
    assert machine.identifier == SERVER
    both = [equals("computer_name", "SERVER"), equals("routing_server", True)]
    assert read(QueueManager, both) == (NOT_FOUND, None)
    assert read(QueueManager)[1] is not None
    assert read(Enterprise)[0] is SUCCESS


@pytest.mark.conformance("MQDMPR-event-read_directory", "MQDMPR-element-RoutingLink")
@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        (FilterOperator.EQUALS, 10, True),
        (FilterOperator.NOT_EQUALS, 10, False),
        (FilterOperator.LESS_THAN, 11, True),
        (FilterOperator.LESS_THAN, 10, False),
        (FilterOperator.GREATER_THAN, 9, True),
        (FilterOperator.GREATER_THAN, 10, False),
        (FilterOperator.LESS_THAN_OR_EQUAL, 10, True),
        (FilterOperator.LESS_THAN_OR_EQUAL, 9, False),
        (FilterOperator.GREATER_THAN_OR_EQUAL, 10, True),
        (FilterOperator.GREATER_THAN_OR_EQUAL, 11, False),
        (FilterOperator.LESS_THAN, "no number", False),
    ],
)
def test_filters_compare_as_their_operators_say(
    qm: RunningQueueManager, operator: FilterOperator, value: object, found: bool
) -> None:
    filters = [AttributeFilter("actual_cost", operator, value)]
    status, _ = qm.engine.directory.read_directory(RoutingLink, filters)
    assert (status is SUCCESS) is found


@pytest.mark.conformance("MQDMPR-event-read_directory", "MQDMPR-element-DirectoryOperationResult")
def test_only_listed_attributes_are_read_and_unknown_ones_are_refused(
    qm: RunningQueueManager,
) -> None:
    own = [equals("identifier", ROUTER)]
    _, machine = qm.engine.directory.read_directory(QueueManager, own, ["computer_name"])
    assert machine is not None
    assert machine.computer_name == "ROUTER"
    assert machine.qualified_computer_name == ""
    status, _ = qm.engine.directory.read_directory(Site, [equals("computer_name", "x")])
    assert status is DirectoryOperationResult.ATTRIBUTE_NOT_FOUND


@pytest.mark.conformance(
    "MQDMPR-event-read_directory_begin",
    "MQDMPR-event-read_directory_next",
    "MQDMPR-event-read_directory_end",
)
def test_an_enumeration_gives_every_object_once(qm: RunningQueueManager) -> None:
    assert named(all_of(qm, QueueManager)) == ["WORKSTATION", "ROUTER", "SERVER"]
    assert named(all_of(qm, QueueManager, [equals("routing_server", False)])) == [
        "WORKSTATION",
        "SERVER",
    ]
    assert named(all_of(qm, Site, [equals("name", "Rome")])) == []
    assert named(all_of(qm, User)) == [""]


@pytest.mark.conformance("MQDMPR-event-read_directory_begin")
def test_what_is_found_is_sorted_by_priority(qm: RunningQueueManager) -> None:
    by_name = AttributeSortOrder("computer_name", 1)
    assert named(all_of(qm, QueueManager, order=[by_name])) == ["ROUTER", "SERVER", "WORKSTATION"]
    down = by_name._replace(sort_ascending=False)
    assert named(all_of(qm, QueueManager, order=[down])) == ["WORKSTATION", "SERVER", "ROUTER"]
    routers_first = AttributeSortOrder("routing_server", 2, sort_ascending=False)
    assert named(all_of(qm, QueueManager, order=[down, routers_first])) == [
        "ROUTER",
        "WORKSTATION",
        "SERVER",
    ]
    unsorted = by_name._replace(sort_priority=0)
    assert named(all_of(qm, QueueManager, order=[unsorted]))[0] == "WORKSTATION"


@pytest.mark.conformance("MQDMPR-event-read_directory_next", "MQDMPR-event-read_directory_end")
def test_a_handle_that_is_none_is_an_error(qm: RunningQueueManager) -> None:
    events = qm.engine.directory
    _, handle = events.read_directory_begin(Site)
    assert events.read_directory_end(handle) is SUCCESS
    generic = DirectoryOperationResult.GENERIC_ERROR
    assert events.read_directory_end(handle) is generic
    assert events.read_directory_next(handle) == (generic, None)
    unknown = [equals("nothing", 1)]
    assert events.read_directory_begin(Site, unknown)[0] is (
        DirectoryOperationResult.ATTRIBUTE_NOT_FOUND
    )


# Changing


@pytest.mark.conformance("MQDMPR-event-create_directory_object")
def test_a_created_object_is_found_over_a_restart(qm: RunningQueueManager) -> None:
    site = Site(uuid4(), "Rome", foreign_site=True)
    made = qm.engine.directory.create_directory_object(site).result()
    assert (made.result, made.identifier) == (SUCCESS, site.identifier)
    exists = DirectoryOperationResult.OBJECT_ALREADY_EXISTS
    assert qm.engine.directory.create_directory_object(site).result().result is exists
    qm.restart()
    assert named(all_of(qm, Site)) == ["Berlin", "Paris", "Rome"]
    found = all_of(qm, Site)[-1]
    assert isinstance(found, Site)
    assert found.foreign_site


@pytest.mark.conformance("MQDMPR-event-delete_directory_object")
def test_what_was_created_here_can_be_deleted_and_the_file_cannot(qm: RunningQueueManager) -> None:
    site = Site(uuid4(), "Rome")
    qm.engine.directory.create_directory_object(site)
    qm.settle()
    delete = qm.engine.directory.delete_directory_object
    assert delete(site).result().result is SUCCESS
    qm.settle()
    assert delete(site).result().result is NOT_FOUND
    berlin = all_of(qm, Site)[0]
    assert delete(berlin).result().result is DirectoryOperationResult.GENERIC_ERROR


@pytest.mark.conformance("MQDMPR-event-write_directory")
def test_a_change_lies_over_the_file(qm: RunningQueueManager) -> None:
    _, router = qm.engine.directory.read_directory(QueueManager, [equals("identifier", ROUTER)])
    assert router is not None
    router.queue_manager_quota, router.computer_name = 77, "unsaid"
    written = qm.engine.directory.write_directory(router, ["queue_manager_quota"])
    assert not written.done
    assert qm.done(written).result is SUCCESS
    qm.restart()
    _, again = qm.engine.directory.read_directory(QueueManager, [equals("identifier", ROUTER)])
    assert again is not None
    assert (again.queue_manager_quota, again.computer_name) == (77, "ROUTER")
    unknown = qm.engine.directory.write_directory(Site(uuid4()))
    assert unknown.result().result is NOT_FOUND


# Offline and online


@pytest.mark.conformance(
    "MQDMPR-event-create_directory_object",
    "MQDMPR-event-delete_directory_object",
    "MQDMPR-event-write_directory",
    "MQDMPR-event-check_directory_online",
    "MQDMPR-timer-directory_online",
)
@pytest.mark.parametrize("how", ["create", "delete", "write", "read"])
def test_a_directory_that_does_not_answer_is_offline_until_it_does(
    qm: RunningQueueManager, source: Source, how: str
) -> None:
    source.there = False
    directory, site = qm.engine.directory, Site(uuid4())
    results = {
        "create": lambda: directory.create_directory_object(site).result().result,
        "delete": lambda: directory.delete_directory_object(site).result().result,
        "write": lambda: directory.write_directory(site).result().result,
        "read": lambda: directory.read_directory(Site)[0],
    }
    assert results[how]() is NOT_CONNECTED
    assert qm.engine.queue_manager.directory_offline
    qm.advance(59_000)
    source.there = True
    assert qm.engine.queue_manager.directory_offline
    qm.advance(1_000)
    assert not qm.engine.queue_manager.directory_offline


@pytest.mark.conformance("MQDMPR-event-read_directory")
def test_offline_only_what_is_here_is_found(qm: RunningQueueManager, source: Source) -> None:
    source.there = False
    read = qm.engine.directory.read_directory
    assert read(Site)[0] is NOT_CONNECTED
    assert read(QueueManager, [equals("identifier", WORKSTATION)]) == (
        SUCCESS,
        qm.engine.queue_manager,
    )
    assert read(QueueManager, [equals("identifier", SERVER)])[0] is NOT_CONNECTED
    status, queue = read(Queue, [equals("identifier", OWN_QUEUE)])
    assert (status, queue) == (SUCCESS, qm.find("reports"))
    assert read(Queue, [equals("identifier", THEIR_QUEUE)])[0] is NOT_FOUND
    source.there = True
    assert read(Queue, [equals("identifier", THEIR_QUEUE)])[0] is NOT_FOUND
    forced, _ = read(Queue, [equals("identifier", THEIR_QUEUE)], None, True)
    assert forced is SUCCESS


@pytest.mark.conformance("MQDMPR-event-check_directory_online", "MQDMPR-timer-directory_online")
def test_what_changed_meanwhile_is_taken_over_when_the_directory_is_back(
    qm: RunningQueueManager, source: Source
) -> None:
    source.there = False
    qm.engine.directory.read_directory(Site)
    changed = DIRECTORY.replace("quota = 4096", "quota = 99").replace('"Reports"', '"New"')
    source.path.write_text(changed)
    qm.advance(120_000)
    assert qm.engine.queue_manager.queue_manager_quota == 4096
    source.there = True
    qm.advance(60_000)
    assert qm.engine.queue_manager.queue_manager_quota == 99
    assert qm.find("reports").label == "New"


@pytest.mark.conformance("MQDMPR-event-check_directory_online")
def test_a_directory_that_does_not_know_us_is_asked_again(
    qm: RunningQueueManager, source: Source
) -> None:
    source.path.write_text('[[site]]\nname = "Rome"\n')
    qm.engine.directory.check_directory_online()
    assert not qm.engine.queue_manager.directory_offline
    source.path.write_text(DIRECTORY.replace("quota = 4096", "quota = 5"))
    qm.advance(60_000)
    assert qm.engine.queue_manager.queue_manager_quota == 5


# What it means for the queue manager


def test_a_new_queue_manager_takes_its_identity_and_its_servers_from_the_directory(
    qm: RunningQueueManager,
) -> None:
    own = qm.engine.queue_manager
    assert own.identifier == WORKSTATION
    assert own.directory_integrated
    assert own.out_routing_server_identifier_list == [ROUTER]
    assert own.enterprise_reference is not None
    assert own.enterprise_reference.name == "example"
    qm.restart()
    assert qm.engine.queue_manager.identifier == WORKSTATION


def test_public_queues_of_the_file_are_there_and_can_be_opened(qm: RunningQueueManager) -> None:
    queue = qm.find("reports")
    assert queue.identifier == OWN_QUEUE
    assert queue.label == "Reports"
    descriptor = qm.open(f"PUBLIC={OWN_QUEUE}")
    assert descriptor.queue_reference is queue
    assert qm.open(r"DIRECT=OS:workstation\reports").queue_reference is queue
    assert qm.open(f"PUBLIC={OWN_QUEUE};JOURNAL").queue_reference is queue.journal_queue_reference
    assert str(qm.engine.queues.format_name_of(queue)) == f"PUBLIC={OWN_QUEUE}".lower().replace(
        "public", "PUBLIC"
    )
    qm.send(queue, b"a")
    qm.restart()
    assert qm.bodies(qm.find("reports")) == [b"a"]


def test_public_queues_elsewhere_are_sent_to_with_their_queue_manager(
    qm: RunningQueueManager,
) -> None:
    queue = qm.open(f"PUBLIC={THEIR_QUEUE}", SEND).queue_reference
    assert isinstance(queue, OutgoingQueue)
    message = qm.compose(queue, b"a")
    assert message.attributes.destination_queue_manager_identifier == SERVER
    open_queue = qm.engine.opening.open_queue
    unknown = FormatName.parse(f"PUBLIC={uuid4()}")
    assert queue.base_priority == 7
    assert refusal(open_queue, unknown, SEND) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


def test_a_new_public_queue_offline_is_refused(qm: RunningQueueManager, source: Source) -> None:
    source.there = False
    new = qm.engine.queues.new_queue(r".\invoices")
    assert refusal(qm.engine.queues.create_queue, new) == "MQ_ERROR_NO_DS"
    unknown = FormatName.parse(f"PUBLIC={THEIR_QUEUE}")
    open_queue = qm.engine.opening.open_queue
    assert refusal(open_queue, unknown, SEND) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


@pytest.mark.conformance("MQDMPR-event-open_queue")
def test_a_public_queue_that_the_directory_has_here_and_we_have_not_is_not_found(
    qm: RunningQueueManager, source: Source
) -> None:
    new = uuid4()
    source.path.write_text(
        f"{DIRECTORY}\n[[queue]]\npath = 'WORKSTATION\\late'\nidentifier = \"{new}\"\n"
    )
    name = FormatName.parse(f"PUBLIC={new}")
    assert refusal(qm.engine.opening.open_queue, name, SEND) == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQDMPR-event-create_queue", "MQDMPR-event-delete_queue")
def test_a_public_queue_is_published_changed_and_withdrawn(qm: RunningQueueManager) -> None:
    queue = qm.create("invoices")
    own = [equals("identifier", queue.identifier)]
    assert qm.engine.directory.read_directory(Queue, own)[0] is SUCCESS
    qm.done(qm.engine.queues.set_properties(queue, {"label": "Invoices"}))
    _, read = qm.engine.directory.read_directory(Queue, own)
    assert read is not None
    assert read.label == "Invoices"
    qm.done(qm.engine.queues.delete_queue(queue))
    assert qm.engine.directory.read_directory(Queue, own)[0] is NOT_FOUND
    listed = qm.find("reports")
    assert refusal(qm.engine.queues.delete_queue, listed) == "MQ_ERROR_ACCESS_DENIED"


def test_what_was_published_is_found_by_todays_name_of_the_machine(qm: RunningQueueManager) -> None:
    """And not by the one before; with a full name that is another one, too."""
    queue = qm.create("invoices")
    name = FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, queue.identifier)
    find = qm.engine.directory.find_path
    assert find("workstation\\invoices") == name
    renamed = replace(qm.settings, computer_name="DESK", qualified_computer_name="desk.example.org")
    for _ in range(2):
        qm.restart(renamed)
        find = qm.engine.directory.find_path
        assert find("desk\\invoices") == find("desk.example.org\\invoices") == name
        assert find("workstation\\invoices") is None


def test_a_changed_queue_of_the_file_keeps_its_change_over_a_restart(
    qm: RunningQueueManager,
) -> None:
    qm.done(qm.engine.queues.set_properties(qm.find("reports"), {"label": "Ours"}))
    qm.restart()
    assert qm.find("reports").label == "Ours"


@pytest.mark.conformance("MQDMPR-event-get_queue_path")
def test_names_are_resolved_by_the_directory(qm: RunningQueueManager) -> None:
    path = qm.engine.directory.get_queue_path
    theirs = FormatName.parse(f"PUBLIC={THEIR_QUEUE}")
    assert path(theirs) == ("SERVER\\orders", "SERVER")
    assert path(FormatName.parse(f"PUBLIC={OWN_QUEUE}")) == ("WORKSTATION\\reports", "WORKSTATION")
    assert path(FormatName.private(SERVER, 17)) == ("", "SERVER")
    assert refusal(path, FormatName.private(uuid4(), 17)) == "MQ_ERROR_ILLEGAL_FORMATNAME"
    assert qm.engine.directory.find_path("server\\orders") == theirs
    assert qm.engine.directory.find_path("server.example.org\\orders") == theirs
    assert qm.engine.directory.find_path("server\\none") is None


@pytest.mark.conformance("MQDMPR-event-expand_format_name")
def test_lists_are_expanded_with_the_lists_in_them(qm: RunningQueueManager) -> None:
    """A list that has itself in it, by way of another one, comes to an end."""
    names = qm.engine.directory.expand_format_name(FormatName.parse(f"DL={LIST}"))
    assert names == (
        FormatName.parse(r"DIRECT=OS:other\private$\a"),
        FormatName.parse(f"PUBLIC={OWN_QUEUE}"),
        FormatName.parse(f"PUBLIC={THEIR_QUEUE}"),
    )
    expand = qm.engine.directory.expand_format_name
    unknown = FormatName.parse(f"DL={uuid4()}")
    assert refusal(expand, unknown) == "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"


@pytest.mark.conformance("MQDMPR-event-enqueue_message_to_an_open_queue")
def test_a_message_to_a_list_goes_to_every_queue_of_it(qm: RunningQueueManager) -> None:
    descriptor = qm.open(f"DL={INNER_LIST}", SEND)
    assert len(descriptor.open_queue_descriptor_collection) == 3
    local = qm.find("reports")
    message = qm.compose(local, b"a")
    qm.done(qm.engine.messages.enqueue_message_to_an_open_queue(descriptor, message))
    assert qm.bodies(local) == [b"a"]
    waiting = {
        queue.destination_format_name: qm.bodies(queue) for queue in qm.engine.outgoing.list()
    }
    assert list(waiting.values()) == [[b"a"], [b"a"]]


def test_the_service_reads_the_file_itself(directory: Path) -> None:
    settings = replace(SETTINGS, directory=DirectoryFile(write_directory(directory)))
    running = RunningQueueManager(directory / "own", settings)
    assert running.find("reports").identifier == UUID(str(OWN_QUEUE))
    running.stop()


def test_machines_are_listed_whatever_the_case_of_their_names(qm: RunningQueueManager) -> None:
    """A supporting server sends its account only to those (G86)."""
    lists = qm.engine.directory.lists
    assert [lists(name) for name in ("SERVER", "server", "Server")] == [True] * 3
    strangers = ("SERVE", "SERVERS", "SERVER ", "SERVER.", "server.evil.example", "192.0.2.20", "")
    assert not any(lists(name) for name in strangers)


# What the file does not say


@pytest.mark.conformance("MQDMPR-event-check_directory_online")
def test_what_the_directory_does_not_say_stays_as_it_is_here(
    directory: Path, source: Source
) -> None:
    source.path.write_text(DIRECTORY.replace("quota = 4096", ""))
    settings = replace(SETTINGS, directory=source, queue_manager_quota=777, journal_quota=55)
    qm = RunningQueueManager(directory / "data", settings)
    own = qm.engine.queue_manager
    assert (own.queue_manager_quota, own.journal_quota) == (777, 55)
    assert own.modify_time == own.create_time == qm.clock.now() // 1000
    queue = qm.find("reports")
    assert queue.modify_time == queue.create_time == qm.clock.now() // 1000
    qm.advance(5_000)
    qm.done(qm.engine.queues.set_properties(queue, {"multicast_address": "234.1.1.1:8001"}))
    qm.restart()
    assert qm.find("reports").modify_time == queue.create_time + 5
    assert qm.find("reports").multicast_address == "234.1.1.1:8001"
    qm.stop()


@pytest.mark.conformance("MQDMPR-event-check_directory_online")
def test_offline_ends_only_when_the_directory_knows_us(
    qm: RunningQueueManager, source: Source
) -> None:
    source.there = False
    qm.engine.directory.read_directory(Site)
    source.path.write_text('[[site]]\nname = "Rome"\n')
    source.there = True
    qm.advance(60_000)
    assert qm.engine.queue_manager.directory_offline
    source.path.write_text(DIRECTORY)
    qm.advance(60_000)
    assert not qm.engine.queue_manager.directory_offline


@pytest.mark.conformance("MQDMPR-event-open_queue")
@pytest.mark.parametrize("restarted", [False, True])
def test_in_an_outage_messages_go_on_to_queues_that_are_known(
    qm: RunningQueueManager, source: Source, restarted: bool
) -> None:
    first = qm.open(f"PUBLIC={THEIR_QUEUE}", SEND)
    assert first.queue_reference is not None
    qm.send(first.queue_reference, b"a")
    if restarted:
        qm.restart()
    source.there = False
    qm.engine.directory.read_directory(Site)
    again = qm.open(f"PUBLIC={THEIR_QUEUE}", SEND).queue_reference
    assert isinstance(again, OutgoingQueue)
    assert again.base_priority == 7
    message = qm.compose(again, b"b")
    assert message.attributes.destination_queue_manager_identifier == SERVER


@pytest.mark.conformance("MQDMPR-event-expand_format_name")
@pytest.mark.parametrize("members", ["", f"'DL={LIST}'", f"'DL={INNER_LIST}'"])
def test_a_list_that_stands_for_nothing_is_refused(
    qm: RunningQueueManager, source: Source, members: str
) -> None:
    """Empty, or made of itself only."""
    start = DIRECTORY.index("[[distribution_list]]")
    table = '[[distribution_list]]\nname = "{}"\nidentifier = "{}"\nmembers = [{}]\n'
    lists = table.format("a", LIST, members) + table.format("b", INNER_LIST, f"'DL={LIST}'")
    source.path.write_text(DIRECTORY[:start] + lists)
    name = FormatName.parse(f"DL={LIST}")
    refused = "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    assert refusal(qm.engine.opening.open_queue, name, SEND) == refused


@pytest.mark.conformance("MQDMPR-event-create_queue")
def test_where_active_directory_has_a_queue_is_told(directory: Path, source: Source) -> None:
    url = "LDAP://server/CN=reports,CN=msmq,CN=WORKSTATION,DC=example"
    said = f"label = \"Reports\"\nfull_path = 'CN=reports'\ndirectory_path = '{url}'"
    source.path.write_text(DIRECTORY.replace('label = "Reports"', said))
    qm = RunningQueueManager(directory / "data", replace(SETTINGS, directory=source))
    for _ in range(2):
        queue = qm.find("reports")
        assert (queue.full_path, queue.directory_path) == ("CN=reports", url)
        asked = [propvariant_of(PropVariant(VarType.VT_NULL))]
        told = values_of(queue, [QueueProperty.PROPID_Q_ADS_PATH], asked)
        assert [variant_of(value).value for value in told] == [url]
        qm.restart()
    qm.stop()


@pytest.mark.conformance("MQDMPR-element-Enterprise")
def test_the_default_time_to_live_is_for_messages_that_travel(
    qm: RunningQueueManager, source: Source
) -> None:
    outgoing = qm.open(f"PUBLIC={THEIR_QUEUE}", SEND).queue_reference
    assert outgoing is not None

    def time_to_reach(queue: Queue, given: int = 0xFFFF_FFFF) -> int:
        message = qm.compose(queue, b"", time_to_reach_queue=given)
        return message.attributes.time_to_reach_queue

    assert time_to_reach(outgoing) == 3600
    assert time_to_reach(outgoing, 5) == 5
    assert time_to_reach(qm.find("reports")) == 0xFFFF_FFFF
    source.path.write_text(DIRECTORY.replace("default_time_to_live = 3600", ""))
    qm.engine.directory.check_directory_online()
    assert time_to_reach(outgoing) == 0xFFFF_FFFF
