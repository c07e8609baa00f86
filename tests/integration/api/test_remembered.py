"""What is remembered between requests to save time counts for nothing once it has changed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.waiting import until

CONSOLE = ("--console-port", "0")


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE) as queue_manager:
        add(queue_manager, "boss", "--group", "administrators")
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


@pytest.fixture
def orders(boss: Program) -> Iterator[str]:
    assert boss.ask("POST", "/queues", {"name": "Orders"}).status == 201
    yield "/queues/Orders"
    assert boss.ask("DELETE", "/queues/Orders").status == 204


def add(running: PrivateQueueManager, name: str, *words: str) -> None:
    running.run("user", "add", name, *words, "--password-stdin", input="secret\n")


def bearer(running: PrivateQueueManager, text: str) -> Program:
    program = Program(running.endpoint("console"))
    program.headers["Authorization"] = f"Bearer {text}"
    return program


def token(running: PrivateQueueManager, name: str, *words: str) -> Program:
    return bearer(running, running.run("token", "create", name, *words).stdout.strip())


def send(program: Program, queue: str, **headers: str) -> int:
    return program.ask("POST", f"{queue}/messages", b"one", headers).status


def listing(*programs: Program) -> list[int]:
    return [program.ask("GET", "/queues").status for program in programs]


def names(program: Program, query: str = "") -> list[str]:
    return [each["name"] for each in program.ask("GET", f"/queues{query}").value["queues"]]


def test_a_token_that_was_used_is_refused_once_it_is_deleted(
    running: PrivateQueueManager, orders: str
) -> None:
    program = token(running, "short", "--account", "boss")
    assert [send(program, orders) for _ in range(3)] == [201] * 3
    running.run("token", "delete", "short")
    assert send(program, orders) == 401
    program.close()


@pytest.mark.parametrize("lease", [0, 30])
def test_who_waits_with_a_token_gets_nothing_once_it_is_deleted(
    running: PrivateQueueManager, boss: Program, orders: str, lease: int
) -> None:
    program = token(running, "waits", "--account", "boss")
    with ThreadPoolExecutor(1) as pool:
        path = f"{orders}/receive?wait=30&lease={lease}"
        waiting = pool.submit(program.ask, "POST", path)
        until(lambda: boss.ask("GET", "/overview").value["waiting_reads"] == 1)
        assert boss.ask("DELETE", "/tokens/waits").status == 204
        assert send(boss, orders) == 201
        assert waiting.result().status == 403
    assert len(boss.ask("POST", f"{orders}/receive?lease=0").value["messages"]) == 1
    program.close()


def test_tokens_of_one_account_keep_to_their_own_rights(
    running: PrivateQueueManager, boss: Program, orders: str
) -> None:
    programs = [
        token(running, right, "--account", "boss", "--rights", right)
        for right in ("send", "receive")
    ]
    for _ in range(2):
        assert [send(program, orders) for program in programs] == [201, 403]
        told = [program.ask("POST", f"{orders}/receive?lease=0").status for program in programs]
        assert told == [403, 200]
        assert send(boss, orders) == 201
    for program in programs:
        program.close()


def test_what_one_token_may_do_says_nothing_of_another_one_with_the_same_headers(
    running: PrivateQueueManager, boss: Program, orders: str
) -> None:
    sender, receiver = (
        token(running, f"only-{right}", "--account", "boss", "--rights", right)
        for right in ("send", "receive")
    )
    for _ in range(4):
        assert [send(each, orders) for each in (sender, receiver)] == [201, 403]
        received = [each.ask("POST", f"{orders}/receive") for each in (sender, receiver)]
        assert [each.status for each in received] == [403, 200]
        (message,) = received[1].value["messages"]
        lease = f"/leases/{message['lease']}/complete"
        assert [each.ask("POST", lease).status for each in (sender, receiver)] == [403, 204]
    sender.close()
    receiver.close()


def test_permissions_count_from_the_next_request_on(
    running: PrivateQueueManager, boss: Program, orders: str
) -> None:
    add(running, "nora")
    nora = token(running, "of-nora", "--account", "nora")

    def permit(sddl: str) -> None:
        assert boss.ask("PUT", f"{orders}/permissions", {"sddl": sddl}).status == 204

    for _ in range(3):
        permit("D:(A;;GA;;;WD)")
        assert [send(nora, orders) for _ in range(3)] == [201] * 3
        taken = [nora.ask("POST", f"{orders}/receive") for _ in range(3)]
        assert [each.status for each in taken] == [200] * 3
        leases = [each.value["messages"][0]["lease"] for each in taken]
        assert nora.ask("POST", f"/leases/{leases[0]}/complete").status == 204
        permit("D:(A;;GA;;;BA)")
        assert send(nora, orders) == 403
        assert nora.ask("POST", f"{orders}/receive").status == 403
        assert nora.ask("POST", f"/leases/{leases[1]}/complete").status == 403
        permit("D:(A;;GA;;;WD)")
        for lease in leases[1:]:
            assert nora.ask("POST", f"/leases/{lease}/complete").status == 204
    nora.close()
    running.run("user", "remove", "nora")


def test_an_account_of_the_same_name_is_another_one(
    running: PrivateQueueManager, orders: str
) -> None:
    add(running, "carl", "--group", "administrators")
    by_password = Program(running.endpoint("console"), "carl")
    by_token = token(running, "of-carl", "--account", "carl")
    both = by_password, by_token
    assert listing(*both) == [200, 200]
    running.run("user", "remove", "carl")
    assert listing(*both) == [401, 401]
    add(running, "carl")
    assert listing(*both) == [403, 401]
    by_password.close()
    by_token.close()
    running.run("user", "remove", "carl")


def test_what_an_account_holds_ends_with_it(
    running: PrivateQueueManager, boss: Program, orders: str
) -> None:
    add(running, "erin", "--group", "administrators")
    erin, listening = (Program(running.endpoint("console"), "erin") for _ in range(2))
    assert send(boss, orders) == 201
    held = erin.ask("POST", f"{orders}/receive?lease=3600").value["messages"]
    assert len(held) == 1
    listening.connection.request("GET", "/api/v1/events", headers=listening.headers)
    stream = listening.connection.getresponse()
    assert stream.readline().startswith(b"retry:")
    running.run("user", "remove", "erin")
    add(running, "erin")  # with the same password, and nevertheless somebody else
    until(lambda: boss.ask("GET", "/leases").value["leases"] == [])
    assert erin.ask("POST", f"/leases/{held[0]['lease']}/complete").status == 410
    assert len(boss.ask("POST", f"{orders}/receive?lease=0").value["messages"]) == 1
    assert b"account" not in stream.read()
    erin.close()
    listening.close()
    running.run("user", "remove", "erin")


def test_permissions_that_have_changed_count_for_the_next_request(
    running: PrivateQueueManager, boss: Program, orders: str
) -> None:
    add(running, "dora")
    program = token(running, "of-dora", "--account", "dora")
    for allowed, status in (("GA", 201), ("GR", 403), ("GA", 201)):
        sddl = f"D:(A;;{allowed};;;WD)(A;;GA;;;BA)"
        assert boss.ask("PUT", f"{orders}/permissions", {"sddl": sddl}).status == 204
        assert [send(program, orders) for _ in range(2)] == [status] * 2
    program.close()
    running.run("user", "remove", "dora")


def test_properties_of_one_message_are_not_those_of_the_next_one(
    boss: Program, orders: str
) -> None:
    told = {"Rpcqm-Acknowledgements": "arrival", "Rpcqm-Label": "first", "Rpcqm-Priority": "5"}
    boss.ask("POST", f"{orders}/messages", b"one", told)
    boss.ask("POST", f"{orders}/messages", b"two")
    first, second = boss.ask("GET", f"{orders}/messages").value["messages"]
    assert (first["label"], first["priority"], first["acknowledgements"]) == (
        "first",
        5,
        ["arrival"],
    )
    assert (second["label"], second["priority"], second["acknowledgements"]) == ("", 3, [])


def test_a_list_has_the_queues_that_are_there_now(boss: Program, orders: str) -> None:
    for _ in range(2):
        assert names(boss) == ["Orders"]
    for name in ("zebra", "apples", "Pears"):
        boss.ask("POST", "/queues", {"name": name})
        assert name in names(boss)
    assert names(boss) == ["apples", "Orders", "Pears", "zebra"]
    assert names(boss, "?limit=2") == ["apples", "Orders"]
    assert boss.ask("GET", "/queues?limit=2").value["next"] == "Orders"
    assert names(boss, "?after=ORDERS&limit=2") == ["Pears", "zebra"]
    assert boss.ask("GET", "/queues?after=ORDERS&limit=2").value["next"] is None
    assert names(boss, "?after=b") == ["Orders", "Pears", "zebra"]
    for left in (["Orders", "Pears", "zebra"], ["Orders", "Pears"], ["Orders"]):
        gone = next(name for name in names(boss) if name not in left)
        boss.ask("DELETE", f"/queues/{gone}")
        assert names(boss) == left
        assert names(boss, "?limit=1") == left[:1]


def test_a_list_tells_of_each_queue_what_the_queue_tells(boss: Program, orders: str) -> None:
    for change in ({"label": "fruit", "journal": True, "quota": 5}, {"quota": -1, "trail": True}):
        boss.ask("PATCH", orders, change)
        assert send(boss, orders) == 201
        (listed,) = boss.ask("GET", "/queues").value["queues"]
        assert listed == boss.ask("GET", orders).value
    assert (listed["label"], listed["quota"], listed["messages"]) == ("fruit", None, 2)


def test_a_long_list_has_its_length_and_every_queue(boss: Program, orders: str) -> None:
    made = [f"long{number:03}" for number in range(200)]
    for name in made:
        assert boss.ask("POST", "/queues", {"name": name, "label": "x" * 100}).status == 201
    told = boss.ask("GET", "/queues?limit=10000")
    assert int(told.headers["Content-Length"]) == len(told.body) > 1 << 16
    assert [each["name"] for each in told.value["queues"]] == [*made, "Orders"]
    assert told.value["next"] is None
    assert "Transfer-Encoding" not in told.headers
    for name in made:
        boss.ask("DELETE", f"/queues/{name}")
    assert names(boss) == ["Orders"]
