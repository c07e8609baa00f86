#!/usr/bin/env python3
"""CPU per message of the queue manager's engine, the write to the disk taken out.

Usage: engine.py [--messages N] [--profile enqueue|receive]

Recoverable messages of 1 KiB through the ordinary events over a real store: admission, index,
batch, publication and answers are counted; what RocksDB takes to write a group is subtracted.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from figures import Figure, attempt, figure
from harness import WriteTimer, few

from rpcqm.adm.message import Message
from rpcqm.base.clock import SystemClock, Timers
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store

GROUP = 64
BODY = bytes(1024)
ROWS = {
    "compose": "compose a 1 KiB message",
    "enqueue": "enqueue it, recoverable",
    "receive": "receive it in two phases",
}


class Bench:
    """One queue manager with one queue, and the CPU that its writes take."""

    def __init__(self, directory: Path) -> None:
        self.turn: list[Callable[[], None]] = []
        clock = SystemClock()
        settings = StoreSettings(reserve=0)
        self.store = Store.open(
            directory, end_of_turn=self.turn.append, clock=clock, settings=settings
        )
        self.engine = QueueManagerEngine(self.store, clock, Timers(clock))
        self.engine.queue_manager_started()
        self.settle()
        queues = self.engine.queues
        created = queues.create_queue(queues.new_queue(r".\private$\bench"))
        self.settle()
        self.queue = created.result()
        name = queues.format_name_of(self.queue)
        self.sending = self.engine.opening.open_queue(name, QueueAccessType.SEND_ACCESS)
        self.receiving = self.engine.opening.open_queue(name, QueueAccessType.RECEIVE_ACCESS)
        self.writes = WriteTimer(self.store)

    def settle(self) -> None:
        while self.turn:
            self.turn.pop(0)()

    def compose(self) -> Message:
        attributes = MessageAttributes(body=BODY, delivery_guarantee=1)
        return self.engine.composer.compose(self.sending, attributes, None)

    def enqueue(self, messages: int) -> None:
        packet = self.compose().packet
        send = self.engine.messages.enqueue_message_to_an_open_queue
        for _ in range(messages // GROUP):
            for _ in range(GROUP):
                send(self.sending, Message(packet))
            self.settle()

    def receive(self, messages: int) -> None:
        events = self.engine.messages
        for _ in range(messages // GROUP):
            for _ in range(GROUP):
                message = events.dequeue_message_begin(self.receiving, 0, None, 1).result()
                position = events.position(self.queue, message.lookup_identifier)
                assert position is not None
                events.dequeue_message_end(self.receiving, position, True)
            self.settle()

    def microseconds(self, function: Callable[[int], None], messages: int) -> float:
        """CPU per message, without the writes."""
        self.writes.seconds = 0.0
        began = time.thread_time()
        function(messages)
        return (time.thread_time() - began - self.writes.seconds) / messages * 1e6


def measure(messages: int, rounds: int = 5) -> dict[str, float]:
    """Medians of CPU microseconds per message."""
    times: dict[str, list[float]] = {"compose": [], "enqueue": [], "receive": []}
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory))
        for _ in range(rounds):
            began = time.thread_time()
            for _ in range(1000):
                bench.compose()
            times["compose"].append((time.thread_time() - began) * 1000)
            times["enqueue"].append(bench.microseconds(bench.enqueue, messages))
            times["receive"].append(bench.microseconds(bench.receive, messages))
        bench.store.close()
    return {name: statistics.median(values) for name, values in times.items()}


def figures() -> list[Figure]:
    messages = few(64 * 200)
    again = partial(measure, messages, 1)
    return [
        figure(ROWS[what], value).explained(os.getpid(), again)
        for what, value in measure(messages).items()
    ]


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    yield from attempt(ROWS.values(), figures)


def profile(which: str, messages: int) -> None:
    """Print where the time goes."""
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory))
        bench.enqueue(messages)
        profiler = cProfile.Profile()
        profiler.enable()
        (bench.enqueue if which == "enqueue" else bench.receive)(messages)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        bench.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=64 * 200)
    parser.add_argument("--profile", choices=["enqueue", "receive"])
    arguments = parser.parse_args()
    if arguments.profile:
        profile(arguments.profile, arguments.messages)
    else:
        for name, value in measure(arguments.messages).items():
            print(f"{name}: {value:.1f} µs")


if __name__ == "__main__":
    main()
