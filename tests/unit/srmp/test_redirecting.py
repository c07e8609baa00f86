"""Where a message goes that has come by HTTP: every branch of [MC-MQSRM] 3.1.5.1.3."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.srmp.settings import Redirection, SrmpSettings
from tests.support.srmp.srmp_door import HERE, NOW, ORDERS, PORT, SENDER, SRMP, STREAM, Door, msmq
from tests.support.srmp.srmp_text import durable, in_stream

ELSEWHERE = "http://elsewhere.example/msmq/private$/orders"
RELAY = replace(SRMP, transparent_store_and_forward=True)

pytestmark = pytest.mark.conformance("MQSRM-rule-3.1.5.1.3")

Opened = Callable[[SrmpSettings], Door]


@pytest.fixture
def with_settings(directory: Path) -> Opened:
    def open_door(settings: SrmpSettings) -> Door:
        return Door(directory, settings)

    return open_door


def mapped(*rules: tuple[str, str]) -> SrmpSettings:
    return replace(SRMP, inbound=tuple(Redirection(*rule) for rule in rules))


@pytest.mark.parametrize(
    "host",
    [
        f"workstation:{PORT}",
        "workstation",
        "workstation:80",
        "WorkStation.Example.ORG",
        f"192.0.2.7:{PORT}",
        f"localhost:{PORT}",
        f"127.0.0.1:{PORT}",
        "[::1]",
    ],
)
def test_this_machine_is_meant_by_its_names_with_its_port_or_none(door: Door, host: str) -> None:
    assert door.send(f"http://{host}/msmq/private$/orders") == 200
    assert door.contents() == [b"content"]


def test_https_to_this_machine_is_taken_where_a_proxy_ends_it(door: Door) -> None:
    assert door.send("https://workstation/msmq/private$/orders") == 200
    assert door.contents() == [b"content"]


@pytest.mark.parametrize(
    "to",
    [ELSEWHERE, "http://workstation:9999/msmq/private$/orders", "http://192.0.2.8/msmq/q"],
)
def test_another_host_or_port_is_refused(door: Door, to: str) -> None:
    assert door.send(to) == 400
    assert door.outgoing == []


def test_the_log_says_which_port_a_refused_message_was_for(
    door: Door, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever maps ports sees what to write into `aliases`, and that it helps (G634)."""
    to = "http://workstation:9090/msmq/private$/orders"
    assert door.send(to) == 400
    assert "workstation:9090 is another host or port" in capsys.readouterr().err
    door.engine.use_aliases(["workstation:9090"])
    assert door.send(to) == 200
    assert door.contents() == [b"content"]


@pytest.mark.parametrize(
    "host",
    ["queues.example.com", f"queues.example.com:{PORT}", "public.example:9090", "10.9.9.9:80"],
)
def test_further_names_of_this_machine_are_this_machine(door: Door, host: str) -> None:
    door.engine.use_aliases(["queues.example.com", "10.9.9.9", "public.example:9090"])
    assert door.send(f"http://{host}/msmq/private$/orders") == 200
    assert door.contents() == [b"content"]


@pytest.mark.parametrize("host", ["public.example", f"public.example:{PORT}", "10.9.9.9:9090"])
def test_a_further_name_with_a_port_is_this_machine_at_that_port_only(
    door: Door, host: str
) -> None:
    door.engine.use_aliases(["10.9.9.9", "public.example:9090"])
    assert door.send(f"http://{host}/msmq/private$/orders") == 400


@pytest.mark.conformance("MQSRM-element-TransparentStoreAndForward")
def test_a_relay_takes_messages_for_other_hosts(with_settings: Opened) -> None:
    door = with_settings(RELAY)
    assert door.send(ELSEWHERE, b"for others") == 200
    door.settle()
    (posted,) = door.peers.posted
    assert posted.url == ELSEWHERE
    assert posted.envelope.to == ELSEWHERE
    assert door.contents() == []
    door.stop()


def test_a_relay_takes_messages_for_this_machine_itself(with_settings: Opened) -> None:
    door = with_settings(RELAY)
    assert door.send(ORDERS) == 200
    assert (door.contents(), door.peers.posted) == ([b"content"], [])
    door.stop()


