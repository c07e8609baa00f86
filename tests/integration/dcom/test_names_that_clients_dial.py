"""A client of COM objects that calls this computer by a name which no binding has (G502)."""

import json
from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.codec.types.dcom import LocationInfoData
from rpcqm.dcom.called_names import MOST_NAMES
from rpcqm.dcom.object_interfaces import object_interfaces
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom import dcom_client
from tests.support.dcom.dcom_client import ENABLED, DcomClient, served

MSMQ_MESSAGE = UUID("d7d6e075-dccd-11d0-aa4b-0060970debae")
IID = object_interfaces()["IMSMQMessage4"].iid
EVENT = "a client of COM objects calls this computer by a name that they do not have"


@pytest.fixture
def server() -> Iterator[PrivateQueueManager]:
    with served() as running:
        yield running


def call_as(server: PrivateQueueManager, *names: str) -> None:
    with DcomClient(server.endpoint("epm")) as com:
        for name in names:
            com.create_with(MSMQ_MESSAGE, [IID], called=name)


def logged(server: PrivateQueueManager) -> list[str]:
    lines = [json.loads(line) for line in server.log.splitlines()]
    return [line["name"] for line in lines if line["event"] == EVENT]


def attention(server: PrivateQueueManager) -> list[str]:
    told = json.loads(server.run("status", "--overview", "--json").stdout)
    return [each["text"] for each in told["attention"] if each["code"] == "com_name"]


def diagnosis(server: PrivateQueueManager) -> list[tuple[str, str]]:
    told = json.loads(server.run("doctor", "--json", check=False).stdout)
    return [(each["level"], each["text"]) for each in told if each["subject"] == "COM objects"]


def test_a_name_that_no_binding_has_is_told_once_with_what_helps(
    server: PrivateQueueManager,
) -> None:
    assert diagnosis(server) == [("ok", "No client has called by a name that COM objects lack.")]
    call_as(server, "\\\\Queues.Example.COM", "queues.example.com.", "queues.example.com")
    assert logged(server) == ["queues.example.com"]
    (text,) = attention(server)
    assert "queues.example.com" in text
    assert "dcom.advertise" in text
    assert diagnosis(server) == [("warning", text)]
    server.reload(ENABLED.replace("true", 'true\nadvertise = ["queues.example.com"]', 1))
    assert attention(server) == []
    assert [level for level, _ in diagnosis(server)] == ["ok"]


def test_a_name_that_a_binding_has_is_not_worth_a_line(server: PrivateQueueManager) -> None:
    name = server.ready.name
    call_as(server, "", "localhost", "127.0.0.1", name, name.upper())
    assert logged(server) == []
    assert attention(server) == []


def test_a_further_name_of_the_computer_is_a_name_of_its_objects() -> None:
    with served('aliases = ["queues.example.com", "web.example:8080"]\n' + ENABLED) as server:
        call_as(server, "queues.example.com", "web.example")
        assert logged(server) == ["web.example"]


def test_a_name_that_cannot_be_read_keeps_nobody_from_objects(
    server: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = LocationInfoData(machineName="x", processId=1, apartmentId=0, contextId=0)
    monkeypatch.setattr(dcom_client, "security_info", lambda called: location)
    call_as(server, "queues.example.com")
    monkeypatch.undo()
    call_as(server, "a\x1b[31mb", "x" * 300, "a b")
    assert logged(server) == []


@pytest.mark.bound("dcom.names_that_are_remembered")
def test_so_many_names_are_remembered_and_no_more(server: PrivateQueueManager) -> None:
    call_as(server, *(f"host{number}.example" for number in range(MOST_NAMES + 2)))
    assert len(attention(server)) == MOST_NAMES
