"""/metrics of a queue manager that runs, read by Prometheus' own parsers."""

import base64
import http.client
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import DISPATCH_PROPERTYGET
from rpcqm.operations import metric_families
from rpcqm.operations.exposition import OPEN_METRICS, TEXT
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.cli.documents import ROOT
from tests.support.dcom import clsids
from tests.support.dcom.dcom_client import ENABLED, DcomClient

CONSOLE = ("--console-port", "0")
ELSEWHERE = r"DIRECT=OS:nowhere.invalid\private$\orders"
Samples = dict[tuple[str, ...], float]


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE, ENABLED) as queue_manager:
        queue_manager.run("user", "add", "alice", "--password-stdin", input=f"{PASSWORD}\n")
        for name, *groups in (("boss", "administrators"), ("peeker",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        queue_manager.run("queue", "create", "orders", "--journal")
        queue_manager.run("queue", "create", "idle")
        queue_manager.run("send", "orders", "--body", "a", "--count", "5")
        queue_manager.run("receive", "orders", "--count", "2")
        queue_manager.run("send", "orders", "--body", "x", "--ttbr", "0", "--dead-letter")
        queue_manager.run("send", ELSEWHERE, "--body", "x")
        yield queue_manager


def ask(
    running: PrivateQueueManager, authorization: str, accept: str = "", method: str = "GET"
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*running.endpoint("console"), timeout=30)
    headers = {"Authorization": authorization} if authorization else {}
    if accept:
        headers["Accept"] = accept
    connection.request(method, "/metrics", headers=headers)
    answer = connection.getresponse()
    told = answer.read().decode()
    connection.close()
    return answer.status, answer.headers.get("Content-Type", ""), told


def basic(name: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:secret".encode()).decode()


def scraped(running: PrivateQueueManager) -> Samples:
    """The value of each series, by its name and the values of its labels."""
    status, kind, text = ask(running, basic("boss"))
    assert (status, kind) == (200, TEXT)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_families(text)
        for sample in family.samples
    }


def test_messages_are_counted_by_queue_and_together(running: PrivateQueueManager) -> None:
    told = scraped(running)
    assert told["rpcqm_queue_messages", "orders"] == 3
    assert told["rpcqm_queue_journal_messages", "orders"] == 2
    assert told["rpcqm_queue_left_total", "orders"] >= 2
    assert told["rpcqm_queue_oldest_message_age_seconds", "orders"] > 0
    assert told["rpcqm_messages_arrived_total",] == 7
    assert told["rpcqm_messages_received_total",] == 2
    assert told["rpcqm_messages_expired_total",] == 1
    assert told["rpcqm_messages",] == 7
    assert told["rpcqm_outgoing_messages", ELSEWHERE] == 1
    assert told["rpcqm_outgoing_connected", ELSEWHERE] == 0


def test_queues_without_messages_have_series(running: PrivateQueueManager) -> None:
    told = scraped(running)
    for family in metric_families.QUEUES:
        name = family.name + ("_total" if family.kind == metric_families.COUNTER else "")
        assert told[name, "idle"] == 0


def test_dead_letters_are_counted_by_reason(running: PrivateQueueManager) -> None:
    told = scraped(running)
    assert told["rpcqm_dead_letters", "receive_timeout"] == 1
    assert told["rpcqm_dead_letters_arrived_total", "receive_timeout"] == 1
    assert told["rpcqm_dead_letters_unread",] == 1


def test_the_names_of_windows_tell_the_same(running: PrivateQueueManager) -> None:
    told = scraped(running)
    name = f"{running.ready.name}\\private$\\orders"
    assert told["windows_msmq_messages_in_queue", name] == 3
    assert told["windows_msmq_messages_in_journal_queue", name] == 2
    assert told["windows_msmq_messages_in_queue", "Computer Queues"] == 1
    assert told["windows_msmq_bytes_in_queue", name] == told["rpcqm_queue_bytes", "orders"]


def test_outgoing_queues_and_those_of_the_system_are_instances_as_on_windows(
    running: PrivateQueueManager,
) -> None:
    told = scraped(running)
    assert told["windows_msmq_messages_in_queue", ELSEWHERE] == 1
    assert told["windows_msmq_bytes_in_queue", ELSEWHERE] == told["rpcqm_outgoing_bytes", ELSEWHERE]
    assert told["windows_msmq_bytes_in_queue", ELSEWHERE] > 0
    private = f"{running.ready.name}\\private$\\"
    for name in (ELSEWHERE, f"{private}order_queue$", f"{private}notify_queue$", f"{private}idle"):
        for kind in ("messages", "bytes"):
            assert told[f"windows_msmq_{kind}_in_journal_queue", name] == 0
            assert (f"windows_msmq_{kind}_in_queue", name) in told
    names = [key[1] for key in told if key[0] == "windows_msmq_messages_in_queue"]
    assert "Computer Queues" in names
    assert not [name for name in names if "DEAD" in name or "JOURNAL" in name]


def test_calls_have_durations_whichever_way_they_go(running: PrivateQueueManager) -> None:
    count = ("rpcqm_rpc_call_duration_seconds_count", "qmcomm2", "rpc_ACSendMessageEx")
    before = scraped(running)
    running.run("queue", "create", "timed")
    running.run("send", "timed", "--body", "b", "--count", "50")
    after = scraped(running)
    assert after[count] - before[count] == 50
    bucket = ("rpcqm_rpc_call_duration_seconds_bucket", *count[1:], "+Inf")
    assert after[bucket] == after[count]
    assert after["rpcqm_rpc_calls_total",] > before["rpcqm_rpc_calls_total",]
    assert after["rpcqm_store_sync_messages_sum",] > 0


def test_calls_of_objects_have_durations_by_member(running: PrivateQueueManager) -> None:
    count = "rpcqm_com_call_duration_seconds_count"
    before = scraped(running)
    with DcomClient(running.endpoint("epm")) as com:
        message = com.create(clsids.MSMQ_MESSAGE, "IMSMQMessage4")
        for _ in range(3):
            com.call(message, "put_Label", "one")
        script = com.create(clsids.MSMQ_MESSAGE, "IDispatch")
        (label,) = com.call(script, "GetIDsOfNames", UUID(int=0), ["Label"], 1, 0)
        nothing = DISPPARAMS(rgvarg=None, rgdispidNamedArgs=None, cArgs=0, cNamedArgs=0)
        for dispid in (label, label, 12345):
            com.response(
                script, "Invoke", dispid, UUID(int=0), 0, DISPATCH_PROPERTYGET, nothing, 0, [], []
            )
    after = scraped(running)
    told = {key[1:]: value for key, value in after.items() if key[0] == count}
    assert told["IMSMQMessage4", "put_Label"] == 3
    assert (told["IDispatch", "get_Label"], told["IDispatch", "Invoke"]) == (2, 1)
    assert sum(told[key] for key in told if key[1].startswith("Remote")) >= 2  # activations
    bucket = ("rpcqm_com_call_duration_seconds_bucket", "IMSMQMessage4", "put_Label", "+Inf")
    assert after[bucket] == 3
    assert not any("IMSMQMessage4" in key for key in before)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", TEXT),
        ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3", OPEN_METRICS),
        ("application/openmetrics-text;q=0.1,text/plain;q=0.3", TEXT),
        ("application/openmetrics-text;q=x", TEXT),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(
    running: PrivateQueueManager, accept: str, kind: str
) -> None:
    status, told, text = ask(running, basic("boss"), accept)
    assert (status, told) == (200, kind)
    assert text.endswith("# EOF\n") is (kind == OPEN_METRICS)


def test_both_formats_have_the_same_series(running: PrivateQueueManager) -> None:
    def names(families: Any) -> set[tuple[str, ...]]:
        return {(s.name, *s.labels.values()) for each in families for s in each.samples}

    plain = names(text_families(ask(running, basic("boss"))[2]))
    parse: Any = open_metrics_families  # it has no types
    strict = names(parse(ask(running, basic("boss"), OPEN_METRICS)[2]))
    assert plain == strict


def described() -> dict[str, tuple[str, str, set[str]]]:
    """Type, unit and labels of each name on the page, but for those that few tell."""
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \| (\w*) \| ([^|]*) \| ", page)
    return {
        name: (kind, unit, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, unit, labels in rows
        if not name.startswith(("rpcqm_cluster_", "rpcqm_directory_"))
    }


def test_the_page_has_the_names_that_are_served(running: PrivateQueueManager) -> None:
    page, text = described(), ask(running, basic("boss"))[2]
    assert dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)$", text)) == {
        name: kind for name, (kind, _, _) in page.items()
    }
    strict = ask(running, basic("boss"), OPEN_METRICS)[2]
    units = {name: unit for name, (_, unit, _) in page.items() if unit}
    assert dict(re.findall(r"(?m)^# UNIT (\w+) (\w+)$", strict)) == {
        name.removesuffix("_total"): unit for name, unit in units.items()
    }
    for family in text_families(text):
        for sample in family.samples:
            name = family.name + ("_total" if family.type == "counter" else "")
            assert set(sample.labels) - {"le"} == page[name][2], sample


# Who may know it


def test_only_administrators_are_told(running: PrivateQueueManager) -> None:
    assert ask(running, "")[0] == 401
    assert ask(running, basic("nobody"))[0] == 401
    assert ask(running, basic("peeker"))[0] == 403


@pytest.mark.parametrize(
    ("account", "words", "status"),
    [
        ("boss", ("--rights", "peek"), 200),
        ("boss", (), 200),
        ("boss", ("--rights", "send,receive,manage"), 403),
        ("boss", ("--rights", "peek", "--queues", "orders"), 403),
        ("peeker", ("--rights", "peek"), 403),
    ],
)
def test_a_token_of_an_administrator_that_may_peek_everywhere_is_enough(
    running: PrivateQueueManager, account: str, words: tuple[str, ...], status: int
) -> None:
    name = f"t{abs(hash((account, words))) % 10**9}"
    token = running.run("token", "create", name, "--account", account, *words).stdout.strip()
    assert ask(running, f"Bearer {token}")[0] == status


def test_a_token_that_may_only_peek_does_nothing_else(running: PrivateQueueManager) -> None:
    words = ("--account", "boss", "--rights", "peek")
    token = running.run("token", "create", "scraper", *words).stdout.strip()
    connection = http.client.HTTPConnection(*running.endpoint("console"), timeout=30)
    headers = {"Authorization": f"Bearer {token}"}
    connection.request("DELETE", "/api/v1/queues/orders/messages", headers=headers)
    assert connection.getresponse().status == 403
    connection.close()


def test_only_get_is_served(running: PrivateQueueManager) -> None:
    assert ask(running, basic("boss"), method="POST")[0] == 405


# Settings

BOUNDED = "[metrics]\nqueues = 2\nwindows_names = false\n"


@pytest.mark.bound("metrics.queues")
def test_queues_beyond_the_bound_are_one_series(running: PrivateQueueManager) -> None:
    with private_queue_manager(CONSOLE, BOUNDED) as bounded:
        bounded.run(
            "user", "add", "boss", "--group", "administrators", "--password-stdin", input="secret\n"
        )
        for number in range(4):
            bounded.run("queue", "create", f"q{number}")
            bounded.run("send", f"q{number}", "--body", "x")
            bounded.run("send", rf"DIRECT=OS:h{number}.invalid\private$\q", "--body", "x")
        told = scraped(bounded)
        queues = [key[1] for key in told if key[0] == "rpcqm_queue_messages"]
        assert queues == ["q0", "q1", ";others"]
        assert told["rpcqm_queue_messages", ";others"] == 2
        destinations = [key[1] for key in told if key[0] == "rpcqm_outgoing_messages"]
        assert len(destinations) == 3
        assert told["rpcqm_outgoing_messages", ";others"] == 2
        assert not any(name.startswith("windows_") for name, *_ in told)
        bounded.reload(BOUNDED.replace("windows_names = false", "windows_names = true"))
        instances = [key[1] for key in scraped(bounded) if key[0] == "windows_msmq_bytes_in_queue"]
        assert len(instances) == 1 + 2 + 2 + 2  # the computer, the system's, ours, destinations
        bounded.reload(BOUNDED.replace("2", "3"))
        told = scraped(bounded)
        assert told["rpcqm_queue_messages", ";others"] == 1
        bounded.reload("[metrics]\nenabled = false\n")
        assert ask(bounded, basic("boss"))[0] == 404
