"""Traces of messages by HTTP, by objects, in transactions and to several queues."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.testing import private_queue_manager
from tests.support.api.collector import Collector, TakenSpan, collecting
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import NO, STREAM, Objects, number, served_objects
from tests.support.dcom.dcom_client import ENABLED, Reference
from tests.support.ports import reserved_port
from tests.support.waiting import until

PAUSE = 0.2
"""Seconds until the next hop answers."""
IDENTIFIER = "messaging.message.id"


@dataclass
class Traced:
    """A queue manager with objects that sends by HTTP to another one at `there`."""

    objects: Objects
    collector: Collector
    there: str

    def run(self, *words: str) -> str:
        return self.objects.machine.run(*words).stdout

    def spans(self, identifier: str, *operations: str) -> list[TakenSpan]:
        """The spans of a message, once they are these and no others."""
        wanted, told = sorted(operations), list[str]()
        try:
            until(lambda: self._seen(identifier, told) == wanted)
        except AssertionError:
            raise AssertionError(f"{wanted} expected, not {told}") from None
        return sorted(self._told(identifier), key=lambda each: operations.index(operation(each)))

    def _seen(self, identifier: str, told: list[str]) -> list[str]:
        told[:] = sorted(map(operation, self._told(identifier)))
        return told

    def _told(self, identifier: str) -> list[TakenSpan]:
        return [
            each for each in list(self.collector.spans) if each.attributes[IDENTIFIER] == identifier
        ]


def operation(span: TakenSpan) -> str:
    return span.attributes["messaging.operation.name"]


@pytest.fixture(scope="module")
def traced() -> Iterator[Traced]:
    port = reserved_port()
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        told = f'[otel]\nendpoint = "{collector.url}"\n'
        there = stack.enter_context(
            private_queue_manager(configuration=f"http_port = {port}\n{told}")
        )
        there.run("queue", "create", "orders")
        there.run("queue", "create", "strict")
        there.run("queue", "acl", "deny", "strict", "anonymous", "send")
        objects = stack.enter_context(
            served_objects(f"http_port = {reserved_port()}\n{ENABLED}{told}")
        )
        yield Traced(objects, collector, f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/orders")


@contextmanager
def next_hop(status: int) -> Iterator[int]:
    """The port of a server that answers each post so, after PAUSE."""
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            stopping.wait(PAUSE)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


# By HTTP


def test_a_message_is_one_trace_over_http(traced: Traced) -> None:
    identifier = traced.run("send", traced.there, "--body", "x").strip()
    send, forward, arrive = traced.spans(identifier, "send", "forward", "arrive")
    assert {send.trace} == {forward.trace, arrive.trace}
    assert {send.span} == {forward.parent, arrive.parent}
    assert forward.resource == send.resource != arrive.resource
    assert forward.begun < arrive.ended < forward.ended
    assert "127.0.0.1" in forward.attributes["rpcqm.next_hop"]
    assert forward.attributes["server.address"] == "127.0.0.1"


@pytest.mark.parametrize(("status", "error"), [(200, ""), (400, "400")])
def test_a_hop_by_http_lasts_until_it_is_answered(traced: Traced, status: int, error: str) -> None:
    with next_hop(status) as port:
        name = f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/orders"
        identifier = traced.run("send", name, "--body", "x").strip()
        _, forward = traced.spans(identifier, "send", "forward")
    assert forward.ended - forward.begun >= PAUSE * 1e9 * 0.9
    assert forward.error == error
    assert forward.name == "forward orders"
    assert "127.0.0.1" in forward.attributes["rpcqm.next_hop"]
    assert forward.attributes["server.address"] == "127.0.0.1"


def test_a_message_that_is_refused_where_it_comes_by_http_has_a_span_there(traced: Traced) -> None:
    there = traced.there.replace("orders", "strict")
    identifier = traced.run("send", there, "--body", "x").strip()
    send, _, arrive = traced.spans(identifier, "send", "forward", "arrive")
    assert arrive.name == "arrive strict"
    assert arrive.error == arrive.attributes["error.type"] == "NACK_ACCESS_DENIED"
    assert (arrive.trace, arrive.parent) == (send.trace, send.span)


# To several queues


def test_a_message_to_several_queues_has_one_root(traced: Traced) -> None:
    traced.run("queue", "create", "more")
    several = rf"DIRECT=OS:.\private$\orders,DIRECT=OS:.\private$\more,{traced.there}"
    identifier = traced.run("send", several, "--body", "x").strip()
    spans = traced.spans(identifier, "send", "send", "send", "forward", "arrive")
    assert len({each.span for each in spans}) == len(spans)
    (root,) = [each for each in spans if not each.parent]
    assert operation(root) == "send"
    assert {each.parent for each in spans if each is not root} == {root.span}
    sent = {each.attributes["messaging.destination.name"] for each in spans[:3]}
    assert len(sent) == 3


# By objects, in transactions


def begin(objects: Objects) -> Reference:
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    made = objects.com.call(dispenser, "BeginTransaction")
    assert isinstance(made, Reference)
    return made


def dispatch(reference: Reference) -> Variant:
    return Variant(VARENUM.VT_DISPATCH, reference)


def test_what_objects_send_and_receive_in_a_transaction_is_told_when_it_is_committed(
    traced: Traced,
) -> None:
    objects = traced.objects
    transaction, message = begin(objects), objects.message()
    objects.send(message, objects.destination("DIRECT=OS:" + STREAM), dispatch(transaction))
    assert traced.collector.named("send stream") == []
    objects.com.call(transaction, "Commit", NO, number(2), number(0))
    (told,) = traced.collector.wait_for("send stream")
    identifier = told.attributes[IDENTIFIER]
    for end, outcome in (("Abort", "release"), ("Commit", "complete")):
        transaction = begin(objects)
        queue = objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
        objects.com.call(queue, "Receive", dispatch(transaction), None, None, number(0), None)
        objects.com.call(
            transaction, end, *((NO, NO) if end == "Abort" else (NO, number(2), number(0)))
        )
        until(partial(settled, traced, identifier, outcome))
    send, *others = traced.spans(identifier, "send", "receive", "receive", "settle", "settle")
    assert send.span == told.span
    assert {each.parent for each in others[:2]} == {send.span}
    assert [each.parent for each in others[2:]] == [each.span for each in others[:2]]


def settled(traced: Traced, identifier: str, outcome: str) -> bool:
    return any(
        each.attributes[IDENTIFIER] == identifier
        for each in traced.collector.named("settle stream")
        if each.attributes["rpcqm.outcome"] == outcome
    )


def test_what_a_transaction_has_not_sent_is_not_told(traced: Traced) -> None:
    objects = traced.objects
    before = len(traced.collector.named("send stream"))
    transaction = begin(objects)
    objects.send(
        objects.message(), objects.destination("DIRECT=OS:" + STREAM), dispatch(transaction)
    )
    objects.com.call(transaction, "Abort", NO, NO)
    identifier = traced.run("send", "stream", "--transactional", "--body", "x").strip()
    traced.spans(identifier, "send")
    assert len(traced.collector.named("send stream")) == before + 1


def test_what_objects_receive_is_told_and_settled(traced: Traced) -> None:
    objects = traced.objects
    objects.empty()
    identifier = traced.run("send", "orders", "--body", "x").strip()
    objects.received()
    _, receive, settle = traced.spans(identifier, "send", "receive", "settle")
    assert settle.parent == receive.span
    assert settle.attributes["rpcqm.outcome"] == "complete"


def test_who_peeks_is_not_told_of(traced: Traced) -> None:
    objects = traced.objects
    objects.empty()
    identifier = traced.run("send", "orders", "--body", "x").strip()
    traced.run("peek", "orders")
    assert objects.bodies() != []
    traced.run("receive", "orders")
    traced.spans(identifier, "send", "receive", "settle")
