"""The loads that two commits are compared by: so many calls, and what servers compute for each.

A load is opened with the environment in which a commit's rpcqm is taken, and a directory; it gives
what carries out a round, and tells seconds of processor time for an operation. Who calls is of this
checkout for both.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import api
import dcom
import sealed
import srmp
import transfer
import unrepeated
import watching
from authenticated import ACCOUNT, NONE, PRIVACY
from durable import stock
from durable_calls import (
    CONFIGURATION,
    QUEUE,
    different,
    equal,
    receiving,
    sending,
    sent_before,
    to_send,
)
from harness import HERE, computed, few, load, load_streams
from null_call import script
from peeking import in_the_middle, peeking
from served import EVERYONE, Served, serving
from sessions import queue_manager, received

from rpcqm.rpc.constants import AuthenticationLevel
from tests.support.dcom.dcom_client import DcomClient

Environment = Mapping[str, str]
Cost = Callable[[], float]
Open = Callable[[Environment, Path], AbstractContextManager[Cost]]

SIZE = 1024


def cost(pids: Sequence[int], work: Callable[[], int]) -> float:
    """Seconds of processor time of some processes, all their threads, for each operation."""
    before = sum(map(computed, pids))
    done = work()
    return (sum(map(computed, pids)) - before) / done


@contextmanager
def queueing(
    environment: Environment, place: Path, configuration: str = CONFIGURATION, *options: str
) -> Iterator[Served]:
    """A server with the queue of the benches."""
    with serving(place, configuration, options=options, environment=environment) as served:
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        yield served


@contextmanager
def sends(
    environment: Environment, place: Path, *, connections: int, calls: int, window: int = 1
) -> Iterator[Cost]:
    """Durable sends of 1 KiB."""
    with queueing(environment, place) as served:
        calling = replace(sending(SIZE).ours, window=window)

        def work() -> int:
            return load(served.port, connections, calling, 0, 0, few(calls)).calls

        yield partial(cost, [served.pid], work)


@contextmanager
def receives(
    environment: Environment, place: Path, *, connections: int, messages: int
) -> Iterator[Cost]:
    """Durable receives, two calls each, of what is put there before each round."""
    with queueing(environment, place) as served:
        calling, count = receiving(SIZE).ours, few(messages)

        def work() -> int:
            return load(served.port, connections, calling, 0, 0, 2 * count).calls

        def round_of() -> float:
            stock(served, count + connections, SIZE)
            return cost([served.pid], work)

        yield round_of


@contextmanager
def prepared(
    environment: Environment,
    place: Path,
    *,
    level: AuthenticationLevel,
    calls: int,
    window: int = 1,
    differing: bool = False,
) -> Iterator[Cost]:
    """Sends that are made before they are sent: sealed ones, or ones that differ."""
    with queueing(environment, place) as served:
        prepare = to_send(different if differing else equal(SIZE), few(calls) // 16, window)

        def round_of() -> float:
            with sent_before(served.port, level, 16, prepare) as made:
                work = partial(load_streams, made, window=window)
                return cost([served.pid], lambda: work().calls)

        yield round_of


@contextmanager
def sends_that_never_repeat(environment: Environment, place: Path) -> Iterator[Cost]:
    with queueing(environment, place) as served:
        seeds = iter(range(1 << 30))
        calls = few(unrepeated.CALLS)
        yield lambda: unrepeated.seconds_per_call(served, place, next(seeds), calls)


@contextmanager
def null_calls(environment: Environment, place: Path) -> Iterator[Cost]:
    with serving(place, CONFIGURATION, environment=environment) as served:
        calling = script(served.port)

        def work() -> int:
            return load(served.port, 16, calling, 0, 0, few(40_000)).calls

        yield partial(cost, [served.pid], work)


@contextmanager
def sealed_null_calls(environment: Environment, place: Path) -> Iterator[Cost]:
    with serving(place, sealed.CONFIGURATION, environment=environment) as served:
        yield lambda: 1 / sealed.rate(served, PRIVACY, sealed.null, 16, 1_000)


@contextmanager
def peeks(environment: Environment, place: Path) -> Iterator[Cost]:
    with queueing(environment, place) as served:
        calling = peeking(in_the_middle(served))

        def work() -> int:
            return load(served.port, 16, calling, 0, 0, few(30_000)).calls

        yield partial(cost, [served.pid], work)


@contextmanager
def sessions(
    environment: Environment,
    place: Path,
    *,
    transactional: bool = False,
    differing: bool = False,
) -> Iterator[Cost]:
    """Messages that come by the binary protocol from four sessions."""
    with queue_manager("receiver", environment=environment) as served:
        kind = ("--transactional",) if transactional else ()
        served.run("queue", "create", QUEUE, *kind)
        assert served.process is not None
        port = served.endpoint("binary")[1]

        def work() -> int:
            count = few(10_000 if differing else 30_000)
            return received(
                port, QUEUE, 4, transactional, 0, 0, differing=differing, calls=count
            ).calls

        yield partial(cost, [served.process.pid], work)


@contextmanager
def transfers(environment: Environment, place: Path, *, http: bool = False) -> Iterator[Cost]:
    """Messages from one queue manager to another: what both compute, without the sending."""
    options = srmp.FREE_PORT if http else ()
    with transfer.two(options, environment=environment) as made:
        pair = made
        if http:
            url = f"http://127.0.0.1:{made.receiver.endpoint('http')[1]}/msmq/private$/{QUEUE}"
            pair = replace(made, elsewhere=f"DIRECT={url.replace('http', 'HTTP', 1)}")
            pair.send(1)
            pair.wait(2)
        assert made.sender.process is not None
        assert made.receiver.process is not None
        both = [made.sender.process.pid, made.receiver.process.pid]

        def round_of() -> float:
            before, sent = pair.backlog(few(4_000 if http else 20_000))

            def work() -> int:
                pair.act("RESUME")
                pair.wait(before + sent)
                return sent

            return cost(both, work)

        yield round_of


@contextmanager
def programs(environment: Environment, place: Path, *, receive: bool) -> Iterator[Cost]:
    """Requests over /api/v1."""
    with serving(place, api.CONFIGURATION, environment=environment) as served:
        send, receiver = api.programs(served, api.prepared(served))
        asking = receiver if receive else send
        yield lambda: asking.measured().cost


@contextmanager
def posts(environment: Environment, place: Path) -> Iterator[Cost]:
    """Messages that come over HTTP."""
    with queue_manager("receiver", options=srmp.FREE_PORT, environment=environment) as served:
        served.run("queue", "create", "orders")
        assert served.process is not None
        work = partial(srmp.posted, served.endpoint("http")[1], "orders", 0, 0, few(12_000))
        pids = [served.process.pid]
        yield lambda: cost(pids, lambda: work().calls)


@contextmanager
def objects(environment: Environment, place: Path, *, call: str) -> Iterator[Cost]:
    """Calls of COM objects: a property by its opnum or by its name, or Send."""
    doors = ("--epm-port", "0", "--dcom-port", "0")
    with (
        queueing(environment, place, dcom.CONFIGURATION, *doors) as served,
        DcomClient(("127.0.0.1", served.endpoints["epm"][1]), ACCOUNT) as com,
    ):
        amount = dcom.Amount(500, None)
        made = com.create(dcom.MSMQ_MESSAGE, dcom.INTERFACE)
        queue = dcom.opened_queue(com)
        rates: dict[str, Callable[[], float]] = {
            "property": partial(dcom.property_get, served, com, made.ipid, amount),
            "invoke": partial(dcom.property_get_by_name, served, com, made.ipid, amount),
            "send": partial(dcom.send_by_object, served, com, queue, body=False, amount=amount),
        }
        yield lambda: 1 / rates[call]()


@contextmanager
def starts(environment: Environment, place: Path) -> Iterator[Cost]:
    """A start of `rpcqm serve`, until it is ready."""
    yield lambda: watching.computed_by_start(place, "0", environment)


@contextmanager
def store_starts(environment: Environment, place: Path) -> Iterator[Cost]:
    """Opening a store with many messages."""
    paths = f"{environment['PYTHONPATH']}:{HERE}"
    given = {**environment, "PYTHONPATH": paths}
    argv = [sys.executable, str(HERE / "startup.py")]
    filling = [*argv, "--fill", str(place), "--messages", str(few(100_000))]
    subprocess.run(filling, env=given, check=True)

    def round_of() -> float:
        told = subprocess.check_output([*argv, "--measure", str(place)], env=given)
        return float(json.loads(told)["cpu_seconds"])

    yield round_of


LOADS: dict[str, Open] = {
    "durable-send-1": partial(sends, connections=1, calls=3_000),
    "durable-send-16": partial(sends, connections=16, calls=12_000),
    "durable-send-64": partial(sends, connections=64, calls=16_000),
    "durable-receive-1": partial(receives, connections=1, messages=2_000),
    "durable-receive-16": partial(receives, connections=16, messages=8_000),
    "durable-receive-64": partial(receives, connections=64, messages=10_000),
    "durable-sealed": partial(prepared, level=PRIVACY, calls=9_600),
    "durable-differing": partial(prepared, level=NONE, calls=9_600, differing=True),
    "unrepeated": sends_that_never_repeat,
    "rabbitmq-saturated": partial(sends, connections=4, window=64, calls=60_000),
    "rabbitmq-sealed": partial(prepared, level=PRIVACY, calls=20_000, window=16),
    "binary-receive": sessions,
    "binary-transactional": partial(sessions, transactional=True),
    "binary-differing": partial(sessions, differing=True),
    "transfer": transfers,
    "null_call": null_calls,
    "sealed": sealed_null_calls,
    "peeking": peeks,
    "api-send": partial(programs, receive=False),
    "api-receive": partial(programs, receive=True),
    "srmp-receive": posts,
    "srmp-transfer": partial(transfers, http=True),
    "dcom-property": partial(objects, call="property"),
    "dcom-invoke": partial(objects, call="invoke"),
    "dcom-send": partial(objects, call="send"),
    "startup-serve": starts,
    "startup-store": store_starts,
}
