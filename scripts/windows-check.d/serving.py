"""The other side of check.ps1: queues that it sends to and reads, and what its orders ask for.

An order is a message in the queue `wcheck-control`: its label says which, its body how the names
of the queues at Windows begin. What it has found goes back as a message with the same label and
the order's identifier, in lines of the file of answers.
"""

import base64
import contextlib
import os
import secrets
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from questions import NOT_ASKED

from rpcqm.base.errors import MQError
from rpcqm.client import bodies, mq
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.names import HERE, format_name, path_name
from rpcqm.client.passwords import nt_hash
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.security.sddl import parse_sddl

ACCOUNT = "wcheck"
OWN = "wcheck-"
QUEUES = {
    "control": QueueSettings(),
    "plain": QueueSettings(),
    "stream": QueueSettings(transactional=True),
    "full": QueueSettings(quota=1),
    "signed": QueueSettings(authenticate=True),
    "private": QueueSettings(privacy=2),
    "closed": QueueSettings(),
    "read": QueueSettings(),
    "reads": QueueSettings(transactional=True),
    "told": QueueSettings(),
    "verdicts": QueueSettings(),
    "web": QueueSettings(),
}
"""The queues here, and how each is made."""
CLOSED = "D:(D;;0x3;;;{sid})(D;;0x4;;;AN)(A;;GA;;;WD)"
"""Who may do what with the queue `closed`: the account reads nothing, Anonymous sends nothing."""
REVERSE = (
    ("B31", "plain", False),
    ("B32", "absent", False),
    ("B33", "stream", False),
    ("B34", "plain", True),
    ("B35", "full", False),
    ("B36", "closed", False),
    ("B37", "signed", False),
    ("B38", "private", False),
    ("B39", "stream", True),
)
"""Question, queue at Windows, and whether it is sent to in a transaction."""
EXPRESS: dict[str, object] = {
    "label": "express",
    "body": b"two apples",
    "priority": 7,
    "application_tag": 7,
    "extension": b"\1\2\3",
    "recoverable": False,
    "time_to_be_received": 600,
}
"""What check.ps1 gives its express message."""
REPORTED, BACK = "wcheck reported", "wcheck back"
ARRIVAL = AcknowledgementsRequested.ACK_POS_ARRIVAL | AcknowledgementsRequested.ACK_NEG_ARRIVAL
PATIENCE = 20.0
"""Seconds within which something has come over the network, if it comes at all."""
Answers = Iterator[str]


