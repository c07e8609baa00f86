"""scripts/windows-check --serve, with a queue manager of ours in the place of Windows."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any

import pytest

from rpcqm.base.errors import MQError
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.mq import server_at
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.network.windows_messaging import RemoteReader, StandIn, answer_of
from tests.support.ports import ports_of
from tests.support.project.windows_check import answers_here, module

MOVES = "DIRECT=OS:.\\private$\\wcheck-"


@dataclass
class Checked:
    """The queue manager that is checked, its account's password, and what stands for Windows."""

    machine: PrivateQueueManager
    password: str
    windows: StandIn


@contextlib.contextmanager
def running(name: str, ports: dict[str, int]) -> Iterator[PrivateQueueManager]:
    peers = ", ".join(f"{each}=127.0.0.1:{port}" for each, port in ports.items())
    configuration = f'name = "{name}"\n[binary]\npeers = "{peers}"\nretry_milliseconds = 100\n'
    configuration += "[security]\nsend_insecure_nacks = true\n"
    options = ("--binary-port", str(ports[name]), "--console-port", "0")
    with private_queue_manager(options, configuration) as machine:
        yield machine


@pytest.fixture(scope="module")
def checked() -> Iterator[Checked]:
    ports = ports_of(("linux", "windows"))
    with running("linux", ports) as machine, running("windows", ports) as other:
        station = module("serving").Station(
            str(machine.data_dir), pause=lambda _: None, patience=20.0
        )
        password = station.prepare()
        windows = StandIn(other)

        def listen() -> None:
            with contextlib.suppress(MQError):  # its queue is deleted in the end
                station.listen()

        listening = Thread(target=listen, daemon=True)
        listening.start()
        yield Checked(machine, password, windows)
        station.clean()
        listening.join(60)
        assert not listening.is_alive()
        assert "wcheck" not in machine.run("queue", "list").stdout
        assert "wcheck" not in machine.run("user", "list").stdout


def test_another_queue_manager_is_answered_as_windows_will_be(checked: Checked) -> None:
    windows = checked.windows
    windows.exchange()
    found = {name: answer for name, answer in windows.answers.items() if name[0] == "B"}
    assert found == answers_here("B", "B11")


def test_its_queues_are_read_over_the_network_as_windows_will_read_them(checked: Checked) -> None:
    host, port = checked.machine.endpoint("epm")
    server = server_at(f"{host}:{port}", "wcheck", checked.password)
    RemoteReader(checked.windows, server).read()
    found = {name: answer for name, answer in checked.windows.answers.items() if name[0] == "C"}
    assert found == answers_here("C", "C06", "C13", "C14", "C21")


def test_messages_move_as_the_table_says(checked: Checked) -> None:
    machine = checked.machine
    for name in ("moves", "other"):
        machine.run("queue", "create", f"wcheck-{name}")
    for _ in range(2):
        machine.run("send", "wcheck-moves", "--body", "x")
    with machine.client() as client:
        first, second = identifiers(client, "moves")
        moves = {
            "W01": ("moves", "moves;late", first),
            "W02": ("moves", "moves", second),
            "W03": ("moves", "moves;late", 1),
            "W04": ("moves", "other", second),
            "W05": ("moves;late", "moves;later", first),
            "W06": ("moves", "moves;JOURNAL", second),
        }
        found = {name: answer_of(partial(moved, client, *what)) for name, what in moves.items()}
    for name in ("moves", "other"):
        machine.run("queue", "delete", f"wcheck-{name}")
    assert found == answers_here("W0")


def identifiers(client: BlockingClient, name: str) -> list[int]:
    with client.open_reader(FormatName.parse(MOVES + name), peek_only=True) as reader:
        return [message.lookup_identifier for message in reader.browse()]


def moved(client: Any, source: str, target: str, identifier: int) -> None:
    with (
        client.open_reader(FormatName.parse(MOVES + source)) as reader,
        client.open_move_target(FormatName.parse(MOVES + target)) as place,
    ):
        reader.move(identifier, place)
