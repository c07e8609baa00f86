"""The streaming source `msmq`: one queue over loopback TCP at level NONE, one executor core.

A message is planned (seen on the driver), read (peeked by the executor), written (Parquet) and
removed when its batch is committed: four calls. The rate is over all of it.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import Figure, attempt, figure
from harness import few

from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer
from rpcqm.pipeline.queue_options import QueueOptions
from rpcqm.pipeline.queue_source import IdentifierPartition, QueueStreamReader, visible
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager

ROWS = "messages read by one executor core", "messages planned, read, written and removed"
CONFIGURATION = "[security]\nallow_nonauthenticated_rpc = true\n"
MESSAGES, BATCH, BODY, SENDERS = few(40_000), 10_000, 1024, 64
_QUERY = """
import json, sys, time
from rpcqm.pipeline.session import spark_session
server, directory, batch = sys.argv[1:]
spark = spark_session("local[1]", "bench", **{"spark.driver.host": "127.0.0.1"})
spark.range(1).count()
began = time.perf_counter()
reader = spark.readStream.format("msmq").option("server", server).option("queue", "bench")
frame = reader.option("maxMessagesPerBatch", batch).load()
writer = frame.writeStream.format("parquet").trigger(availableNow=True)
query = writer.option("checkpointLocation", f"{directory}/checkpoint").start(f"{directory}/out")
query.awaitTermination()
seconds = time.perf_counter() - began
rows = spark.read.parquet(f"{directory}/out").count()
print(json.dumps({"seconds": seconds, "rows": rows}))
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


def _read(server: str) -> float:
    """What an executor does, without Spark: messages a second in Arrow batches."""
    options = QueueOptions("bench", server=server)
    reader = QueueStreamReader(options)
    identifiers = list(visible(options))
    began = time.perf_counter()
    rows = sum(len(batch) for batch in reader.read(IdentifierPartition(identifiers)))
    assert rows == len(identifiers)
    return rows / (time.perf_counter() - began)


def _stream(server: str, directory: str) -> float:
    """The whole stream's messages a second; the start of Java is left out."""
    command = [sys.executable, "-c", _QUERY, server, directory, str(BATCH)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    told = json.loads(ran.stdout)
    assert told["rows"] == MESSAGES // SENDERS * SENDERS
    return float(told["rows"]) / float(told["seconds"])


def measure() -> list[Figure]:
    """The read alone, and all of the stream."""
    note = f"{MESSAGES:,} messages of {BODY} octets in batches of {BATCH:,}"
    with (
        TemporaryDirectory() as directory,
        private_queue_manager(configuration=CONFIGURATION) as queue_manager,
    ):
        queue_manager.run("queue", "create", "bench")
        queue_manager.run("queue", "acl", "grant", "bench", "anonymous", "full")
        asyncio.run(_fill(queue_manager))
        host, port = queue_manager.endpoint("epm")
        server = f"{host}:{port}"
        read = _read(server)
        first = figure(ROWS[0], read, note).explained(os.getpid(), lambda: _read(server))
        streamed = _stream(server, str(Path(directory)))
    return [first, figure(ROWS[1], streamed)]


def run() -> Iterator[Figure]:
    yield from attempt(ROWS, measure)
