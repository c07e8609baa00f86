"""Messages to a queue elsewhere: what waits here, what died where and of what, what is known."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.waiting import until

SETTINGS = 'name = "{name}"\n[storage]\nreserve = 1\n[binary]\n{peers}retry_milliseconds = 200\n'
NOWHERE = 'peers = "b=127.0.0.1:1"\n'
ORDERS = r"DIRECT=OS:b\private$\orders"
MISSING = r"DIRECT=OS:b\private$\missing"
STREAM = r"DIRECT=OS:b\private$\stream"


@pytest.fixture(scope="module")
def lonely() -> Iterator[PrivateQueueManager]:
    """A queue manager whose peer cannot be reached."""
    with private_queue_manager(configuration=SETTINGS.format(name="a", peers=NOWHERE)) as a:
        yield a


@contextmanager
def two(configuration: str = "") -> Iterator[tuple[PrivateQueueManager, PrivateQueueManager]]:
    """A and b, which know each other."""
    with private_queue_manager(configuration=SETTINGS.format(name="b", peers="")) as b:
        at_b = f'peers = "b=127.0.0.1:{b.endpoint("binary")[1]}"\n'
        with private_queue_manager(configuration=SETTINGS.format(name="a", peers=at_b)) as a:
            at_a = f'peers = "a=127.0.0.1:{a.endpoint("binary")[1]}"\n'
            b.reload(SETTINGS.format(name="b", peers=at_a) + configuration)
            b.run("queue", "create", "stream", "--transactional")
            yield a, b


def letters(server: PrivateQueueManager) -> list[tuple[str, str, str, str]]:
    found = json.loads(server.run("dead-letter", "list", "--json").stdout)
    return [(each["queue"], each["label"], each["class"], each["reason"]) for each in found]


def sent(server: PrivateQueueManager, queue: str, *words: str) -> str:
    """The identifier of a message that asks to become a dead letter."""
    return server.run("send", queue, "--body", "x", "--dead-letter", *words).stdout.strip()


# What waits here


def outgoing(server: PrivateQueueManager) -> dict[str, int]:
    listed = json.loads(server.run("queue", "list", "--outgoing", "--json").stdout)
    return {queue["format_name"]: queue["messages"] for queue in listed}


def test_what_waits_for_a_queue_elsewhere_is_peeked_at_exported_and_purged(
    lonely: PrivateQueueManager, tmp_path: Path
) -> None:
    first = sent(lonely, ORDERS, "--label", "one")
    sent(lonely, ORDERS, "--label", "two")
    shown = lonely.run("peek", ORDERS, "--all", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["label"] for line in shown] == ["one", "two"]
    exported = lonely.run("queue", "export", ORDERS, str(tmp_path / "orders.mq"))
    assert exported.stdout == "Exported 2 messages.\n"
    (here, _) = json.loads(lonely.run("dead-letter", "list", "--queue", ORDERS, "--json").stdout)
    assert (here["id"], here["reason"]) == (first, "not dead: it is on its way")
    assert lonely.run("purge", ORDERS).stdout == "Purged 2 messages.\n"
    assert ORDERS not in outgoing(lonely)
    reason = "an administrator deleted the message before it reached its queue"
    assert letters(lonely) == [
        ("DeadLetter$", "one", "NACK_DELETED", reason),
        ("DeadLetter$", "two", "NACK_DELETED", reason),
    ]
    lonely.run("purge", "DeadLetter$")


def test_what_waits_is_sent_elsewhere_instead(lonely: PrivateQueueManager) -> None:
    lonely.run("queue", "create", "instead")
    lonely.run("send", ORDERS, "--body", "apples")
    (letter,) = json.loads(lonely.run("dead-letter", "list", "--queue", ORDERS, "--json").stdout)
    words = ("resend", letter["lookup_id"], "--queue", ORDERS, "--to", "instead")
    assert lonely.run("dead-letter", *words).stdout == "Resent 1 message.\n"
    assert lonely.run("receive", "instead", "--format", "body").stdout == "apples"
    assert ORDERS not in outgoing(lonely)


@pytest.mark.parametrize("paused", [False, True])
def test_an_outgoing_queue_is_deleted_with_what_waits(
    lonely: PrivateQueueManager, paused: bool
) -> None:
    lonely.run("send", ORDERS, "--body", "x")
    if paused:
        lonely.run("network", "pause", ORDERS)
    lonely.run("queue", "delete", ORDERS)
    assert ORDERS not in outgoing(lonely)
    again = lonely.run("queue", "delete", ORDERS, check=False)
    assert (again.returncode, again.stdout) == (1, "")


def test_a_receive_takes_nothing_of_what_waits(lonely: PrivateQueueManager) -> None:
    lonely.run("send", ORDERS, "--body", "x")
    assert lonely.run("receive", ORDERS, check=False).returncode == 1
    assert outgoing(lonely)[ORDERS] == 1
    lonely.run("purge", ORDERS)


# What died elsewhere


def test_what_b_cannot_deliver_is_a_dead_letter_that_says_why() -> None:
    with two() as (a, b):
        missing = sent(a, MISSING, "--label", "missing")
        sent(a, STREAM, "--label", "plain")
        sent(a, MISSING, "--label", "exactly once", "--transactional")
        until(lambda: len(letters(b)) == 2 and len(letters(a)) == 1)
        nowhere = "the destination queue does not exist"
        plain = "an ordinary message came to a transactional queue"
        at_b = [
            ("DeadLetter$", "missing", "NACK_BAD_DST_Q", nowhere),
            ("DeadLetter$", "plain", "NACK_NOT_TRANSACTIONAL_MSG", plain),
        ]
        at_a = [("XactDeadLetter$", "exactly once", "NACK_BAD_DST_Q", nowhere)]
        assert (letters(a), letters(b)) == (at_a, at_b)
        assert nowhere in b.run("dead-letter", "list").stdout
        (lookup, *_) = [
            each["lookup_id"] for each in json.loads(b.run("dead-letter", "list", "--json").stdout)
        ]
        assert f"Reason           {nowhere}" in b.run("dead-letter", "inspect", lookup).stdout
        _told_at_both_ends(a, b, missing)
        a.restart()
        b.restart()
        assert (letters(a), letters(b)) == (at_a, at_b)


def _told_at_both_ends(a: PrivateQueueManager, b: PrivateQueueManager, missing: str) -> None:
    refused = [json.loads(line) for line in b.log.splitlines() if "message refused" in line]
    assert refused[0]["id"] == missing
    assert refused[0]["queue"] == MISSING
    assert refused[0]["sender"] == "127.0.0.1"
    assert refused[0]["reason"] == "MQMSG_CLASS_NACK_BAD_DST_Q"
    explained = a.run("explain", missing).stdout
    assert "It was accepted by b; what b did with it isn't told." in explained


def test_a_sender_is_told_where_the_switch_is_on_there() -> None:
    with two("[security]\nsend_insecure_nacks = true\n") as (a, _):
        a.run("queue", "create", "acks")
        missing = sent(a, MISSING, "--ack", "nack-reach-queue", "--admin-queue", "acks")
        acknowledgement = json.loads(
            a.run("receive", "acks", "--timeout", "20000", "--format", "json").stdout
        )
        assert acknowledgement["class"] == "NACK_BAD_DST_Q"
        assert acknowledgement["correlation_id"] == missing
        told = "acknowledgements tell what became of it: NACK_BAD_DST_Q"
        until(lambda: told in a.run("explain", missing).stdout)
