"""Traces from a client's send to another client's receive, as a collector gets them."""

import base64
import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError
from tests.support.api.collector import Collector, TakenSpan, collecting
from tests.support.shadow import switch
from tests.support.waiting import until

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LINK = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
SCHEMA = "https://opentelemetry.io/schemas/1.29.0"
CONSOLE = ("--console-port", "0")
MANY = 40


@dataclass
class Two:
    """Two queue managers that tell one collector; `there` names the queue of the second."""

    sending: PrivateQueueManager
    receiving: PrivateQueueManager
    collector: Collector
    there: str


def configured(collector: Collector, more: str = "") -> str:
    return f'[otel]\nendpoint = "{collector.url}"\n{more}'


@pytest.fixture(scope="module", params=["true", "false"], ids=["templates", "carefully"])
def two(request: pytest.FixtureRequest) -> Iterator[Two]:
    templates = f"[limits]\nrequest_templates = {request.param}\n"
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        receiving = stack.enter_context(
            private_queue_manager(
                CONSOLE, configuration='name = "receiver"\n' + templates + configured(collector)
            )
        )
        port = receiving.endpoint("binary")[1]
        peers = f'[binary]\npeers = "receiver=127.0.0.1:{port}"\n'
        sending = stack.enter_context(
            private_queue_manager(configuration=templates + peers + configured(collector))
        )
        receiving.run("queue", "create", "orders")
        receiving.run(
            "user", "add", "boss", "--group", "administrators", "--password-stdin", input="secret\n"
        )
        yield Two(sending, receiving, collector, r"DIRECT=OS:receiver\private$\orders")


def ask(queue_manager: PrivateQueueManager, method: str, path: str, **headers: str) -> Any:
    connection = http.client.HTTPConnection(*queue_manager.endpoint("console"), timeout=30)
    word = base64.b64encode(b"boss:secret").decode()
    connection.request(
        method, f"/api/v1{path}", headers={"Authorization": f"Basic {word}", **headers}
    )
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status < 300, content
    told: Any = json.loads(content) if content else {}
    return told


def of_message(spans: list[TakenSpan], identifier: str) -> TakenSpan:
    (found,) = [each for each in spans if each.attributes["messaging.message.id"] == identifier]
    return found


def waited_for(collector: Collector, name: str, identifier: str) -> TakenSpan:
    """The only span of a message with that name, once it has come."""

    def told() -> list[TakenSpan]:
        key = "messaging.message.id"
        return [each for each in collector.named(name) if each.attributes[key] == identifier]

    until(told)
    (found,) = told()
    return found


def test_a_message_is_one_trace_over_two_queue_managers(two: Two) -> None:
    sent = two.sending.run(
        "send", two.there, "--body", "x", "--label", "secret label", "--traceparent", CONTEXT
    )
    identifier = sent.stdout.strip()
    received = json.loads(
        two.receiving.run("receive", "orders", "--timeout", "20000", "--format", "json").stdout
    )
    assert received["traceparent"] == CONTEXT
    send = of_message(two.collector.wait_for("send orders"), identifier)
    others = [
        of_message(two.collector.wait_for(f"{name} orders"), identifier)
        for name in ("forward", "arrive", "receive")
    ]
    assert not send.parent
    assert {each.trace for each in others} == {send.trace}
    assert {each.parent for each in others} == {send.span}
    assert {each.links for each in (send, *others)} == {(LINK,)}
    assert send.trace != LINK[0]
    assert all(each.begun <= each.ended for each in (send, *others))
    forward, arrive, receive = others
    assert send.resource == forward.resource
    assert arrive.resource == receive.resource != send.resource
    assert send.resource["service.name"] == "rpcqm"
    assert forward.attributes["rpcqm.next_hop"]
    assert receive.attributes["messaging.destination.name"].endswith(r"\private$\orders")
    for span, operation, kind in ((send, "send", "send"), (forward, "forward", "send")):
        assert span.attributes["messaging.system"] == "msmq"
        assert span.attributes["messaging.operation.name"] == operation
        assert span.attributes["messaging.operation.type"] == kind
    assert b"secret label" not in two.collector.octets


