"""A served queue manager follows the directory file, and its own name ([MS-MQBR] 3.1.5.9)."""

from contextlib import AbstractContextManager
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.codec.names.path_name import PathName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.binary.test_router import received
from tests.support.ports import ports_of
from tests.support.qm.directories import network_directory

NAMES = ("alice", "bob")
ORDERS = UUID(int=0x0D)

DIRECTORY = network_directory({"alice": ["Berlin"], "bob": ["Paris"]}, {r"bob\orders": ORDERS})


@pytest.mark.conformance("MQBR-rule-3.1.5.1", "MQBR-rule-3.1.5.9")
def test_a_message_takes_the_way_that_a_changed_directory_opens(tmp_path: Path) -> None:
    """Nobody leads from Berlin to Paris; then Bob moves, and the next attempt is minutes away."""
    directory = tmp_path / "directory.toml"
    directory.write_text(DIRECTORY)
    ports = ports_of(NAMES)
    peers = ", ".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())

    def configuration(name: str) -> str:
        return (
            f'name = "{name}"\ndirectory_file = "{directory}"\n[storage]\nreserve = 1\n'
            f'[binary]\npeers = "{peers}"\nretry_milliseconds = 240000\n'
        )

    def machine(name: str) -> AbstractContextManager[PrivateQueueManager]:
        doors = ("--binary-port", str(ports[name]))
        return private_queue_manager(doors, configuration(name), data_dir=tmp_path / name)

    with machine("bob") as bob, machine("alice") as alice:
        alice.run("send", f"PUBLIC={ORDERS}", "--body", "hello")
        with alice.client() as client:
            (waiting,) = client.run(client.management.outgoing_queues())
        assert [event.status for event in waiting.history] == ["no route known"]
        directory.write_text(DIRECTORY.replace('["Paris"]', '["Berlin"]'))
        assert '"directory_file"' in alice.reload(configuration("alice"))
        (message,) = received(bob, ORDERS, 1)
    assert message["body"] == "hello"


def test_after_a_restart_under_another_name_a_public_queue_is_found_by_that(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "directory.toml"
    names = []
    for machine in ("alice", "carol"):
        directory.write_text(DIRECTORY.replace("alice", machine))
        configuration = f'name = "{machine}"\ndirectory_file = "{directory}"\n'
        with private_queue_manager(
            configuration=f"{configuration}[storage]\nreserve = 1\n", data_dir=tmp_path / "data"
        ) as queue_manager:
            if machine == "alice":
                queue_manager.run("queue", "create", r".\offers")
            with queue_manager.client() as client:
                path = PathName.parse(rf"{machine}\offers")
                names.append(client.run(client.queues.format_name(path)))
            listed = queue_manager.run("queue", "list", "--directory").stdout
            assert rf"{machine}\offers" in listed
    assert names[0] == names[1]
