"""Whom URLs in strangers' messages may lead to (G217)."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rpcqm.srmp.connection import stranger_urls
from rpcqm.srmp.connection.stranger_urls import StrangerUrls, address_of
from tests.support.srmp.srmp_door import PEER, SRMP, Door, msmq
from tests.support.srmp.srmp_text import SOURCE, Elements, durable, in_stream, message

ORDERS = "http://workstation/msmq/private$/orders"


def ask(door: Door, host: str, peer: str = PEER, ordinal: int = 1) -> None:
    """A message that wants a receipt sent to a host."""
    url = f"<sendTo>http://{host}/msmq/private$/receipts</sendTo>"
    services = durable(f"<deliveryReceiptRequest>{url}</deliveryReceiptRequest>")
    elements = Elements(ordinal=ordinal, services=services, msmq=msmq())
    assert door.post(message(ORDERS, b"content", elements), peer) == 200
    door.settle()


def hosts(door: Door) -> list[str]:
    """The hosts that have been posted to."""
    return [posted.url.split("/")[2] for posted in door.peers.posted]


@pytest.mark.parametrize("host", [PEER, f"{PEER}:8080", f"[::ffff:{PEER}]"])
def test_a_peer_may_name_its_own_address(door: Door, host: str) -> None:
    ask(door, host)
    assert hosts(door) == [host]


@pytest.mark.parametrize(
    "host", ["203.0.113.6", "127.0.0.2", "169.254.1.1", "0.0.0.0", "[::1]", "[fe80::1]", "10.0.0.1"]
)
def test_a_peer_may_not_name_another_address(door: Door, host: str) -> None:
    ask(door, host)
    assert (hosts(door), door.outgoing, door.contents()) == ([], [], [b"content"])


def test_a_host_that_no_url_can_have_is_not_used_and_does_not_hinder_the_next_start(
    door: Door,
) -> None:
    ask(door, f"[{PEER}]")
    door.crash()
    assert (hosts(door), door.outgoing, door.contents()) == ([], [], [b"content"])


def test_a_name_must_resolve_to_the_peer(door: Door) -> None:
    door.peers.addresses = {"own.example": PEER, "other.example": "10.0.0.1"}
    ask(door, "own.example")
    ask(door, "other.example", ordinal=2)
    assert hosts(door) == ["own.example"]
    assert door.peers.refused == ["http://other.example/msmq/private$/receipts"]


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.1.1", "::1", "224.0.0.1"])
def test_a_name_that_leads_inward_is_not_followed(door: Door, address: str) -> None:
    door.peers.addresses = {"inward.example": address}
    ask(door, "inward.example", peer=PEER)
    ask(door, "inward.example", peer=address, ordinal=2)
    assert hosts(door) == []


@pytest.mark.parametrize("address", ["127.0.0.9", "169.254.1.1"])
def test_what_leads_inward_is_not_the_peers_own(door: Door, address: str) -> None:
    ask(door, f"{address}:9000", peer=address)
    assert (hosts(door), door.outgoing) == ([], [])


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "gateway.example", "[::1]:9000"])
def test_a_host_that_is_listed_may_be_named_by_all(directory: Path, host: str) -> None:
    listed = frozenset({"127.0.0.1", "Gateway.Example", "::1"})
    door = Door(directory, replace(SRMP, http_port=18080, receipts_to=listed))
    door.peers.addresses = {"gateway.example": "127.0.0.1"}
    ask(door, host, peer="127.0.0.1" if host.startswith("127") else PEER)
    assert hosts(door) == [host]
    door.stop()


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.1.1"])
def test_a_name_that_is_listed_leads_inward_only_to_what_is_listed(
    directory: Path, address: str
) -> None:
    listed = frozenset({"gateway.example", "workstation"})
    door = Door(directory, replace(SRMP, http_port=18080, receipts_to=listed))
    door.peers.addresses = {"gateway.example": address, "workstation": "127.0.0.1"}
    ask(door, "gateway.example")
    assert hosts(door) == []
    ask(door, "workstation:9000", ordinal=2)
    assert hosts(door) == ["workstation:9000"]
    door.stop()


def test_the_line_about_a_url_that_is_not_used_names_its_host(door: Door) -> None:
    with capture_logs() as lines:
        ask(door, "10.0.0.1")
    (line,) = [each for each in lines if "receipts_to" in str(each["event"])]
    assert (line["host"], line["source"]) == ("10.0.0.1", PEER)


def test_a_queue_of_one_stranger_is_not_for_another(door: Door) -> None:
    door.peers.addresses = {"own.example": PEER}
    ask(door, "own.example")
    ask(door, "own.example", peer="203.0.113.99", ordinal=2)
    ask(door, "own.example", ordinal=3)
    assert hosts(door) == ["own.example", "own.example"]


def test_a_host_with_two_addresses_may_come_from_either(door: Door) -> None:
    door.peers.addresses = {"own.example": PEER}
    ask(door, "own.example")
    door.protocol.stranger_urls.note("own.example", _address("203.0.113.99"))
    ask(door, "own.example", peer="203.0.113.99", ordinal=2)
    assert hosts(door) == ["own.example", "own.example"]


def test_it_holds_after_a_restart(door: Door) -> None:
    door.peers.addresses = {"other.example": "10.0.0.1"}
    ask(door, "other.example")
    door.restart()
    door.advance(door.srmp.retry)
    assert hosts(door) == []
    assert len(door.peers.refused) > 1


@pytest.mark.bound("srmp.hosts_of_strangers")
def test_the_addresses_of_so_many_hosts_are_remembered(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stranger_urls, "HOSTS", 2)
    urls: StrangerUrls = door.protocol.stranger_urls
    for number in (1, 2, 1, 3):
        urls.note(f"host{number}", _address(PEER))
    assert list(urls._seen) == ["host1", "host3"]


def _address(text: str) -> stranger_urls.Address:
    address = address_of(text)
    assert address is not None
    return address


OTHER = "DIRECT={}\\private$\\receipts"


@pytest.mark.parametrize(
    "host", ["TCP:127.0.0.1", "TCP:203.0.113.6", "OS:own.example", "OS:2130706433", "TCP:::1"]
)
def test_a_name_that_is_no_url_leads_nowhere_either(door: Door, host: str) -> None:
    ask_other(door, host)
    assert door.outgoing == []


@pytest.mark.parametrize("host", [f"TCP:{PEER}", "OS:gateway.example"])
def test_a_name_that_is_no_url_may_lead_to_the_peer_or_who_is_listed(
    directory: Path, host: str
) -> None:
    door = Door(directory, replace(SRMP, receipts_to=frozenset({"gateway.example"})))
    ask_other(door, host)
    (queue,) = door.outgoing
    assert (queue.destination_format_name, queue.message_count) == (OTHER.format(host), 2)
    door.stop()


def ask_other(door: Door, host: str) -> None:
    """A message that wants receipts at a name that is no URL."""
    url = f"<sendTo>MSMQ:{OTHER.format(host)}</sendTo>"
    services = durable(
        f"<deliveryReceiptRequest>{url}</deliveryReceiptRequest>",
        f"<commitmentReceiptRequest>{url}<positiveOnly/></commitmentReceiptRequest>",
    )
    assert door.send(ORDERS, ordinal=1, services=services, msmq=msmq()) == 200
    door.receive(door.open(door.queue()))
    door.settle()


def test_a_stream_has_its_receipts_at_a_url_only(door: Door) -> None:
    place = in_stream(SOURCE, 1, "MSMQ:" + OTHER.format(f"TCP:{PEER}"))
    to = ORDERS.replace("orders", "stream")
    assert door.send(to, services=durable(), stream=place, msmq=msmq("<DeadLetter/>")) == 200
    door.receive(door.open(door.queue("stream")))
    door.advance(SRMP.receipt_coalescing)
    assert door.outgoing == []
