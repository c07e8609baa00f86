"""What programs search for by /api/v1, in a queue manager that runs."""

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program, Told

ANSWER = "{00000000-0000-0000-0000-000000000007}\\9"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        for name, *groups in (("boss", "administrators"), ("alice",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        program = Program(queue_manager.endpoint("console"), "boss")
        for queue in ("orders", "bills"):
            assert program.ask("POST", "/queues", {"name": queue}).status == 201
        secret = "O:BAG:BAD:(D;;0x2;;;WD)(A;;0x2003f;;;WD)"
        assert program.ask("POST", "/queues", {"name": "secret", "sddl": secret}).status == 201
        for label, body in (("order 1", "Müller".encode()), ("order 2", b"M\xfcller")):
            headers = {"Rpcqm-Label": label, "Rpcqm-Correlation-Id": ANSWER}
            program.ask("POST", "/queues/orders/messages", body, headers)
        program.ask(
            "POST", "/queues/bills/messages", b"<a>M&#252;ller</a>", {"Rpcqm-Label": "bill"}
        )
        program.ask("POST", "/queues/secret/messages", b"x", {"Rpcqm-Label": "order 3"})
        program.close()
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


def search(program: Program, path: str, **conditions: object) -> Told:
    return program.ask("GET", f"{path}?{urlencode(conditions)}")


def found(told: Told) -> list[tuple[str, str]]:
    assert told.status == 200, told
    return [(each["queue"], each["label"]) for each in told.value["messages"]]


def test_messages_of_a_queue_are_found_by_what_they_are_and_say(boss: Program) -> None:
    path = "/queues/orders/messages"
    both = [("orders", "order 1"), ("orders", "order 2")]
    assert found(search(boss, path, body="Müller")) == both
    assert found(search(boss, path, label="*2", correlation_id=ANSWER)) == both[1:]
    assert found(search(boss, path, sender="boss", **{"class": "NORMAL"})) == both
    assert found(search(boss, path, sender="alice")) == []
    assert found(search(boss, path, regex="order [2-9]")) == both[1:]
    told = search(boss, path, label="*", limit=1).value
    assert (told["looked_at"], told["unread"], told["unread_first"]) == (1, 0, [])
    assert found(search(boss, path, label="*", after=told["next"])) == both[1:]


def test_all_queues_are_searched_that_the_caller_may_peek(
    running: PrivateQueueManager, boss: Program
) -> None:
    everywhere = [("orders", "order 1"), ("orders", "order 2"), ("bills", "bill")]
    told = search(boss, "/messages", body="Müller", limit=2)
    assert found(told) == everywhere[:2]
    rest = search(boss, "/messages", body="Müller", after=told.value["next"])
    assert (found(rest), rest.value["next"]) == (everywhere[2:], None)
    assert found(search(boss, "/messages", label="order 3")) == []
    alice = Program(running.endpoint("console"), "alice")
    assert found(search(alice, "/messages", label="*")) == everywhere
    refused = search(alice, "/queues/secret/messages", label="*")
    assert (refused.status, refused.code) == (403, "MQ_ERROR_ACCESS_DENIED")
    alice.close()


def test_who_looks_at_messages_is_told_the_names_of_senders(
    running: PrivateQueueManager, boss: Program
) -> None:
    """An account knows its own name, an administrator all of them; who receives wants the SID."""
    alice = Program(running.endpoint("console"), "alice")
    assert boss.ask("POST", "/queues", {"name": "named"}).status == 201
    boss.ask("POST", "/queues/named/messages", b"x")
    alice.ask("POST", "/queues/named/messages", b"y")
    path = "/queues/named/messages"
    by_boss, by_alice = boss.ask("GET", path).value["messages"]
    assert (by_boss["sender_name"], by_alice["sender_name"]) == ("boss", "alice")
    assert by_alice["sender"].startswith("S-1-5-21-")
    assert "boss" not in str(search(alice, path, body="x").value)
    seen = alice.ask("GET", path).value["messages"]
    assert [each["sender_name"] for each in seen] == [None, "alice"]
    one = alice.ask("GET", f"{path}/{by_alice['lookup_id']}").value
    assert one["sender_name"] == "alice"
    running.run("send", "named", "--body", "z")
    printed = running.run("peek", "named", "--all", "--json").stdout.splitlines()
    names = [json.loads(each)["sender_name"] for each in printed]
    assert names == ["boss", "alice", "administrator"]
    (received,) = boss.ask("POST", "/queues/named/receive?lease=0").value["messages"]
    assert "sender_name" not in received
    alice.close()


def test_the_bearer_of_a_token_finds_what_is_in_its_queues(running: PrivateQueueManager) -> None:
    made = running.run(
        "token", "create", "narrow", "--account", "boss", "--rights", "peek", "--queues", "bills"
    )
    program = Program(running.endpoint("console"))
    program.headers["Authorization"] = f"Bearer {made.stdout.split()[-1]}"
    assert found(search(program, "/messages", label="*")) == [("bills", "bill")]
    assert search(program, "/queues/orders/messages", label="*").status == 403
    program.close()


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        ({"label": "["}, "label: there is a [ without its ]; write [[] for the character"),
        ({"regex": "("}, "regex: that is no regular expression of RE2: missing ): ("),
        ({"body": "x" * 1001}, "body has 1,001 characters, a condition has at most 1,000"),
        ({"sender": "mallory"}, "sender: `mallory` is neither an account here nor a SID like"),
        ({"colour": "red"}, "colour: Unexpected keyword argument"),
        ({"label": "*", "wait": 5}, "a search waits for no message: leave out wait, or the"),
    ],
)
def test_a_wrong_condition_has_one_sentence(
    boss: Program, conditions: dict[str, object], sentence: str
) -> None:
    told = search(boss, "/queues/orders/messages", **conditions)
    assert (told.status, told.code) == (400, "MQ_ERROR_INVALID_PARAMETER")
    assert told.value["detail"].startswith(sentence)


def test_a_condition_that_is_enormous_is_refused_before_it_is_read(boss: Program) -> None:
    told = search(boss, "/queues/orders/messages", body="x" * 10_000_000)
    assert told.status in (400, 414, 431)


def test_a_search_goes_on_only_from_where_one_has_ended(boss: Program) -> None:
    for path, after in (("/messages", "x"), ("/queues/orders/messages", "1-1")):
        assert search(boss, path, label="*", after=after).status == 400
    assert found(search(boss, "/messages", label="*", after="999999-")) == []
