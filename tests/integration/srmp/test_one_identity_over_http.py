"""An identifier that comes back by HTTP with other content (G493)."""

import json
from collections.abc import Iterator
from itertools import count

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.srmp.srmp_stranger import Stranger
from tests.support.srmp.srmp_text import SOURCE, Elements, durable, in_stream, message

TAKEN = 200
MSMQ = (
    "<Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>"
    f"<SourceQmGuid>{SOURCE}</SourceQmGuid>"
)
EVENT = "two queue managers have one identity"
_numbers = count(1)


@pytest.fixture(scope="module")
def receiver() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--http-port", "0"), 'name = "here"\n') as made:
        made.run("queue", "create", "orders")
        made.run("queue", "create", "stream", "--transactional")
        yield made


def told(receiver: PrivateQueueManager) -> list[list[str]]:
    read = (json.loads(line) for line in receiver.log.splitlines() if line[:1] == "{")
    return [line["addresses"] for line in read if line["event"] == EVENT]


@pytest.mark.parametrize("queue", ["orders", "stream"])
def test_other_content_under_one_identifier_is_reported_and_dropped(
    receiver: PrivateQueueManager, queue: str
) -> None:
    """Messages of one queue manager come by whatever proxies: addresses alone show nothing."""
    number, before = next(_numbers), told(receiver)

    def post(body: bytes, source: str) -> int:
        elements = Elements(ordinal=number, services=durable(), msmq=MSMQ)
        if queue == "stream":
            content = in_stream(SOURCE, 1, "http://127.0.0.1:9/msmq/private$/order_queue$")
            elements = Elements(ordinal=number, services=durable(), msmq=MSMQ, stream=content)
        with Stranger(receiver, source) as stranger:
            return stranger.post(message(f"http://here/msmq/private$/{queue}", body, elements))

    for source in ("127.0.0.2", "127.0.0.3", "127.0.0.2"):
        assert post(b"one", source) == TAKEN
    assert told(receiver) == before
    address = f"127.0.0.{3 + number}"
    assert post(b"two", address) == TAKEN
    assert told(receiver) == [*before, ["127.0.0.2", address]]
    assert len(receiver.run("peek", queue, "--all", "--json").stdout.splitlines()) == 1