def test_spans_are_those_of_the_conventions_that_they_name(two: Two) -> None:
    two.receiving.run("queue", "create", "answers")
    there = two.there.replace("orders", "answers")
    asked = two.sending.run("send", there, "--body", "x").stdout.strip()
    answer = two.sending.run("send", there, "--body", "y", "--correlation-id", asked).stdout.strip()
    ask(two.receiving, "POST", "/queues/answers/receive?lease=0&wait=10")
    (message,) = ask(two.receiving, "POST", "/queues/answers/receive?lease=30&wait=10")["messages"]
    ask(two.receiving, "POST", f"/leases/{message['lease']}/complete")
    spans = {
        name: waited_for(two.collector, f"{name} answers", answer)
        for name in ("send", "forward", "arrive", "receive", "settle")
    }
    kinds = {name: Span.SpanKind.Name(span.kind) for name, span in spans.items()}
    assert kinds == {
        "send": "SPAN_KIND_PRODUCER",
        "forward": "SPAN_KIND_CLIENT",
        "arrive": "SPAN_KIND_SERVER",
        "receive": "SPAN_KIND_CLIENT",
        "settle": "SPAN_KIND_CLIENT",
    }
    servers = {name: span.attributes["server.address"] for name, span in spans.items()}
    sender, receiver = two.sending.ready.name, two.receiving.ready.name
    assert servers == {
        "send": sender,
        "forward": "127.0.0.1",
        "arrive": receiver,
        "receive": receiver,
        "settle": receiver,
    }
    assert {each.schemas for each in spans.values()} == {(SCHEMA, SCHEMA)}
    conversation = "messaging.message.conversation_id"
    assert {each.attributes[conversation] for each in spans.values()} == {asked}
    assert conversation not in waited_for(two.collector, "receive answers", asked).attributes


def test_a_lease_is_received_and_settled(two: Two) -> None:
    sent = ask(two.receiving, "POST", "/queues/orders/messages", traceparent=CONTEXT)
    (message,) = ask(two.receiving, "POST", "/queues/orders/receive?lease=30&wait=10")["messages"]
    assert message["traceparent"] == CONTEXT
    ask(two.receiving, "POST", f"/leases/{message['lease']}/complete")
    identifier = str(sent["id"])
    until(
        lambda: any(
            each.attributes["messaging.message.id"] == identifier
            for each in two.collector.named("settle orders")
        )
    )
    settle = of_message(two.collector.named("settle orders"), identifier)
    receive = of_message(two.collector.named("receive orders"), identifier)
    assert settle.parent == receive.span
    assert settle.attributes["rpcqm.outcome"] == "complete"
    assert receive.links == settle.links == (LINK,)


def test_a_lease_that_is_released_says_so(two: Two) -> None:
    identifier = str(ask(two.receiving, "POST", "/queues/orders/messages")["id"])
    (message,) = ask(two.receiving, "POST", "/queues/orders/receive?lease=30&wait=10")["messages"]
    assert "traceparent" not in message
    ask(two.receiving, "POST", f"/leases/{message['lease']}/release")
    until(
        lambda: any(
            each.attributes["messaging.message.id"] == identifier
            for each in two.collector.named("settle orders")
        )
    )
    settle = of_message(two.collector.named("settle orders"), identifier)
    assert settle.attributes["rpcqm.outcome"] == "release"


def test_what_is_received_without_a_lease_is_not_settled(two: Two) -> None:
    two.receiving.run("queue", "create", "gone")
    ids = [str(ask(two.receiving, "POST", "/queues/gone/messages")["id"]) for _ in range(2)]
    for lease in (0, 30):
        ask(two.receiving, "POST", f"/queues/gone/receive?lease={lease}&wait=10")
    until(lambda: len(told(two, "receive gone", ids)) == 2)
    assert told(two, "settle gone", ids) == []


def told(two: Two, name: str, identifiers: list[str]) -> list[TakenSpan]:
    spans = two.collector.named(name)
    return [each for each in spans if each.attributes["messaging.message.id"] in identifiers]


