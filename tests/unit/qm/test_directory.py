"""What names mean without a directory ([MS-MQDMPR] 3.1.7.1.26, 3.1.7.3.8)."""

from uuid import uuid4

import pytest

from rpcqm.adm.directory_object import Site
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.base.identity import ANONYMOUS
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from tests.support.queue_manager import RunningQueueManager, refusal

ELSEWHERE = "5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918"


@pytest.mark.conformance("MQDMPR-event-get_queue_path")
@pytest.mark.parametrize(
    ("name", "pathname", "machine"),
    [
        (r"DIRECT=OS:host\private$\q", r"host\private$\q", "host"),
        (r"DIRECT=TCP:192.0.2.9\q;JOURNAL", r"192.0.2.9\q;JOURNAL", "192.0.2.9"),
        (r"DIRECT=HTTP://host:8080/msmq/private$/q", r"host\private$\q", "host"),
        (r"DIRECT=OS:host\SYSTEM$;DEADLETTER", r"host\system$;DEADLETTER", "host"),
    ],
)
def test_direct_names_say_it_themselves(
    qm: RunningQueueManager, name: str, pathname: str, machine: str
) -> None:
    found, host = qm.engine.directory.get_queue_path(FormatName.parse(name))
    assert (found.lower(), host) == (pathname.lower(), machine)


@pytest.mark.conformance("MQDMPR-event-get_queue_path")
def test_private_names_of_this_machine_are_looked_up(qm: RunningQueueManager) -> None:
    queue = qm.create()
    own = qm.engine.queue_manager.identifier
    path = qm.engine.directory.get_queue_path
    number = queue.private_queue_number
    assert path(FormatName.private(own, number)) == (queue.pathname, "WORKSTATION")
    assert path(FormatName.private(own, 4711)) == ("", "WORKSTATION")


@pytest.mark.conformance("MQDMPR-event-get_queue_path")
@pytest.mark.parametrize(
    "name",
    [
        f"PRIVATE={ELSEWHERE}\\17",
        f"PUBLIC={ELSEWHERE}",
        f"MACHINE={ELSEWHERE};JOURNAL",
        f"DL={ELSEWHERE}",
    ],
)
def test_names_that_need_a_directory_are_illegal(qm: RunningQueueManager, name: str) -> None:
    path = qm.engine.directory.get_queue_path
    assert refusal(path, FormatName.parse(name)) == "MQ_ERROR_ILLEGAL_FORMATNAME"


@pytest.mark.conformance("MQDMPR-event-expand_format_name")
def test_a_list_is_sorted_and_has_no_duplicates(qm: RunningQueueManager) -> None:
    names = parse_format_names(r"DIRECT=OS:b\q,DIRECT=OS:a\q,DIRECT=OS:B\Q,DIRECT=OS:c\q")
    expanded = qm.engine.directory.expand_format_name(names)
    assert [str(name) for name in expanded] == [
        r"DIRECT=OS:a\q",
        r"DIRECT=OS:b\q",
        r"DIRECT=OS:c\q",
    ]


@pytest.mark.conformance("MQDMPR-event-expand_format_name")
def test_a_list_of_equal_names_is_one_name(qm: RunningQueueManager) -> None:
    qm.create()
    names = r"DIRECT=OS:.\private$\orders,DIRECT=OS:.\PRIVATE$\orders"
    assert len(qm.engine.directory.expand_format_name(parse_format_names(names))) == 1
    descriptor = qm.open(names)
    assert descriptor.queue_reference is qm.find()


@pytest.mark.conformance("MQDMPR-event-expand_format_name")
def test_one_name_stands_for_itself_and_lists_of_a_directory_for_nothing(
    qm: RunningQueueManager,
) -> None:
    expand = qm.engine.directory.expand_format_name
    name = FormatName.parse(r"DIRECT=OS:a\q")
    assert expand(name) == (name,)
    assert refusal(expand, FormatName.parse(f"DL={uuid4()}")) == (
        "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
    )


def test_without_a_directory_everything_is_as_in_a_workgroup(qm: RunningQueueManager) -> None:
    not_connected = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
    assert not qm.engine.queue_manager.directory_offline
    assert qm.engine.directory.read_directory(Site) == (not_connected, None)
    assert qm.engine.directory.read_directory_begin(Site) == (not_connected, 0)
    assert not qm.engine.queue_manager.directory_offline
    new = qm.engine.queues.new_queue(r".\invoices", ANONYMOUS)
    assert refusal(qm.engine.queues.create_queue, new) == "MQ_ERROR_NO_DS"