def test_a_relayed_message_is_forwarded_once(with_settings: Opened) -> None:
    door = with_settings(RELAY)
    for _ in range(2):
        assert door.send(ELSEWHERE, ordinal=5, msmq=msmq()) == 200
        door.settle()
    assert len(door.peers.posted) == 1
    door.stop()


def test_a_relay_sends_on_each_repetition_in_a_stream_but_keeps_it_once(
    with_settings: Opened,
) -> None:
    """Its destination acknowledges it, so that only its sender knows that it is to come again."""
    door = with_settings(RELAY)
    first: dict[str, Any] = {
        "stream": in_stream(SENDER, 1, "http://203.0.113.5/msmq/private$/order_queue$"),
        "msmq": msmq(),
    }
    door.peers.status = 500
    for _ in range(3):
        assert door.send(ELSEWHERE, **first) == 200
    (queue,) = door.outgoing
    assert queue.message_count == 1
    door.peers.status = 200
    door.advance(SRMP.retry)
    assert queue.message_count == 0
    door.peers.posted.clear()
    assert door.send(ELSEWHERE, **first) == 200
    door.settle()
    (posted,) = door.peers.posted
    assert posted.envelope.stream is not None
    assert posted.envelope.stream.send_receipts_to == (
        "http://203.0.113.5/msmq/private$/order_queue$"
    )
    door.stop()


def test_a_relay_drops_what_has_expired(with_settings: Opened) -> None:
    door = with_settings(RELAY)
    assert door.send(ELSEWHERE, expires="20260601T115959") == 200
    door.settle()
    assert (door.outgoing, door.peers.posted) == ([], [])
    door.stop()


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
def test_the_inbound_map_leads_a_public_name_to_a_queue_here(with_settings: Opened) -> None:
    door = with_settings(mapped(("http://public/msmq/*", f"{HERE[: HERE.index('private')]}*")))
    assert door.send("http://PUBLIC/msmq/private$/orders") == 200
    (message,) = door.messages()
    assert str(message.destination_queue_format_name) == (
        "DIRECT=HTTP://PUBLIC/msmq/private$/orders"
    )
    door.stop()


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
def test_the_inbound_map_rewrites_names_of_this_machine_too(with_settings: Opened) -> None:
    door = with_settings(mapped((f"{HERE}/old", ORDERS)))
    assert door.send(f"{HERE}/old") == 200
    assert door.send(f"{HERE}/older") == 400
    assert door.contents() == [b"content"]
    door.stop()


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
def test_the_first_rule_that_matches_counts(with_settings: Opened) -> None:
    door = with_settings(
        mapped(
            ("http://public/msmq/special", ORDERS),
            ("http://public/*", "http://elsewhere.example/*"),
        )
    )
    assert door.send("http://public/msmq/special") == 200
    assert (door.contents(), door.outgoing) == ([b"content"], [])
    door.stop()


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
def test_what_the_inbound_map_sends_elsewhere_goes_on_with_its_identity(
    with_settings: Opened,
) -> None:
    door = with_settings(mapped(("http://public/msmq/*", "http://elsewhere.example/msmq/*")))
    assert door.send("http://public/msmq/private$/orders", ordinal=77, msmq=msmq()) == 200
    door.settle()
    (posted,) = door.peers.posted
    assert posted.url == posted.envelope.to == ELSEWHERE
    assert posted.envelope.id.ordinal == 77
    assert posted.envelope.msmq is not None
    assert str(posted.envelope.msmq.source_qm_guid) == SENDER
    assert posted.envelope.sent_at is not None
    assert posted.envelope.sent_at < NOW
    door.stop()


@pytest.mark.parametrize(
    "to",
    [
        f"{HERE}/nowhere",
        f"{HERE}/orders;journal",
        f"{HERE}/orders;sub",
        f"http://workstation:{PORT}/msmq/orders",
        f"http://workstation:{PORT}/msmq/private$/../orders",
        f"http://workstation:{PORT}/other/private$/orders",
        f"http://workstation:{PORT}/msmq/system$;deadletter",
        "MSMQ:MULTICAST=234.1.1.1:8001",
        "ftp://workstation/msmq/private$/orders",
    ],
)
def test_what_is_no_queue_here_is_refused(door: Door, to: str) -> None:
    assert door.send(to) == 400
    assert door.contents() == []