def post(two: Two, *lines: str) -> tuple[int, str]:
    """The status of a message that is sent with these lines in its head, and its identifier."""
    word = base64.b64encode(b"boss:secret").decode()
    host, port = two.receiving.endpoint("console")
    head = (
        "POST /api/v1/queues/strange/messages HTTP/1.1",
        f"Host: {host}:{port}",
        f"Authorization: Basic {word}",
        "Content-Length: 1",
        "Connection: close",
        *lines,
    )
    with socket.create_connection((host, port), 30) as connection:
        answered = connection.makefile("rb")
        with contextlib.suppress(ConnectionError):  # refused before it has been read
            connection.sendall("\r\n".join((*head, "", "x")).encode("latin-1"))
        status = int(answered.readline().split()[1])
        content = answered.read().rpartition(b"\r\n\r\n")[2]
    return status, json.loads(content)["id"] if status == 201 else ""


def test_strange_contexts_are_none_and_cost_nothing(two: Two) -> None:
    """What a program says of its trace decides nothing, however it says it."""
    two.receiving.run("queue", "create", "strange")
    other = CONTEXT.replace("0af7", "1af7")
    heads = (
        (f"traceparent: {CONTEXT}", f"traceparent: {other}"),
        (f"traceparent: {CONTEXT}", f"Traceparent: {CONTEXT}", f"TRACEPARENT: {other}"),
        (f"traceparent: {CONTEXT},{other}",),
        ("traceparent: " + "0" * 4000,),
        ("traceparent: 00-" + "g" * 32 + "-b7ad6b7169203331-01",),
        ("traceparent: \xe9" + CONTEXT,),
        (f"tracestate: rpcqm={'x' * 2000}", "baggage: a=b"),
    )
    sent = [post(two, *lines) for lines in heads]
    assert [status for status, _ in sent] == [201] * len(heads)
    for _, identifier in sent:
        until(partial(told, two, "send strange", [identifier]))
        assert of_message(two.collector.named("send strange"), identifier).links == ()
    received = ask(two.receiving, "POST", "/queues/strange/receive?lease=0&max=50")["messages"]
    assert not [each for each in received if "traceparent" in each or each.get("extension_base64")]


def test_a_tracestate_goes_nowhere(two: Two) -> None:
    lines = [f"traceparent: {CONTEXT}", "tracestate: secret=of-somebody"]
    _, identifier = post(two, *lines)
    until(lambda: told(two, "send strange", [identifier]) != [])
    assert of_message(two.collector.named("send strange"), identifier).links == (LINK,)
    assert b"of-somebody" not in two.collector.octets


def test_thousands_of_contexts_are_refused(two: Two) -> None:
    ask(two.receiving, "POST", "/queues/strange/receive?lease=0&max=50")
    for lines in ([f"traceparent: {CONTEXT}"] * 5_000, ["tracestate: " + "x" * 100_000]):
        status, _ = post(two, *lines)
        assert 400 <= status < 500
    assert ask(two.receiving, "POST", "/queues/strange/receive?lease=0")["messages"] == []


def test_many_messages_have_their_spans_all(two: Two) -> None:
    """Most of them go by templates, and over the session together."""
    two.receiving.run("queue", "create", "many")
    there = two.there.replace("orders", "many")
    sent = two.sending.run("send", there, "--body", "x", "--count", str(MANY)).stdout.split()
    two.receiving.run("receive", "many", "--count", str(MANY), "--timeout", "20000")
    here = two.receiving.run("send", "many", "--body", "x", "--count", str(MANY)).stdout.split()
    for name, of in (("send", sent + here), ("forward", sent), ("arrive", sent), ("receive", sent)):
        spans = two.collector.wait_for(f"{name} many", len(of))
        assert sorted(each.attributes["messaging.message.id"] for each in spans) == sorted(of)


def test_rehearsals_have_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """What templates do is compared with the careful path, which is taken back."""
    monkeypatch.setenv(switch.VARIABLE, switch.ON[switch.VARIABLE])
    with (
        collecting() as collector,
        private_queue_manager(configuration=configured(collector)) as queue_manager,
    ):
        queue_manager.run("queue", "create", "many")
        sent = queue_manager.run("send", "many", "--body", "x", "--count", str(MANY)).stdout
        queue_manager.run("receive", "many", "--count", str(MANY), "--timeout", "20000")
        queue_manager.stop()
        for name in ("send", "receive"):
            spans = collector.named(f"{name} many")
            told = sorted(each.attributes["messaging.message.id"] for each in spans)
            assert told == sorted(sent.split())


