"""Names that strangers invent cost bounded queues, look-ups, lines and threads (G425, G426)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rpcqm.base.resolver import THREADS_OF_ONE
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.qm.directories import MACHINES, network_directory
from tests.support.qm.invented_names import InventedPlace, invented_place
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger as HttpStranger
from tests.support.srmp.srmp_stranger import outgoing

NAMES = 200
OF_ONE, IN_ALL = 40, 100
PASSWORD = "secret"
REFUSED = "too many outgoing queues"
OPEN = "D:(A;;0xf003b;;;WD)(A;;0x4;;;AN)"


class Place(InventedPlace):
    """A queue manager that routes and relays, and a neighbour that it finds at `localhost`."""

    def program(self, name: str) -> Program:
        """A new account."""
        self.made.run("user", "add", name, "--password-stdin", input=f"{PASSWORD}\n")
        return Program(self.made.endpoint("console"), name, PASSWORD)

    def send(self, program: Program, host: str) -> Any:
        name = quote(f"DIRECT=OS:{host}\\private$\\q", safe="")
        return program.ask("POST", f"/queues/{name}/messages", b"content")

    @property
    def refusals(self) -> list[str]:
        return self.lines(REFUSED)


@pytest.fixture(scope="module")
def near() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration='name = "near"\n[storage]\nreserve = 1\n') as made:
        made.run("queue", "create", "orders", "--sddl", OPEN)
        yield made


@pytest.fixture
def place(tmp_path: Path, near: PrivateQueueManager) -> Iterator[Place]:
    directory = tmp_path / "directory.toml"
    sites = {"alice": ["Berlin"], "router": ["Berlin", "Paris"], "bob": ["Paris"]}
    text = network_directory(sites, {}, {"router": "routing_server = true\n"})
    directory.write_text(f'[enterprise]\nname = "example"\n{text}', "utf-8")
    configuration = (
        f'name = "router"\nhttp_port = 0\nconsole_port = 0\ndirectory_file = "{directory}"\n'
        f"[storage]\nreserve = 1\n[limits]\noutgoing_queues = {IN_ALL}\n"
        f"outgoing_queues_per_account = {OF_ONE}\noutgoing_queues_per_source = {OF_ONE}\n"
        "[srmp]\ntransparent_store_and_forward = true\nretry_milliseconds = 200\n"
        "[binary]\nretry_milliseconds = 100\n"
        f'peers = "near=localhost:{near.endpoint("binary")[1]}"\n'
    )
    with invented_place(Place, tmp_path, "--console-port", configuration) as place:
        yield place


def check_bounds(place: Place, queues: int, *, names: int) -> None:
    """So many queues, one line about the others, and no more threads than senders have."""
    assert len(place.refusals) == 1
    place.check(queues, names)


@pytest.mark.bound("limits.outgoing_queues_per_account", "names.threads_of_one")
def test_an_account_that_invents_hosts_gets_its_share_and_keeps_nobody_waiting(
    place: Place, near: PrivateQueueManager
) -> None:
    mallory, carol = place.program("mallory"), place.program("carol")
    told = [place.send(mallory, f"host{number}.invented") for number in range(NAMES)]
    assert [each.status for each in told[:OF_ONE]] == [201] * OF_ONE
    assert {each.code for each in told[OF_ONE:]} == {"MQ_ERROR_INSUFFICIENT_RESOURCES"}
    assert place.send(mallory, "host1.invented").status == 201
    place.resolver.await_asked("invented", THREADS_OF_ONE)
    assert place.send(carol, "carol.fine").status == 201
    place.resolver.await_asked("fine")
    place.made.run("send", "DIRECT=OS:near\\private$\\orders", "--body", "by localhost")
    assert "by localhost" in near.run("receive", "orders", "--timeout", "30000").stdout
    check_bounds(place, OF_ONE + 2, names=THREADS_OF_ONE)


@pytest.mark.bound("limits.outgoing_queues", "names.threads")
def test_all_together_get_only_so_many_queues_and_administrators_one_more(place: Place) -> None:
    for name in ("mallory", "carol", "dave"):
        program = place.program(name)
        for number in range(OF_ONE):
            place.send(program, f"{name}{number}.invented")
        program.close()
    assert len(outgoing(place.made)) == IN_ALL
    place.made.run("send", "DIRECT=OS:root.fine\\private$\\q", "--body", "text")
    place.resolver.await_asked("fine")
    check_bounds(place, IN_ALL + 1, names=3 * THREADS_OF_ONE)


@pytest.mark.bound("limits.outgoing_queues_per_source")
@pytest.mark.conformance("MQQB-rule-3.1.5.8.5")
def test_a_router_passes_on_to_so_many_names_of_one_neighbour(place: Place) -> None:
    with BinaryStranger(place.made.endpoint("binary")) as stranger:
        for number in range(1, NAMES + 1):
            deliver(stranger, f"PRIVATE={MACHINES['bob']}\\{number:08x}", number)
        stranger.await_all()
    assert len(outgoing(place.made)) == OF_ONE
    assert len(place.refusals) == 1
    place.made.restart()
    assert len(outgoing(place.made)) == OF_ONE
    with BinaryStranger(place.made.endpoint("binary")) as stranger:
        deliver(stranger, f"PRIVATE={MACHINES['bob']}\\{NAMES + 1:08x}", NAMES + 1)
        stranger.await_all()
    assert len(outgoing(place.made)) == OF_ONE


def deliver(stranger: BinaryStranger, name: str, number: int) -> None:
    """A message that is for bob."""
    identifier = MessageIdentifier(stranger.guid, number)
    stranger.send_as(
        name, identifier=identifier, destination_queue_manager_identifier=MACHINES["bob"]
    )


def test_a_relay_passes_on_to_so_many_hosts_of_one_address(place: Place) -> None:
    with HttpStranger(place.made) as stranger:
        told = [
            stranger.post(srmp_text.message(f"http://host{number}.invented/msmq/q", b"content"))
            for number in range(NAMES)
        ]
    assert told == [200] * OF_ONE + [500] * (NAMES - OF_ONE)
    place.resolver.await_asked("invented", THREADS_OF_ONE)
    check_bounds(place, OF_ONE, names=THREADS_OF_ONE)


def test_acknowledgements_go_to_so_many_queues_of_hosts_that_are_known(place: Place) -> None:
    place.made.run("queue", "create", "orders", "--sddl", OPEN)
    with BinaryStranger(place.made.endpoint("binary")) as stranger:
        for number in range(1, NAMES + 1):
            stranger.send_as(
                "DIRECT=OS:router\\private$\\orders",
                identifier=MessageIdentifier(stranger.guid, number),
                acknowledgements_requested=1,
                administration_queue_format_name=f"DIRECT=OS:near\\private$\\q{number}",
            )
        stranger.await_all()
    assert len(outgoing(place.made)) <= OF_ONE
    assert len(place.refusals) == 1