def test_a_queue_takes_what_is_for_its_multicast_address(door: Door) -> None:
    door.queue().multicast_address = "234.1.1.1:8001"
    assert door.send("MSMQ:MULTICAST=234.1.1.1:8001") == 200
    assert door.contents() == [b"content"]


MULTICAST = "MSMQ:MULTICAST=234.1.1.1:8001"


def listening(door: Door, *names: str) -> None:
    for name in names:
        door.create(rf"private$\{name}", multicast_address="234.1.1.1:8001")


def test_no_queue_takes_a_copy_during_maintenance(door: Door) -> None:
    listening(door, "first", "second")
    door.engine.begin_maintenance()
    assert door.send(MULTICAST) == 503
    assert door.contents("first") == door.contents("second") == []


def test_each_queue_with_a_multicast_address_takes_a_copy(door: Door) -> None:
    """A message that comes again is known to each of them, after a restart as well."""
    listening(door, "first", "second", "third")
    for _ in range(2):
        for _ in range(2):
            assert door.send(MULTICAST, ordinal=5, msmq=msmq(), services=durable()) == 200
        for name in ("first", "second", "third"):
            assert door.contents(name) == [b"content"]
        door.restart()


def test_a_queue_without_room_leaves_the_copies_of_the_others(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is 500, so that the message comes again; who has it takes it for a repetition."""
    door = Door(directory)
    listening(door, "first", "second")
    arrivals, full = door.engine.arrivals, door.queue("second")
    store = arrivals.store

    def without_room(queue: Queue, *more: Any) -> Completion[None]:
        if queue is full:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        return store(queue, *more)

    with monkeypatch.context() as patched:
        patched.setattr(arrivals, "store", without_room)
        assert door.send(MULTICAST, ordinal=5, msmq=msmq()) == 500
    assert (door.contents("first"), door.contents("second")) == ([b"content"], [])
    assert door.send(MULTICAST, ordinal=5, msmq=msmq()) == 200
    assert (door.contents("first"), door.contents("second")) == ([b"content"], [b"content"])
    door.stop()


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
@pytest.mark.parametrize(
    "to",
    [
        "http://public.example/in/orders",
        "http://public.example/in/",
        "http://public.example/a/b/c",
        "https://public.example/",
    ],
)
def test_the_inbound_map_leads_any_url_to_a_queue_here(with_settings: Opened, to: str) -> None:
    """[MC-MQSRM] 3.1.5.1.3 compares texts: <to> need not look like the URL of a queue."""
    door = with_settings(mapped((to, ORDERS)))
    assert door.send(to) == 200
    (got,) = door.messages()
    assert str(got.destination_queue_format_name) == f"DIRECT=HTTP{HERE[4:]}/orders"
    door.stop()


def test_a_message_of_a_stream_is_for_transactional_queues_only(door: Door) -> None:
    first = in_stream(SENDER, 1, "http://203.0.113.5/msmq/q")
    assert door.send(ORDERS, stream=first, msmq=msmq()) == 400
    assert door.send(STREAM, stream=first, msmq=msmq()) == 200
    assert (door.contents(), door.contents("stream")) == ([], [b"content"])


def test_another_message_is_for_ordinary_queues_only(door: Door) -> None:
    assert door.send(STREAM) == 400
    assert door.contents("stream") == []


def test_nobody_sends_to_the_queue_managers_own_queues(door: Door) -> None:
    """They are there, but nobody has rights: 200 and nothing, as for any denial (G218)."""
    assert door.send(f"{HERE}/order_queue$") == 200
    assert door.contents() == []


def test_nothing_is_taken_while_the_queue_manager_is_off_the_network(door: Door) -> None:
    """The answer is one after which senders try again (G221, G460)."""
    door.engine.take_offline()
    assert door.send(ORDERS) == 503
    assert door.send_receipt(f"{HERE}/order_queue$") == 503
    assert door.contents() == []
    door.engine.bring_online()
    assert door.send(ORDERS) == 200
    assert door.contents() == [b"content"]
