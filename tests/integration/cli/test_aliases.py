r"""Further names of this computer, at every door of a running queue manager (G500, G501)."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.dcom.clsids import MSMQ_APPLICATION, MSMQ_MANAGEMENT, MSMQ_QUEUE_INFO
from tests.support.dcom.com_objects import text
from tests.support.dcom.dcom_client import ENABLED, DcomClient, served

ALIASES = 'aliases = ["queues.example.com", "10.9.9.9", "public.example:8080"]\n'
OPTIONS = ("--http-port", "0", "--console-port", "0")
BY_NAME = r"DIRECT=OS:queues.example.com\private$\orders"
BY_ADDRESS = r"DIRECT=TCP:10.9.9.9\private$\orders"
NAMES = pytest.mark.parametrize("name", [BY_NAME, BY_ADDRESS], ids=["OS", "TCP"])


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served(ALIASES + ENABLED, *OPTIONS) as running:
        options = ("--group", "administrators", "--password-stdin")
        running.run("user", "add", "boss", *options, input="secret\n")
        running.run("queue", "create", "orders")
        yield running


def outgoing(server: PrivateQueueManager) -> list[dict[str, object]]:
    told: list[dict[str, object]] = json.loads(
        server.run("queue", "list", "--outgoing", "--json").stdout
    )
    return told


def received(server: PrivateQueueManager) -> str:
    return server.run("receive", "orders", "--format", "body", "--timeout", "0").stdout


@NAMES
def test_commands_send_read_and_manage_by_it(server: PrivateQueueManager, name: str) -> None:
    server.run("send", name, "--body", "one")
    assert outgoing(server) == []
    assert server.run("peek", name, "--format", "body").stdout == "one"
    assert json.loads(server.run("queue", "show", name, "--json").stdout)["messages"] == 1
    assert server.run("receive", name, "--format", "body").stdout == "one"
    server.run("send", name, "--body", "two")
    assert server.run("purge", name).stdout == "Purged 1 message.\n"


def test_queues_are_created_and_deleted_by_it(server: PrivateQueueManager) -> None:
    server.run("queue", "create", r"queues.example.com\private$\made")
    assert "made" in server.run("queue", "list").stdout
    server.run("queue", "set", r"10.9.9.9\private$\made", "--label", "x")
    server.run("queue", "delete", r"DIRECT=OS:queues.example.com\private$\made")
    assert "made" not in server.run("queue", "list").stdout


def test_urls_of_it_are_queues_here(server: PrivateQueueManager) -> None:
    _, port = server.endpoint("http")
    for place in ("http://public.example:8080", f"http://queues.example.com:{port}"):
        server.run("send", f"DIRECT={place}/msmq/private$/orders", "--body", place)
        assert received(server) == place
    assert outgoing(server) == []


@NAMES
def test_callers_over_the_network_read_and_manage_by_it(
    server: PrivateQueueManager, name: str
) -> None:
    host, port = server.endpoint("epm")
    asked = ("--server", f"{host}:{port}", "--user", "boss", "--password-stdin")
    server.run("send", "orders", "--body", "far")
    told = server.run("queue", "show", name, "--json", *asked, input="secret\n").stdout
    assert json.loads(told)["location"] == "LOCAL"
    assert server.run("peek", name, "--format", "body", *asked, input="secret\n").stdout == "far"
    assert server.run("receive", name, "--format", "body", *asked, input="secret\n").stdout == "far"


@NAMES
def test_programs_name_queues_by_it(server: PrivateQueueManager, name: str) -> None:
    boss = Program(server.endpoint("console"), "boss")
    path = f"/queues/{quote(name, safe='')}"
    assert boss.ask("POST", f"{path}/messages", b"by http").status == 201
    assert len(boss.ask("GET", f"{path}/messages").value["messages"]) == 1
    (message,) = boss.ask("POST", f"{path}/receive?lease=0").value["messages"]
    assert base64.b64decode(message["body_base64"]) == b"by http"
    boss.close()


def test_programs_call_this_computer_by_it(server: PrivateQueueManager) -> None:
    boss = Program(server.endpoint("console"), "boss")
    assert boss.ask("GET", "/overview", None, {"Host": "queues.example.com"}).status == 200
    assert boss.ask("GET", "/overview", None, {"Host": "public.example"}).status != 200
    boss.close()


@NAMES
def test_com_objects_open_queues_by_it(server: PrivateQueueManager, name: str) -> None:
    with DcomClient(server.endpoint("epm")) as com:
        info = com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        com.call(info, "put_FormatName", name)
        for access in (2, 1):
            queue = com.call(info, "Open", access, 0)
            com.call(queue, "Close")
        application = com.create(MSMQ_APPLICATION, "IMSMQApplication3")
        for computer in ("queues.example.com", "10.9.9.9"):
            found = com.call(application, "MachineIdOfMachineName", computer)
            assert found == str(server.ready.id)
    assert outgoing(server) == []


def test_administrators_manage_this_computer_by_it_with_com_objects(
    server: PrivateQueueManager,
) -> None:
    server.run("send", "orders", "--body", "x")
    with DcomClient(server.endpoint("epm"), NtlmCredentials("boss", "secret")) as com:
        info = com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        com.call(info, "put_FormatName", BY_NAME)
        com.call(info, "Open", 1, 0)
        management = com.create(MSMQ_MANAGEMENT, "IMSMQManagement")
        com.call(management, "Init", text("queues.example.com"), None, text(BY_NAME))
        assert com.call(management, "get_IsLocal")
        assert com.call(management, "get_MessageCount") == 1
    server.run("purge", "orders")


def test_a_reload_takes_others_over_and_delivers_what_waits_for_them(tmp_path: Path) -> None:
    waiting = r"DIRECT=OS:queues.invalid\private$"
    with private_queue_manager(data_dir=tmp_path / "data") as running:
        running.run("queue", "create", "orders")
        running.run("queue", "create", "ledger", "--transactional")
        running.run("send", rf"{waiting}\orders", "--body", "waits")
        running.run("send", rf"{waiting}\ledger", "--body", "in order", "--transactional")
        assert len(outgoing(running)) == 2
        running.run("send", r"DIRECT=OS:queues.invalid\private$\orders", "--body", "too")
        assert '"aliases"' in running.reload('aliases = ["queues.invalid"]\n')
        bodies = {
            running.run("receive", queue, "--format", "body", "--timeout", "20s").stdout
            for queue in ("orders", "ledger", "orders")
        }
        assert bodies == {"waits", "too", "in order"}
        running.run("send", rf"{waiting}\orders", "--body", "at once")
        assert received(running) == "at once"
        running.restart()
        running.run("send", rf"{waiting}\orders", "--body", "after a restart")
        assert received(running) == "after a restart"
