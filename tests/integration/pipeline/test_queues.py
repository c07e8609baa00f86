"""Queues as data sources: nothing is lost, nothing is skipped, nothing twice."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.cli.main import main
from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.pipeline.queue_sink import correlation_of
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager
from tests.support.srmp.srmp_text import message


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    configuration = "http_port = 0\n[security]\nallow_nonauthenticated_rpc = true\n"
    with private_queue_manager(configuration=configuration) as made:
        yield made


@pytest.fixture
def queue(queue_manager: PrivateQueueManager, request: pytest.FixtureRequest) -> str:
    name = "".join(c for c in request.node.name if c.isalnum())[:40]
    queue_manager.run("queue", "create", name)
    queue_manager.run("queue", "acl", "grant", name, "anonymous", "full")
    return name


def send(queue_manager: PrivateQueueManager, queue: str, *bodies: str, priority: int = 3) -> None:
    for body in bodies:
        queue_manager.run("send", queue, "--priority", str(priority), input=body)


def send_all(queue_manager: PrivateQueueManager, queue: str, sent: list[str]) -> None:
    with (
        queue_manager.client() as client,
        client.open_sender(format_name(queue)) as sender,
    ):
        for body in sent:
            sender.send(OutgoingMessage(body.encode()))


def count(queue_manager: PrivateQueueManager, queue: str) -> int:
    shown = queue_manager.run(
        "peek", queue, "--all", "--timeout", "0", "--format", "json", check=False
    )
    return shown.stdout.count('"lookup_id')


def source(reader: Any, queue_manager: PrivateQueueManager, queue: str, **options: str) -> Any:
    reader = reader.format("msmq").option("socket", str(queue_manager.socket))
    return reader.option("queue", queue).options(**options).load()


def bodies(frame: Any) -> list[str]:
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())


def stream(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, directory: Path, **options: str
) -> Any:
    """A query that writes the queue to Parquet and ends when all that is there is written."""
    frame = source(spark.readStream, queue_manager, queue, **options)
    writer = frame.writeStream.format("parquet").trigger(availableNow=True)
    return writer.option("checkpointLocation", str(directory / "checkpoint")).start(
        str(directory / "out")
    )


def progress(query: Any) -> list[tuple[int, int]]:
    """The messages of each batch, and those behind it."""
    told = [(each.numInputRows, each.sources[0].latestOffset) for each in query.recentProgress]
    return [(rows, json.loads(waiting)["waiting"]) for rows, waiting in told if rows]


def test_a_batch_read_leaves_the_queue_as_it_is(
    spark: Any, queue_manager: PrivateQueueManager, queue: str
) -> None:
    send(queue_manager, queue, "one", "two")
    frame = source(spark.read, queue_manager, queue)
    assert bodies(frame) == ["one", "two"]
    assert frame.rdd.getNumPartitions() == 1
    divided = source(spark.read, queue_manager, queue, partitions="2")
    assert divided.rdd.getNumPartitions() == 2
    assert bodies(divided) == ["one", "two"]
    (row, *_) = frame.collect()
    assert row.priority == 3
    assert row.message_id


def test_a_stream_takes_each_message_once(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    """Over restarts, with batches of two, and messages that overtake others in between.

    Spark's progress has what is waiting behind each batch.
    """
    send(queue_manager, queue, "a", "b", "c")
    options = {"maxMessagesPerBatch": "2", "partitions": "2"}
    query = stream(spark, queue_manager, queue, tmp_path, **options)
    query.awaitTermination()
    assert progress(query) == [(2, 1), (1, 0)]
    send(queue_manager, queue, "d", priority=7)
    send(queue_manager, queue, "e")
    query = stream(spark, queue_manager, queue, tmp_path, **options, maxBytesPerBatch="1")
    query.awaitTermination()
    assert progress(query) == [(1, 1), (1, 0)]
    stream(spark, queue_manager, queue, tmp_path, **options).awaitTermination()
    assert bodies(spark.read.parquet(str(tmp_path / "out"))) == ["a", "b", "c", "d", "e"]


def test_a_failure_between_read_and_commit_loses_nothing(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    send(queue_manager, queue, "a", "b", "c")
    seen: list[tuple[int, list[str]]] = []

    def take(frame: Any, batch: int) -> None:
        seen.append((batch, bodies(frame)))
        if len(seen) == 1:
            raise RuntimeError("the sink fails after it has read")

    def start() -> Any:
        frame = source(spark.readStream, queue_manager, queue)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path)).start()

    with pytest.raises(Exception, match="the sink fails"):
        start().awaitTermination()
    send(queue_manager, queue, "late")
    start().awaitTermination()
    assert seen[0] == seen[1] == (0, ["a", "b", "c"]), "the batch is the one that was planned"
    assert seen[2:] == [(1, ["late"])]


def test_loss_is_an_error_unless_it_is_allowed(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    send(queue_manager, queue, "a", "b")
    allowed = "false"
    calls: list[list[str]] = []

    def take(frame: Any, batch: int) -> None:
        if not calls:
            queue_manager.run("receive", queue)
        calls.append(bodies(frame))

    def start(allow: str) -> Any:
        frame = source(spark.readStream, queue_manager, queue, failOnDataLoss=allow)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path)).start()

    with pytest.raises(Exception, match="gone before it was read"):
        start("true").awaitTermination()
    calls.append([])
    start(allowed).awaitTermination()
    assert calls[-1] == ["b"]


def test_the_sink_sends_rows_with_their_keys(
    spark: Any, queue_manager: PrivateQueueManager, queue: str
) -> None:
    rows = [("first", "label one", "k1"), ("second", "label two", "k2")]
    frame = spark.createDataFrame(rows, "body string, label string, idempotency_key string")
    writer = frame.write.format("msmq").option("socket", str(queue_manager.socket))
    writer.option("queue", queue).mode("append").save()
    found = source(spark.read, queue_manager, queue).collect()
    assert sorted((bytes(r.body).decode(), r.label) for r in found) == [r[:2] for r in rows]
    keys = {str(correlation_of(row[2])) for row in rows}
    assert {row.correlation_id for row in found} == keys


@contextlib.contextmanager
def spark_log(spark: Any, path: Path) -> Iterator[Path]:
    """Let the log of Spark's process be written to a file, too: no test captures its output."""
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    builder = log4j.core.appender.FileAppender.newBuilder()
    appender = builder.withFileName(str(path)).setName("seen").build()
    appender.start()
    root = context.getConfiguration().getRootLogger()
    root.addAppender(appender, None, None)
    try:
        yield path
    finally:
        root.removeAppender("seen")
        appender.stop()


