"""Three queue managers, each a process of its own: one can reach the other by a router only.

They share one static directory. The router is killed while messages are on their way.
"""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate

from rpcqm.binary.own_keys import create_key, load_key
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.outgoing_queues import OutgoingQueueInformation
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.certificates import certificate_of
from tests.support.ports import ports_of
from tests.support.qm.directories import MACHINES, network_directory
from tests.support.waiting import PATIENCE

ACKNOWLEDGEMENTS, ORDERS, SECRETS = UUID(int=0xAC), UUID(int=0x0D), UUID(int=0x5EC)
SECRET = "the body that nobody on the way may read"
COUNT = 5

QUEUES = {
    r"alice\acknowledgements": ACKNOWLEDGEMENTS,
    r"bob\orders": ORDERS,
    r"bob\secrets": SECRETS,
}
SITES = {"alice": ["Berlin"], "router": ["Berlin", "Paris"], "bob": ["Paris"]}
MORE = {
    "router": "routing_server = true\n",
    r"bob\orders": "transactional = true\n",
    r"bob\secrets": 'authenticate = true\nprivacy = "body"\n',
}


@dataclass
class Chain:
    """Alice in Berlin, Bob in Paris, and the router in both."""

    alice: PrivateQueueManager
    router: PrivateQueueManager
    bob: PrivateQueueManager

    def waiting_at_the_router(self, queue: UUID, count: int) -> bool:
        """Whether so many messages to a queue wait there; it takes a moment until they do."""
        give_up = time.monotonic() + PATIENCE
        with self.router.client() as client:
            while time.monotonic() < give_up:
                queues = client.run(client.management.outgoing_queues())
                if sum(_waiting(each, queue) for each in queues) == count:
                    return True
                time.sleep(0.05)
        return False


def _waiting(outgoing: OutgoingQueueInformation, queue: UUID) -> int:
    return outgoing.message_count if str(queue) in str(outgoing.format_name) else 0


def send_in_sequence(queue_manager: PrivateQueueManager, count: int) -> None:
    """One transaction for each message, which has its number as body."""
    acknowledgements = FormatName.parse(f"PUBLIC={ACKNOWLEDGEMENTS}")
    with (
        queue_manager.client() as client,
        client.open_sender(FormatName.parse(f"PUBLIC={ORDERS}")) as sender,
    ):
        for number in range(count):
            message = OutgoingMessage(
                b"%d" % number,
                acknowledgements=AcknowledgementsRequested.ACK_FULL_RECEIVE,
                administration_queue=acknowledgements,
            )
            with client.begin_transaction() as transaction:
                sender.send(message, transaction)


def received(queue_manager: PrivateQueueManager, queue: UUID, count: int) -> list[Any]:
    """The next messages of a public queue, as JSON, waiting for each."""
    said = queue_manager.run(
        *("receive", f"PUBLIC={queue}", "--count", str(count)),
        *("--timeout", "20000", "--format", "json"),
    )
    return [json.loads(line) for line in said.stdout.splitlines()]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    place = tmp_path_factory.mktemp("chain")
    ports = ports_of(MACHINES)
    peers = ", ".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items())
    directory = place / "directory.toml"
    write_directory(directory, place)
    more = {"alice": signing(place), "router": "", "bob": f'encryption_key = "{place}/bob.pem"\n'}
    with ExitStack() as stack:
        machines: list[PrivateQueueManager] = []
        for name, port in ports.items():
            configuration = (
                f'name = "{name}"\ndirectory_file = "{directory}"\n[storage]\nreserve = 1\n'
                f'[binary]\npeers = "{peers}"\nretry_milliseconds = 100\n{more[name]}'
            )
            machine = private_queue_manager(
                ("--binary-port", str(port)), configuration, data_dir=place / name
            )
            machines.append(stack.enter_context(machine))
        yield Chain(*machines)


def write_directory(path: Path, place: Path) -> None:
    """The directory, with what `rpcqm config key` says of Bob's key."""
    spare = PrivateQueueManager(place / "none")
    line = spare.run("config", "key", str(place / "bob.pem"), "--create").stdout
    text = network_directory(SITES, QUEUES, {**MORE, "bob": line})
    path.write_text(f'[enterprise]\nname = "example"\n{text}', "utf-8")
    spare.run("config", "check", str(path))


def signing(place: Path) -> str:
    """The settings of a key and its certificate."""
    create_key(place / "alice.pem")
    certificate = certificate_of(load_key(str(place / "alice.pem")))
    octets = load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)
    (place / "alice.crt").write_bytes(octets)
    return f'signing_key = "{place}/alice.pem"\nsigning_certificate = "{place}/alice.crt"\n'


@pytest.mark.conformance("MQQB-rule-3.1.5.8.5", "MQBR-rule-3.1.5.1", "MQQB-rule-3.1.1.5")
def test_messages_wait_for_a_router_that_dies_twice(chain: Chain) -> None:
    chain.router.kill()
    send_in_sequence(chain.alice, COUNT)
    chain.bob.kill()
    chain.router.start()
    assert chain.waiting_at_the_router(ORDERS, COUNT)
    (held,) = json.loads(chain.alice.run("queue", "list", "--outgoing", "--json").stdout)
    assert (held["messages"], held["unacknowledged"]) == (COUNT, COUNT)
    chain.router.kill()
    chain.bob.start()
    chain.router.start()
    arrived = received(chain.bob, ORDERS, COUNT)
    assert [message["body"] for message in arrived] == [f"{number}" for number in range(COUNT)]
    told = received(chain.alice, ACKNOWLEDGEMENTS, COUNT)
    assert {message["class"] for message in told} == {"ACK_RECEIVE"}
    assert {message["correlation_id"] for message in told} == {m["id"] for m in arrived}


@pytest.mark.conformance("MQQB-rule-3.1.7.1.5.1", "MQQB-rule-3.1.7.1.4")
def test_a_body_is_signed_encrypted_and_read_by_its_receiver_only(chain: Chain) -> None:
    chain.bob.kill()
    chain.alice.run("send", f"PUBLIC={SECRETS}", "--body", SECRET, "--encrypt")
    assert chain.waiting_at_the_router(SECRETS, 1)
    chain.router.kill()
    assert SECRET.encode("utf-16-le") in contents(chain.alice)
    assert SECRET.encode("utf-16-le") not in contents(chain.router)
    chain.bob.start()
    chain.router.start()
    (message,) = received(chain.bob, SECRETS, 1)
    assert message["body"] == SECRET


def contents(queue_manager: PrivateQueueManager) -> bytes:
    """Everything that is in its data directory."""
    files = (path for path in queue_manager.data_dir.rglob("*") if path.is_file())
    return b"".join(path.read_bytes() for path in files)


def test_what_cannot_be_encrypted_does_not_leave(chain: Chain) -> None:
    said = chain.alice.run(
        *("send", "DIRECT=OS:bob\\private$\\secrets", "--body", SECRET, "--encrypt"), check=False
    )
    assert said.returncode == 1
    assert "UNSUPPORTED_FORMATNAME_OPERATION" in said.stderr
