"""What any family of templates does otherwise ends a served process that compares.

One place of the product is wrong for each family; test_shadow.py says that nothing notices it
without RPCQM_SHADOW=1.
"""

import asyncio
import contextlib
import importlib
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import HandleLostError, OutcomeUnknownError, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.mutations import hook
from tests.support.fast import templates
from tests.support.ports import reserved_port
from tests.support.shadow import switch

MANY = 40
OWN = FormatName.parse(r"DIRECT=OS:.\private$\orders")
ELSEWHERE = r"DIRECT=OS:other\private$" + "\\"
ENDED = (
    OutcomeUnknownError,
    HandleLostError,
    ServerUnreachableError,
    subprocess.CalledProcessError,
    ConnectionError,
)
"""What clients are told whose queue manager ends."""


class Wrong(NamedTuple):
    """One place of a module, and what is there instead."""

    module: str
    right: str
    wrong: str


def environment(folder: Path, wrong: Wrong) -> dict[str, str]:
    """That of a queue manager that is wrong there, and compares."""
    path = importlib.import_module(f"rpcqm.{wrong.module}").__file__
    assert path is not None
    source = Path(path).read_text("utf-8")
    assert source.count(wrong.right) == 1
    changed = source.replace(wrong.right, wrong.wrong)
    folder.mkdir()
    change = {"module": f"rpcqm.{wrong.module}", "path": path, "source": changed}
    return hook.environment(folder, change) | {templates.VARIABLE: "true"} | switch.ON


def await_end(machine: PrivateQueueManager) -> None:
    assert machine.process is not None
    assert machine.process.wait(60) == switch.EXIT_STATUS
    assert "templates differ from the careful path" in machine.log


# One queue manager


def send(machine: PrivateQueueManager, to: FormatName = OWN, **options: Any) -> None:
    """Send a few, which teach templates, and many at once, which leave in one run."""

    async def story() -> None:
        async with QueueManagerClient(machine.target) as client, client.open_sender(to) as sender:
            message = OutgoingMessage(b"body", **options)
            for count in (1, 1, 1, MANY, MANY):
                await asyncio.gather(*[sender.send(message) for _ in range(count)])

    asyncio.run(story())


ASKING: dict[str, Any] = {
    "acknowledgements": AcknowledgementsRequested.ACK_POS_ARRIVAL,
    "administration_queue": FormatName.parse(r"DIRECT=OS:here\private$\answers"),
}


def receive(machine: PrivateQueueManager) -> None:
    send(machine)
    with machine.client() as client, client.open_reader(OWN) as reader:
        for _ in range(MANY):
            with reader.receive(0):
                pass


def peek(machine: PrivateQueueManager) -> None:
    send(machine)
    with machine.client() as client, client.open_reader(OWN, peek_only=True) as reader:
        for _ in range(MANY):
            reader.peek(0)


def receive_as_dependent(machine: PrivateQueueManager) -> None:
    async def story() -> None:
        async with (
            QueueManagerClient(machine.target) as client,
            client.open_dependent(OWN) as queue,
        ):
            for _ in range(MANY):
                await queue.receive(0)

    send(machine)
    asyncio.run(story())


Story = Callable[[PrivateQueueManager], None]
TURN, STARTS = "fast.turn", "fast.doors.rpc_start"
ALONE: dict[str, tuple[Wrong, Story]] = {
    "a message is sent": (
        Wrong("fast.doors.rpc_sent_values", "priority, tag or 0,", "priority, 7,"),
        send,
    ),
    "one is sent that asks to be acknowledged": (
        Wrong(TURN, "(ordinals.take() & 0xFFFF_FFFF,", "(ordinals.take() + 1,"),
        partial(send, **ASKING),
    ),
    "a read starts": (
        Wrong(STARTS, "times_at(first.arrival,", "times_at(first.arrival + 1000,"),
        receive,
    ),
    "a read ends": (
        Wrong("fast.doors.rpc_end", "Response(result=0)", "Response(result=1)"),
        receive,
    ),
    "what was read is removed": (
        Wrong(TURN, "change, queue, list(run.by_key)", "change, queue, []"),
        receive,
    ),
    "a message is peeked at": (
        Wrong(STARTS, "times_at(found.arrival, found.key)", "times_at(found.arrival, 7)"),
        peek,
    ),
    "a dependent client receives": (
        Wrong(
            "fast.doors.rpc_receive_answers", "            application_tag,\n", "            7,\n"
        ),
        receive_as_dependent,
    ),
}