def archive(queue_manager: PrivateQueueManager, queue: str, directory: Path) -> int:
    words = ["--socket", str(queue_manager.socket), "--queue", queue]
    words += ["--output", directory.as_uri(), "--checkpoint", str(directory / "checkpoint")]
    return main(["pipeline", "archive", *words, "--master", "local[2]"])


def test_archive_moves_a_queue_and_leaves_nothing_behind(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    send(queue_manager, queue, "kept", "kept too")
    assert archive(queue_manager, queue, tmp_path) == 0
    kept = spark.read.parquet(str(tmp_path / "archive"))
    assert bodies(kept) == ["kept", "kept too"]
    assert count(queue_manager, queue) == 0
    assert (tmp_path / "report.html").exists()


def test_archive_of_a_queue_that_is_not_there_is_refused_in_a_sentence(
    spark: Any,
    queue_manager: PrivateQueueManager,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with spark_log(spark, tmp_path / "spark.log") as log:
        assert archive(queue_manager, "nowhere", tmp_path) == 1
        assert log.read_text() == ""
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("rpcqm: The queue nowhere at /")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in line


def test_the_checkpoint_of_another_queue_is_refused_in_a_sentence(
    spark: Any,
    queue_manager: PrivateQueueManager,
    queue: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Also that of a queue of the same name elsewhere; a new socket is no reason (G471)."""
    with private_queue_manager() as other:
        for name in (queue, "second"):
            other.run("queue", "create", name)
            send_all(other, name, [name])
        assert archive(other, queue, tmp_path) == 0
        capfd.readouterr()
        for asked, name in ((other, "second"), (queue_manager, queue)):
            assert archive(asked, name, tmp_path) == 1
            (line,) = capfd.readouterr().err.splitlines()
            assert line.startswith(f"rpcqm: The checkpoint is that of the queue private$\\{queue}")
        assert count(other, "second") == 1
        send_all(other, queue, ["later"])
        moved = tmp_path / "socket"
        moved.symlink_to(other.socket)
        frame = spark.readStream.format("msmq").option("socket", str(moved)).option("queue", queue)
        writer = frame.load().writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        assert count(other, queue) == 0


@pytest.mark.parametrize(
    "lost",
    [(), ("checkpoint/commits",), ("checkpoint/commits", "out/_spark_metadata")],
    ids=["removal", "commit", "sink"],
)
def test_an_end_anywhere_keeps_each_message_once(
    spark: Any,
    queue_manager: PrivateQueueManager,
    queue: str,
    tmp_path: Path,
    lost: tuple[str, ...],
) -> None:
    """The end comes before a removal, which is refused, before a commit, before the sink is done.

    A driver that ends before it has written a log leaves everything but that log (G472).
    """
    sent = [f"{number:02}" for number in range(7)]
    send_all(queue_manager, queue, sent)
    queue_manager.run("queue", "acl", "revoke", queue, "anonymous")
    queue_manager.run("queue", "acl", "grant", queue, "anonymous", "peek")
    host, port = queue_manager.endpoint("epm")
    options = {"socket": "", "server": f"{host}:{port}", "maxMessagesPerBatch": "3"}
    with pytest.raises(Exception, match="are kept, but cannot be removed"):
        stream(spark, queue_manager, queue, tmp_path, **options).awaitTermination()
    for log in lost:
        for name in ("0", ".0.crc"):
            (tmp_path / log / name).unlink(missing_ok=name != "0")
    assert count(queue_manager, queue) == len(sent)
    queue_manager.run("queue", "acl", "grant", queue, "anonymous", "full")
    stream(spark, queue_manager, queue, tmp_path, **options).awaitTermination()
    assert bodies(spark.read.parquet(str(tmp_path / "out"))) == sent
    assert count(queue_manager, queue) == 0


def test_a_kept_message_that_somebody_had_locked_is_not_kept_again(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    """(G473)"""
    kept: list[str] = []
    locks = contextlib.ExitStack()

    def take(frame: Any, batch: int) -> None:
        kept.extend(bodies(frame))
        if batch == 0:
            client = locks.enter_context(queue_manager.client())
            reader = locks.enter_context(client.open_reader(format_name(queue)))
            reader.receive(0)  # closing the reader gives the message back

    def run() -> None:
        frame = source(spark.readStream, queue_manager, queue)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination()

    send(queue_manager, queue, "locked", "other")
    run()
    send(queue_manager, queue, "third")
    run()
    locks.close()
    run()
    assert kept == ["locked", "other", "third"]
    assert count(queue_manager, queue) == 0


def test_archive_keeps_the_body_the_envelope_and_the_extension(
    spark: Any, queue_manager: PrivateQueueManager, queue: str, tmp_path: Path
) -> None:
    host, port = queue_manager.endpoint("http")
    post = message(f"http://{host}:{port}/msmq/private$/{queue}", b"by HTTP")
    connection = http.client.HTTPConnection(host, port, timeout=20)
    connection.request("POST", post.target, post.body, post.headers)
    assert connection.getresponse().status == 200
    send(queue_manager, queue, "by RPC")
    headers = b'{"rbs2-msg-id": "7", "x": null}'
    with (
        queue_manager.client() as client,
        client.open_sender(format_name(queue)) as sender,
    ):
        sender.send(OutgoingMessage(b"of Rebus", extension=headers))
    words = ["--socket", str(queue_manager.socket), "--queue", queue, "--output", str(tmp_path)]
    assert main(["pipeline", "archive", *words, "--checkpoint", str(tmp_path / "checkpoint")]) == 0
    kept = spark.read.parquet(str(tmp_path / "archive")).collect()
    envelopes = {bytes(row.body): row.soap_envelope for row in kept}
    assert envelopes[b"by HTTP"].startswith("<se:Envelope ")
    assert envelopes[b"by RPC"] is None
    extensions = {bytes(row.body): (row.extension, row.headers) for row in kept}
    assert extensions[b"by RPC"] == (None, None)
    assert extensions[b"of Rebus"] == (headers, {"rbs2-msg-id": "7", "x": None})
