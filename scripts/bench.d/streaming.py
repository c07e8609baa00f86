"""The source and the sink `msmq`: queues over loopback TCP at PKT_PRIVACY, one executor core.

A message is planned (listed by the driver), read (by the executor), written (Parquet), and removed
when the next batch is planned. The rate is over all of it; apart from it stand the rate after the
first batch and what is left of the time then.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from authenticated import ACCOUNT
from figures import Figure, attempt, figure
from harness import HERE, few, processor_seconds

from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer
from rpcqm.pipeline.queue_options import QueueOptions
from rpcqm.pipeline.queue_source import IdentifierPartition, QueueStreamReader, visible
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager

READ = "messages read by one executor core"
STREAMED = "messages planned, read, written and removed"
STEADY = "messages of a stream after its first batch"
CONSTANT = "seconds of a stream that do not depend on its length"
SENT = "rows sent to a queue"
CONFIGURATION = "[security]\nsupporting_server = true\n"
"""Over the network a sink sends as a dependent client does."""
MESSAGES, BATCH, BODY, SENDERS = few(40_000), 10_000, 1024, 64
_PROGRAM = """
import json, os, sys, time
sys.path.insert(0, os.environ["BENCHES"])
from harness import processor_seconds
from rpcqm.pipeline.session import spark_session
server, user, password, directory, batch = sys.argv[1:]
spark = spark_session("local[1]", "bench", **{"spark.driver.host": "127.0.0.1"})
spark.range(1).count()
options = {"server": server, "user": user, "password": password}
began, before = time.perf_counter(), processor_seconds(os.getpid())
frame = spark.readStream.format("msmq").options(**options, queue="bench", maxMessagesPerBatch=batch)
writer = frame.load().writeStream.format("parquet").trigger(availableNow=True)
query = writer.option("checkpointLocation", f"{directory}/checkpoint").start(f"{directory}/out")
query.awaitTermination()
streamed, processors = time.perf_counter() - began, processor_seconds(os.getpid()) - before
batches = [each for each in query.recentProgress if each.numInputRows]
later = sum(each.durationMs["triggerExecution"] for each in batches[1:]) / 1000
told = {"streamed": streamed, "processors": processors, "later": later}
counts = [each.numInputRows for each in batches]
told |= {"rows": sum(counts), "rows later": sum(counts[1:])}
rows = spark.read.parquet(f"{directory}/out").select("body", "label").cache()
told["sent"] = rows.count()
began = time.perf_counter()
rows.write.format("msmq").options(**options, queue="sink").mode("append").save()
told["sending"] = time.perf_counter() - began
print(json.dumps(told))
spark.stop()
"""


async def _fill(queue_manager: PrivateQueueManager) -> None:
    async with (
        QueueManagerClient(LocalServer(queue_manager.socket)) as client,
        client.open_sender(format_name("bench")) as sender,
    ):

        async def some() -> None:
            for _ in range(MESSAGES // SENDERS):
                await sender.send(OutgoingMessage(os.urandom(BODY)))

        await asyncio.gather(*(some() for _ in range(SENDERS)))


def _read(options: QueueOptions) -> float:
    """What an executor does, without Spark: messages a second in Arrow batches."""
    reader = QueueStreamReader(options)
    identifiers = list(visible(options))
    began = time.perf_counter()
    rows = sum(len(batch) for batch in reader.read(IdentifierPartition(identifiers)))
    assert rows == len(identifiers)
    return rows / (time.perf_counter() - began)


def _count(queue_manager: PrivateQueueManager, queue: str) -> int | None:
    with (
        queue_manager.client() as client,
        client.open_bulk_reader(format_name(queue), peek_only=True) as reader,
    ):
        return reader.count()


def _program(queue_manager: PrivateQueueManager, server: str, directory: str) -> list[Figure]:
    """The whole stream, and the sink with the same rows; the start of Java is left out."""
    words = (server, ACCOUNT.username, ACCOUNT.password, directory, str(BATCH))
    before = processor_seconds(queue_manager.ready.pid)
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"BENCHES": str(HERE)},
    )
    served = processor_seconds(queue_manager.ready.pid) - before
    told = json.loads(ran.stdout)
    rows, later = told["rows"], told["rows later"]
    assert (rows, told["sent"]) == (MESSAGES // SENDERS * SENDERS,) * 2
    assert [_count(queue_manager, name) for name in ("bench", "sink")] == [0, rows]
    note = (
        f"{told['processors'] / rows * 1e6:.0f} µs of Spark's processors a message; the queue "
        f"manager's with those of the sink {served / rows * 1e6:.0f} µs"
    )
    steady = later / told["later"]
    return [
        figure(STREAMED, rows / told["streamed"], note),
        figure(STEADY, steady),
        figure(CONSTANT, told["streamed"] - rows / steady),
        figure(SENT, rows / told["sending"]),
    ]


def measure() -> list[Figure]:
    """The read alone, all of the stream, and the sink."""
    note = f"{MESSAGES:,} messages of {BODY} octets in batches of {BATCH:,}"
    with (
        TemporaryDirectory() as directory,
        private_queue_manager(configuration=CONFIGURATION) as queue_manager,
    ):
        words = ("user", "add", ACCOUNT.username, "--password-stdin")
        queue_manager.run(*words, input=f"{ACCOUNT.password}\n")
        for queue in ("bench", "sink"):
            queue_manager.run("queue", "create", queue)
            queue_manager.run("queue", "acl", "grant", queue, ACCOUNT.username, "full")
        asyncio.run(_fill(queue_manager))
        host, port = queue_manager.endpoint("epm")
        server = f"{host}:{port}"
        options = QueueOptions(
            "bench", server=server, user=ACCOUNT.username, password=ACCOUNT.password
        )
        first = figure(READ, _read(options), note).explained(os.getpid(), lambda: _read(options))
        return [first, *_program(queue_manager, server, directory)]


def run() -> Iterator[Figure]:
    yield from attempt((READ, STREAMED, STEADY, CONSTANT, SENT), measure)
