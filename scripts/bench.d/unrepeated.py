"""What templates cost a client whose requests never repeat, in the server's processor time.

Each message has an extension of its own, which is a constant of every shape, so that no template
fits. The same streams go to two servers, one with templates and one without, in turns; server and
load have a processor each.
"""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import UUID

from authenticated import NONE, Connection
from durable_calls import CONFIGURATION, QUEUE, opening_for_sending
from figures import Figure, attempt, figure
from harness import BUILD, computed, few, load_streams
from served import EVERYONE, Served, serving

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.types import mqmq, qmcomm2

CONNECTIONS, CALLS, PAIRS = 16, 400, 15
OUTSIDE = 3
"""Of the sorted ratios, how many lie outside on each side: between the others the median of all
pairs there could be lies with 96 %."""
WITHOUT = f"{CONFIGURATION}[limits]\nrequest_templates = false\n"
BODY = bytes(1024)
NAME = "sends that never repeat, with templates over without, speed by processor time, at least"


def message(source: Random, handle: bytes) -> qmcomm2.rpc_ACSendMessageExRequest:
    made = OutgoingMessage(body=BODY, extension=source.randbytes(source.randint(8, 64)))
    return qmcomm2.rpc_ACSendMessageExRequest(
        hQueue=handle,
        ptb=transfer_buffer_of(made, 0),
        pMessageID=mqmq.OBJECTID(Lineage=UUID(int=0)),
    )


def seconds_per_call(served: Served, directory: Path, seed: int, calls: int = CALLS) -> float:
    """Of the server's processor, for a round of calls that are all different."""
    interfaces = [load_interface(name) for name in ("qmcomm", "qmcomm2")]
    made = [Connection(served.port, interfaces[0], NONE, interfaces[1]) for _ in range(CONNECTIONS)]
    streams: dict[int, Path] = {}
    source = Random(seed)
    for number, connection in enumerate(made):
        opened = connection.call("rpc_QMOpenQueueInternal", opening_for_sending())
        values = [message(source, opened.phQueue) for _ in range(calls)]
        path = streams[connection.socket.fileno()] = directory / f"stream-{number}"
        connection.prepare("rpc_ACSendMessageEx", values, path)
    before = computed(served.pid)
    seen = load_streams(streams)
    took = computed(served.pid) - before
    for connection in made:
        connection.close()
    return took / seen.calls


def measure() -> Figure:
    BUILD.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        both = [
            stack.enter_context(serving(directory / name, configuration))
            for name, configuration in (("with", CONFIGURATION), ("without", WITHOUT))
        ]
        for served in both:
            served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
            seconds_per_call(served, directory, -1, few(CALLS))
        ratios = []
        for seed in range(PAIRS):
            ours, careful = (
                seconds_per_call(served, directory, seed, few(CALLS)) for served in both
            )
            ratios.append(careful / ours)
        made = of_ratios(sorted(ratios))
        again = partial(seconds_per_call, both[0], directory, PAIRS, few(CALLS))
        return made.explained(both[0].pid, again)


def of_ratios(ratios: list[float]) -> Figure:
    """The end of the median's interval."""
    least, most = ratios[OUTSIDE], ratios[-1 - OUTSIDE]
    median = statistics.median(ratios)
    note = f"{PAIRS} pairs; median {median:.3f}, with 96 % from {least:.3f} to {most:.3f}"
    return figure(NAME, least, note)


def run() -> Iterator[Figure]:
    yield from attempt(NAME, measure)