@pytest.mark.parametrize("family", ALONE)
def test_a_difference_ends_a_queue_manager(tmp_path: Path, family: str) -> None:
    wrong, story = ALONE[family]
    other = environment(tmp_path / "hook", wrong)
    with private_queue_manager((), 'name = "here"', other) as machine:
        for queue in ("orders", "answers"):
            machine.run("queue", "create", queue)
        with pytest.raises(ENDED):
            story(machine)
        await_end(machine)


# Two queue managers


def send_in_order(machine: PrivateQueueManager, to: FormatName) -> None:
    words = "--transactional", "--body", "x", "--count", str(MANY)
    for _ in range(3):
        machine.run("send", str(to), *words)


SendTo = Callable[[PrivateQueueManager, FormatName], None]
ARRIVING, LEAVING = "fast.doors.session_arrival", "fast.doors.session_outgoing"
RECEIVER: dict[str, tuple[Wrong, SendTo, str]] = {
    "recoverable messages arrive": (
        Wrong(ARRIVING, "+= [shape.priority] * count", "+= [7] * count"),
        send,
        "orders",
    ),
    "express messages arrive": (
        Wrong(ARRIVING, "+= map(add, packets, repeat(beside))", "+= map(bytes.upper, packets)"),
        partial(send, recoverable=False),
        "orders",
    ),
    "messages arrive in order": (
        Wrong(ARRIVING, "= self.last.number, 0", "= self.last.number - 1, 0"),
        send_in_order,
        "stream",
    ),
    "messages arrive that ask to be acknowledged": (
        Wrong(
            "fast.arrival_runs",
            "quotas.admit(queue, len(stored",
            "store.metrics.count(str(stored",
        ),
        partial(send, **ASKING),
        "orders",
    ),
}
OTHERWISE = "self.packets += [each[:-1] + b'!' for each in taken]"
SENDER: dict[str, tuple[Wrong, SendTo, str]] = {
    "messages leave": (Wrong(LEAVING, "self.packets += taken", OTHERWISE), send, "orders"),
    "messages leave in order": (
        Wrong(
            "fast.doors.session_stamped",
            "_STAMP.pack(stamp.sequence.value, stamp.number",
            "_STAMP.pack(7, stamp.number",
        ),
        send_in_order,
        "stream",
    ),
    "what has left is removed": (
        Wrong("fast.doors.session_outgoing_runs", "queue, keys, look=", "queue, keys[1:], look="),
        send,
        "orders",
    ),
}


def create_queues(machine: PrivateQueueManager) -> None:
    for queue in ("orders", "answers"):
        machine.run("queue", "create", queue)
    machine.run("queue", "create", "stream", "--transactional")


Machines = tuple[PrivateQueueManager, PrivateQueueManager]


@contextlib.contextmanager
def two(here: dict[str, str], other: dict[str, str]) -> Iterator[Machines]:
    """Two queue managers with these environments that know each other."""
    ports = reserved_port(), reserved_port()
    peers = f"here=127.0.0.1:{ports[0]}, other=127.0.0.1:{ports[1]}"
    with contextlib.ExitStack() as stack:
        machines = [
            stack.enter_context(
                private_queue_manager(
                    ("--binary-port", str(port)),
                    f'name = "{name}"\n[binary]\npeers = "{peers}"\nretry_milliseconds = 100\n',
                    environment,
                )
            )
            for name, port, environment in zip(("here", "other"), ports, (here, other), strict=True)
        ]
        for machine in machines:
            create_queues(machine)
        yield machines[0], machines[1]


@pytest.mark.parametrize("family", [*RECEIVER, *SENDER])
def test_a_difference_of_a_session_ends_a_queue_manager(tmp_path: Path, family: str) -> None:
    """All that has been sent meanwhile goes out once the other one is there."""
    wrong, story, queue = (RECEIVER | SENDER)[family]
    changed, right = environment(tmp_path / "hook", wrong), {templates.VARIABLE: "true"}
    sends = family in SENDER
    given = (changed, right) if sends else (right, changed)
    with two(*given) as (here, other):
        other.stop()
        story(here, FormatName.parse(ELSEWHERE + queue))
        other.start()
        await_end(here if sends else other)
