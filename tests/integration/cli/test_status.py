"""`rpcqm status`, and lists of queues by pattern and again and again."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rpcqm.testing import PrivateQueueManager, private_queue_manager

Command = Callable[..., Any]


@contextmanager
def running(queue_manager: PrivateQueueManager, *words: str) -> "Iterator[subprocess.Popen[str]]":
    """A command in the background, which Ctrl-C ends at last."""
    data = ("--data-dir", str(queue_manager.data_dir))
    command = [sys.executable, "-m", "rpcqm", *words, *data]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()


def status_of(queue_manager: PrivateQueueManager, queue: str, *options: str) -> dict[str, Any]:
    words = ("status", queue, "--interval", "0", "--json", *options)
    (found,) = json.loads(queue_manager.run(*words).stdout)["queues"]
    assert isinstance(found, dict)
    return found


def test_status_counts_messages_that_come_and_go(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    empty = status_of(queue_manager, queue)
    assert (empty["messages"], empty["oldest"], empty["came"], empty["left"]) == (0, None, 0, 0)
    run("send", queue, "--body", "low", "--priority", "1")
    run("send", queue, "--body", "high", "--priority", "7", "--count", "2")
    run("receive", queue)
    told = status_of(queue_manager, queue)
    assert (told["messages"], told["came"], told["left"]) == (2, 3, 1)
    low = json.loads(run("peek", queue, "--all", "--json").lines[-1])
    assert told["oldest"][:19] == low["arrived"][:19]
    assert told["in_per_second"] > told["out_per_second"] > 0


def test_status_tells_of_readers_that_wait(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    assert status_of(queue_manager, queue)["waiting"] == 0
    with running(queue_manager, "receive", queue, "--timeout", "infinite") as process:
        while not status_of(queue_manager, queue)["waiting"]:
            assert process.poll() is None
        told = status_of(queue_manager, queue)
        assert (told["open"], told["waiting"]) == (1, 1)


def test_rates_are_those_of_the_interval(run: Command, queue: str) -> None:
    run("send", queue, "--body", "x")
    (told,) = json.loads(run("status", queue, "--interval", "100ms", "--json").output)["queues"]
    assert (told["came"], told["in_per_second"], told["messages"]) == (1, 0.0, 1)


def test_status_names_queues_elsewhere_and_survives_a_restart() -> None:
    there = r"DIRECT=OS:nowhere.invalid\private$\orders"
    with private_queue_manager() as queue_manager:
        queue_manager.run("queue", "create", "bills")
        queue_manager.run("send", "bills", "--body", "x", "--count", "3")
        queue_manager.run("send", there, "--body", "x")
        before = status_of(queue_manager, "bills")
        queue_manager.restart()
        here, elsewhere = status_of(queue_manager, "bills"), status_of(queue_manager, there)
    assert here | {"came": 3, "in_per_second": 0} == before | {"in_per_second": 0}
    assert (here["came"], here["left"]) == (0, 0)
    assert (elsewhere["queue"], elsewhere["messages"]) == (there, 1)


def test_a_pattern_is_a_part_of_a_name_or_a_whole_one_with_wildcards(
    run: Command, name: str
) -> None:
    for each in (f"{name}-alpha", f"{name}-beta", f"{name}-alphabet"):
        run("queue", "create", each)

    def listed(*words: str) -> list[str]:
        found = json.loads(run("queue", "list", *words, "--json").output)
        return sorted(each["path_name"].rpartition("\\")[2] for each in found)

    assert listed(f"{name}-ALPHA") == [f"{name}-alpha", f"{name}-alphabet"]
    assert listed(f"{name}-*a") == [f"{name}-alpha", f"{name}-beta"]
    assert listed(f"{name}-bet?") == [f"{name}-beta"]
    assert listed(f"no-{name}") == []
    there = rf"DIRECT=OS:nowhere.invalid\private$\{name}"
    run("send", there, "--body", "x")
    for pattern, count in ((name, 1), (f"no-{name}", 0)):
        outgoing = json.loads(run("queue", "list", pattern, "--outgoing", "--json").output)
        assert len(outgoing) == count


def test_a_watched_list_is_told_again_until_it_is_interrupted(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    words = ("queue", "list", queue, "--watch", "--interval", "10ms")
    with running(queue_manager, *words) as process:
        assert process.stdout is not None
        told = ""
        while " 0 B " not in told:
            told = process.stdout.readline()
        run("send", queue, "--body", "x")
        while " 1  " not in told:
            told = process.stdout.readline()
            assert process.poll() is None
