"""A queue whose stored name this version refuses does not keep the others from starting (G494)."""

import json
import time
from pathlib import Path

from rocksdict import WriteBatch

from rpcqm.store.database import Database
from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.waiting import PATIENCE

TAKEN, REFUSED = "127.0.0.1:9", "[127.0.0.1]:9"
"""Nobody listens at the port to discard."""
NAME = "DIRECT=HTTP://{host}/msmq/private$/orders"


def rename(data_dir: Path, before: str, after: str) -> dict[bytes, bytes]:
    """Let an outgoing queue have the name that a version before this one took.

    What is remembered of streams that were sent is returned.
    """
    database = Database(data_dir, StoreSettings())
    batch = WriteBatch(raw_mode=True)
    for key, value in database.items(Family.QUEUE):
        renamed = value.replace(before.encode(), after.encode())
        batch.put(key, renamed, database.handles[Family.QUEUE])
    streams = dict(database.items(Family.STREAM, b"srmp sent "))
    database.write(batch, sync=True)
    database.close()
    return streams


def told_of(running: PrivateQueueManager) -> list[dict[str, str]]:
    """What the doctor says of queues that cannot be used."""
    findings = json.loads(running.run("doctor", "--json", check=False).stdout)
    return [each for each in findings if each["subject"] == "attention"]


def outgoing(running: PrivateQueueManager) -> list[dict[str, object]]:
    queues: list[dict[str, object]] = json.loads(
        running.run("queue", "list", "--outgoing", "--json").stdout
    )
    return queues


def test_a_queue_manager_starts_beside_a_queue_whose_name_is_refused_now() -> None:
    with private_queue_manager(("--http-port", "0")) as running:
        running.run("queue", "create", "here")
        running.run("send", "here", "--body", "here")
        for number in ("1", "2"):
            running.run("send", NAME.format(host=TAKEN), "--transactional", "--body", number)
        end = time.monotonic() + PATIENCE
        while not outgoing(running)[0]["connections"]:
            assert time.monotonic() < end, running.log
        running.stop()
        streams = rename(running.data_dir, TAKEN, REFUSED)
        assert streams
        for _ in range(2):
            running.start()
            assert running.run("receive", "here", "--format", "body").stdout == "here"
            running.run("send", "here", "--body", "here")
            lines = [json.loads(line) for line in running.log.splitlines() if line[:1] == "{"]
            line = [each for each in lines if each["event"] == "a queue cannot be used"][-1]
            assert (line["queue"], line["messages"]) == (NAME.format(host=REFUSED), 2)
            assert "MQ_ERROR_ILLEGAL_FORMATNAME" in line["reason"]
            (found,) = told_of(running)
            assert found["level"] == "problem"
            assert NAME.format(host=REFUSED) in found["text"]
            overview = json.loads(running.run("status", "--overview", "--json").stdout)
            assert "queue_unusable" in [each["code"] for each in overview["attention"]]
            assert outgoing(running) == []
            running.stop()
        assert rename(running.data_dir, REFUSED, TAKEN) == streams
        running.start()
        assert told_of(running) == []
        assert [queue["messages"] for queue in outgoing(running)] == [2]