class Station:
    """A queue manager of this machine that answers check.ps1.

    `pause` waits so many seconds; `patience` is how long something may take over the network.
    """

    def __init__(
        self,
        data_dir: str | None = None,
        pause: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE,
    ) -> None:
        self._directory = Path(data_dir or os.environ.get(mq.DATA_DIR, "var"))
        self._target = mq.local_server(self._directory)
        self._pause = pause
        self._patience = patience
        self._password = secrets.token_urlsafe(12)
        self._old_reads = 0.0
        self.orders: dict[str, Callable[[str], Answers]] = {
            "hello": lambda _: iter(()),
            "arrived": self._arrived,
            "reverse": self._reverse,
            "fill": self._fill,
            "calls": self._calls,
            "delete": lambda _: iter(()),
            "web": self._web,
        }

    # Setting up

    def prepare(self) -> str:
        """Make queues and account anew; the account's password. Raises MQError."""
        self.clean()
        with BlockingClient(self._target) as client:
            added = client.accounts.add(ACCOUNT, nt_hash(self._password), ["administrators"])
            closed = parse_sddl(CLOSED.format(sid=client.run(added)))
            for name, settings in QUEUES.items():
                who = closed if name == "closed" else None
                path = path_name(OWN + name, HERE)
                client.run(client.queues.create(path, settings, who))
        return self._password

    def clean(self) -> None:
        """Delete queues and account, as far as they are there."""
        with BlockingClient(self._target) as client:
            for name in QUEUES:
                self._delete(client, name)
            with contextlib.suppress(MQError):
                client.run(client.accounts.remove(ACCOUNT))

    @staticmethod
    def _delete(client: BlockingClient, name: str) -> None:
        with contextlib.suppress(MQError):
            client.run(client.queues.delete(format_name(OWN + name)))

    def open(self, name: str, *, peek_only: bool = False) -> mq.Queue:
        """A queue here by its name without what all have in front, or one by a format name."""
        full = name if "=" in name or name.endswith("$") else OWN + name
        return mq.open(full, self._target, peek_only=peek_only)

    # Orders

    def listen(self) -> None:
        """Carry out orders as they come, until the queue for them is deleted: MQError."""
        with self.open("control") as control:
            for order in control.receive():
                print(f"Windows asks: {order.label}", flush=True)
                self.answer(order)

    def answer(self, order: Any) -> None:
        """Carry out one order and send what it has found; what fails is said here."""
        back = order.body.decode("ascii", "replace")
        lines: list[str] = []
        try:
            lines.extend(self.orders[order.label](back))
        except Exception as error:  # Windows goes on with its other questions
            print(f"  {type(error).__name__}: {error}", flush=True)
        with self.open(back + "verdicts") as verdicts:
            body = "\n".join(lines).encode("ascii")
            verdicts.send(body, label=order.label, correlation_identifier=order.identifier)
        if order.label == "delete":
            self._pause(3)
            with BlockingClient(self._target) as client:
                self._delete(client, "read")

    def _arrived(self, _: str) -> Answers:
        found = self._messages("plain", "express")
        express = [each for each in found if each.label == "express"]
        yield f"B21 rpcqm {_compared(express[-1]) if express else NOT_ASKED}"
        steps = [each.label for each in self._messages("stream", "commit3")]
        kept = [label for label in steps if label.startswith(("abort", "commit"))]
        yield f"B22 rpcqm text {','.join(kept)}"
        for message in express[-1:]:
            yield f"B23 rpcqm text {str(message.response_queue).partition(':')[0]}"
            yield f"B24 rpcqm {'yes' if message.sender_identifier else 'no'}"
            yield f"B25 rpcqm number {message.hash_algorithm}"
        yield f"B26 rpcqm number {self.dead_letters(REPORTED)}"

    def _messages(self, name: str, last: str) -> list[Any]:
        """What comes into a queue until a message with that label has, or nothing does."""
        found: list[Any] = []
        with self.open(name) as queue:
            for message in queue.receive(timeout=self._patience):
                found.append(message)
                if message.label == last:
                    break
        return found

    def dead_letters(self, label: str) -> int:
        """How many dead letters here have a label."""
        with self.open("DeadLetter$", peek_only=True) as letters:
            return sum(letter.label == label for letter in letters.browse())

    def _reverse(self, back: str) -> Answers:
        for question, name, transactional in REVERSE:
            yield f"{question} windows {self.reported(back + name, transactional)}"
        yield f"B40 rpcqm number {self.dead_letters(BACK)}"

    def reported(self, to: str, transactional: bool, label: str = BACK) -> str:
        """The class of the report on a message that is sent there; `nothing` if none comes."""
        with self.open(to) as queue, self.open("told") as told:
            with queue.transaction() if transactional else contextlib.nullcontext():
                identifier = queue.send(
                    bytes(4000),
                    label=label,
                    acknowledgements=ARRIVAL,
                    administration_queue=told.name,
                    dead_letter=True,
                )
            report = told.receive_one(self._patience, correlation=identifier)
            return f"class 0x{report.message_class:04X}" if report else "nothing"

    def _fill(self, _: str) -> Answers:
        with contextlib.suppress(LookupError, OSError):
            self._old_reads = self._calls_of("qm2qm")
        with self.open("read") as read:
            read.send(b"", label="late")
            message = read.receive_one(0)
            assert message is not None
            read.move(message, "late")
            for label in ("one", "two", "three", "four"):
                read.send(b"body of " + label.encode(), label=label)
        with self.open("reads") as reads, reads.transaction():
            reads.send(b"", label="one")
        yield from ()

    def _calls(self, _: str) -> Answers:
        used = self._calls_of("qm2qm") > self._old_reads
        yield f"C16 rpcqm {'yes' if used else 'no'}"

    def _calls_of(self, interface: str) -> float:
        """How many calls of an interface there were, by the metrics.

        Raises KeyError without a port for them, and OSError if they are not told.
        """
        host, port = ReadyFile.read(self._directory / ENDPOINT_FILE).endpoints["console"]
        proof = base64.b64encode(f"{ACCOUNT}:{self._password}".encode()).decode()
        request = urllib.request.Request(
            f"http://{host}:{port}/metrics", headers={"Authorization": f"Basic {proof}"}
        )
        with urllib.request.urlopen(request, timeout=self._patience) as answer:
            told = answer.read().decode()
        start = f'rpcqm_rpc_call_duration_seconds_count{{interface="{interface}",'
        counts = [line.rpartition(" ")[2] for line in told.splitlines() if line.startswith(start)]
        return sum(map(float, counts))

    def _web(self, back: str) -> Answers:
        found = self._messages("web", "web")
        yield f"D03 rpcqm {'yes' if found else 'no'}"
        for message in found[-1:]:
            yield f"D04 rpcqm text {_elements(message.soap_envelope)}"
        host = back.partition(":")[2].partition("\\")[0]
        yield f"D05 windows {self._posted(f'DIRECT=HTTP://{host}/msmq/private$/wcheck-web')}"

    def _posted(self, to: str) -> str:
        """Whether a message that is sent there over HTTP has left."""
        with self.open(to) as queue:
            queue.send(b"two apples", label="web")
        with BlockingClient(self._target) as client:
            for _ in range(10):
                waits = client.run(client.management.outgoing_queue(FormatName.parse(to)))
                if waits is None or not waits.message_count:
                    return "ok"
                self._pause(1)
        return NOT_ASKED


def _compared(message: Any) -> str:
    """`yes`, or which properties did not arrive as check.ps1 has set them."""
    others = [name for name, value in EXPRESS.items() if getattr(message, name) != value]
    return f"text {','.join(others)}" if others else "yes"


def _elements(envelope: str) -> str:
    """The names of an envelope's elements, in their order."""
    root = bodies.parse_xml(envelope.encode())
    return ",".join(str(each.tag).rpartition("}")[2] for each in root.iter())


def serve(data_dir: str | None = None) -> int:
    """Be the other side until Ctrl-C; 1 if the queue manager is not there or refuses something."""
    try:
        station = Station(data_dir)
        password = station.prepare()
    except (MQError, mq.ServerUnreachableError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The account {ACCOUNT} has the password {password}. Waiting for Windows; Ctrl-C ends.")
    try:
        station.listen()
    except KeyboardInterrupt:
        print()
    finally:
        station.clean()
    return 0
