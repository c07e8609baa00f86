r"""Further names of this computer (G500), and what waits for a name that has become one (G501)."""

from dataclasses import replace

import pytest

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.queue_manager import SETTINGS, RunningQueueManager

ALIASES = (
    "Queues.Example.com",
    "10.9.9.9",
    "2001:DB8::1",
    "public.example:8080",
    "[2001:db8:0::2]:443",
)
WITH_ALIASES = replace(SETTINGS, aliases=ALIASES, http_port=8000, https_port=8443)
SEND = QueueAccessType.SEND_ACCESS


@pytest.fixture
def qm(qm: RunningQueueManager) -> RunningQueueManager:
    qm.restart(WITH_ALIASES)
    qm.create()
    return qm


@pytest.mark.parametrize(
    "name",
    [
        r"OS:queues.example.com\private$\orders",
        r"OS:QUEUES.example.COM\private$\orders",
        r"TCP:10.9.9.9\private$\orders",
    ],
)
def test_a_further_name_is_this_computer_for_everything(qm: RunningQueueManager, name: str) -> None:
    opened = qm.open(f"DIRECT={name}", SEND)
    assert opened.queue_reference is qm.find()
    qm.send(qm.find(), b"x")
    assert qm.receive(qm.open(f"DIRECT={name}")) == b"x"
    assert qm.engine.queues.new_queue(name.partition(":")[2] + "2") is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://queues.example.com:8000",
        "https://10.9.9.9:8443",
        "http://[2001:db8::1]:8000",
        "http://public.example:8080",
        "https://Public.Example:8080",
        "https://[2001:DB8::2]",
    ],
)
def test_a_url_of_a_further_name_is_this_computer_at_a_port_of_it(
    qm: RunningQueueManager, url: str
) -> None:
    opened = qm.open(f"DIRECT={url}/msmq/private$/orders", SEND)
    assert opened.queue_reference is qm.find()


@pytest.mark.parametrize(
    "name",
    [
        r"OS:public.example\private$\orders",
        r"OS:other.example.com\private$\orders",
        r"TCP:10.9.9.8\private$\orders",
        "http://public.example/msmq/private$/orders",
        "http://public.example:8000/msmq/private$/orders",
        "http://queues.example.com:8080/msmq/private$/orders",
        "http://[2001:db8::2]:8000/msmq/private$/orders",
    ],
)
def test_another_name_or_port_is_elsewhere(qm: RunningQueueManager, name: str) -> None:
    opened = qm.open(f"DIRECT={name}", SEND)
    assert isinstance(opened.queue_reference, OutgoingQueue)


def test_other_further_names_count_at_once_and_what_is_open_stays(
    qm: RunningQueueManager,
) -> None:
    name = r"DIRECT=OS:later.example\private$\orders"
    before = qm.open(name, SEND)
    assert isinstance(before.queue_reference, OutgoingQueue)
    qm.engine.use_aliases(["later.example"])
    assert qm.open(name, SEND).queue_reference is qm.find()
    assert isinstance(before.queue_reference, OutgoingQueue)
    former = qm.open(r"DIRECT=OS:queues.example.com\private$\orders", SEND)
    assert isinstance(former.queue_reference, OutgoingQueue)


def test_what_waits_for_a_name_that_has_become_ours_is_managed_by_that_name(
    qm: RunningQueueManager,
) -> None:
    name = FormatName.parse(r"DIRECT=OS:later.example\private$\orders")
    opened = qm.open(name, SEND)
    waiting = opened.queue_reference
    assert waiting is not None
    qm.send(waiting, b"waits")
    qm.restart(replace(WITH_ALIASES, aliases=("later.example",)))
    management = qm.engine.management
    found = management.find(name)
    assert isinstance(found, OutgoingQueue)
    assert found.message_count == 1
    here = FormatName.parse(r"DIRECT=OS:.\private$\orders")
    assert management.find(here) is qm.find()