@pytest.mark.parametrize(
    ("queue", "words", "error"),
    [
        ("nowhere", (), "NACK_BAD_DST_Q"),
        ("strict", (), "NACK_NOT_TRANSACTIONAL_MSG"),
        ("strict", ("--transactional",), ""),
        ("small", (), "MQ_ERROR_INSUFFICIENT_RESOURCES"),
    ],
)
def test_a_message_that_is_refused_where_it_arrives_has_one_span_there(
    two: Two, queue: str, words: tuple[str, ...], error: str
) -> None:
    two.receiving.run("queue", "create", "strict", "--transactional", check=False)
    two.receiving.run("queue", "create", "small", "--quota", "1", check=False)
    there = two.there.replace("orders", queue)
    identifier = two.sending.run("send", there, "--body", "x" * 2000, *words).stdout.strip()
    arrive = waited_for(two.collector, f"arrive {queue}", identifier)
    assert arrive.error == arrive.attributes.get("error.type", "") == error
    send = waited_for(two.collector, f"send {queue}", identifier)
    assert (arrive.trace, arrive.parent) == (send.trace, send.span)
    destination = arrive.attributes["messaging.destination.name"]
    assert destination.endswith(rf"private$\{queue}")


def test_a_context_outlasts_a_restart(two: Two) -> None:
    two.receiving.run("queue", "create", "kept")
    there = two.there.replace("orders", "kept")
    identifier = two.sending.run(
        "send", there, "--body", "x", "--traceparent", CONTEXT
    ).stdout.strip()
    two.collector.wait_for("arrive kept")
    two.receiving.restart()
    two.receiving.run("receive", "kept", "--timeout", "20000")
    receive = of_message(two.collector.wait_for("receive kept"), identifier)
    assert receive.links == (LINK,)
    assert receive.trace == of_message(two.collector.named("send kept"), identifier).trace


def test_a_refused_message_is_an_error(two: Two) -> None:
    two.receiving.run("queue", "create", "exact", "--transactional")
    two.receiving.run("send", "exact", "--body", "x", check=False)
    (span,) = two.collector.wait_for("send exact")
    assert span.error == span.attributes["error.type"] == "MQ_ERROR_TRANSACTION_USAGE"


def test_a_dead_collector_costs_spans_and_no_messages() -> None:
    with (
        collecting() as collector,
        private_queue_manager(
            configuration=configured(collector, "waiting_spans = 10\ntimeout = 1\n")
        ) as queue_manager,
    ):
        collector.status = 500
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "x", "--count", "200")
        queue_manager.run("send", "orders", "--body", "last")
        until(lambda: "spans are lost" in queue_manager.log)
        assert queue_manager.log.count("spans are lost") == 1
        assert queue_manager.stop() == 0


def test_nothing_of_it_is_loaded_unless_it_is_configured() -> None:
    program = (
        "import sys, asyncio; from rpcqm.service.run import serve\n"
        "from rpcqm.service import queue_manager_service\n"
        "print([each for each in sys.modules if 'opentelemetry' in each or each == 'requests'"
        " or each.startswith('rpcqm.otel')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
    with private_queue_manager(
        environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_TRACES_EXPORTER": "otlp",
        }
    ) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "x")
        assert queue_manager.process is not None
        threads = f"/proc/{queue_manager.process.pid}/maps"
        with open(threads) as mapped:
            assert not re.search(r"opentelemetry|google/_upb|protobuf", mapped.read())


def test_the_environment_neither_ends_nor_alters_traces() -> None:
    environment = {
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-stray=1",
        "OTEL_SERVICE_NAME": "stray",
        "OTEL_RESOURCE_ATTRIBUTES": "stray=1",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    with (
        collecting() as collector,
        private_queue_manager(
            configuration=configured(collector), environment=environment
        ) as queue_manager,
    ):
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "x")
        (span,) = collector.wait_for("send orders")
        assert span.resource["service.name"] == "rpcqm"
        assert "stray" not in span.resource
        assert "x-stray" not in collector.headers[0]


def test_a_configuration_that_cannot_be_is_one_sentence() -> None:
    with (
        pytest.raises(StartFailedError, match=r"otel\.endpoint.*ftp"),
        private_queue_manager(configuration='[otel]\nendpoint = "ftp://x"\n'),
    ):
        pass
