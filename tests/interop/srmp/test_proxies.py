"""Messages go through other people's proxies: nginx, squid, and haproxy that cuts connections."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.http.http_proxies import (
    Tls,
    haproxy,
    nginx,
    nginx_server,
    squid,
)
from tests.support.ports import reserved_port

CUT = 15
"""Of a hundred requests, and of a hundred answers, how many end the connection."""
MESSAGES = 40


@dataclass(frozen=True)
class Ports:
    """Where the proxies listen."""

    ends_tls: int = field(default_factory=reserved_port)
    begins_tls: int = field(default_factory=reserved_port)
    forward: int = field(default_factory=reserved_port)
    cutting: int = field(default_factory=reserved_port)
    alice: int = field(default_factory=reserved_port)

    def inbound(self) -> str:
        """Under which URLs Bob is known outside."""
        public = [f"https://127.0.0.1:{self.ends_tls}"]
        public += [f"http://127.0.0.1:{port}" for port in (self.begins_tls, self.cutting)]
        return "".join(
            f'[[srmp.inbound]]\nfrom = "{url}/*"\nto = "http://127.0.0.1/*"\n' for url in public
        )

    def not_by_squid(self) -> str:
        urls = [f"https://127.0.0.1:{self.ends_tls}/*"]
        urls += [f"http://127.0.0.1:{port}/*" for port in (self.begins_tls, self.cutting)]
        return f"outbound_exceptions = {urls}\n"


@dataclass(frozen=True)
class Two:
    """Alice sends to Bob."""

    alice: PrivateQueueManager
    bob: PrivateQueueManager
    ports: Ports
    nginx_log: Path

    def send(self, url: str, *options: str) -> list[str]:
        """Send messages; their identifiers."""
        return self.alice.run("send", f"DIRECT={url}", *options).stdout.splitlines()

    def received(self, queue: str, count: int, form: str = "body") -> list[str]:
        """A line for each of so many messages."""
        words = ("--count", str(count), "--timeout", "30s", "--format", form)
        return self.bob.run("receive", queue, *words).stdout.splitlines()


@pytest.fixture(scope="module")
def two(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    require("nginx", "squid", "haproxy")
    ports, tls = Ports(), Tls(tmp_path_factory.mktemp("tls"))
    receipts = f"http://127.0.0.1:{ports.alice}/msmq/private$/order_queue$"
    times = "retry_milliseconds = 1500\nstream_receipt_wait_milliseconds = 1500\n"
    alice_settings = (
        f'name = "alice"\nhttp_port = {ports.alice}\n[srmp]\n{times}verify = "{tls.certificate}"\n'
        f'default_stream_receipt_url = "{receipts}"\n'
        f'proxy = "http://127.0.0.1:{ports.forward}/"\n{ports.not_by_squid()}'
    )
    bob_settings = (
        f'name = "bob"\nhttp_port = 0\nhttps_port = 0\n[srmp]\n{times}receipts_to = ["127.0.0.1"]\n'
        f'certificate = "{tls.certificate}"\nkey = "{tls.key}"\n{ports.inbound()}'
    )
    with ExitStack() as stack:
        bob = stack.enter_context(private_queue_manager(configuration=bob_settings))
        alice = stack.enter_context(private_queue_manager(configuration=alice_settings))
        bob.run("queue", "create", "orders")
        bob.run("queue", "create", "stream", "--transactional")
        plain, secure = (f"127.0.0.1:{bob.endpoint(door)[1]}" for door in ("http", "https"))
        nginx_log = stack.enter_context(
            nginx(
                ports.ends_tls,
                nginx_server(ports.begins_tls, secure, "https"),
                nginx_server(ports.ends_tls, plain, tls=tls),
            )
        )
        yield Two(alice, bob, ports, nginx_log)


def test_a_reverse_proxy_ends_tls_for_the_queue_manager(two: Two) -> None:
    port = two.ports.ends_tls
    two.send(f"HTTPS://127.0.0.1:{port}/msmq/private$/orders", "--body", "by https")
    assert two.received("orders", 1) == ["by https"]
    assert 'POST /msmq/private$/orders HTTP/1.1" 200' in two.nginx_log.read_text()


def test_a_reverse_proxy_speaks_tls_to_the_queue_manager(two: Two) -> None:
    port = two.ports.begins_tls
    two.send(f"HTTP://127.0.0.1:{port}/msmq/private$/orders", "--body", "then by https")
    assert two.received("orders", 1) == ["then by https"]


@pytest.mark.parametrize("door", ["http", "https"])
def test_a_forward_proxy_passes_messages_on(two: Two, door: str) -> None:
    port = two.bob.endpoint(door)[1]
    two.send(f"{door.upper()}://127.0.0.1:{port}/msmq/private$/orders", "--body", "by squid")
    without = two.bob.run("peek", "orders", "--format", "body", check=False)
    assert without.stdout == "", "it went past the proxy"
    with squid(two.ports.forward):
        assert two.received("orders", 1) == ["by squid"]


@pytest.mark.parametrize(("queue", "options"), [("orders", ()), ("stream", ("--transactional",))])
def test_messages_survive_a_proxy_that_cuts_connections(
    two: Two, queue: str, options: tuple[str, ...]
) -> None:
    cut = f"if {{ rand(100) lt {CUT} }}"
    target = f"127.0.0.1:{two.bob.endpoint('http')[1]}"
    url = f"HTTP://127.0.0.1:{two.ports.cutting}/msmq/private$/{queue}"
    rules = (f"http-request reject {cut}", f"tcp-response content close {cut}")
    with haproxy(two.ports.cutting, target, *rules):
        sent = two.send(url, "--count", str(MESSAGES), "--body", "", *options)
        arrived = [json.loads(line)["id"] for line in two.received(queue, MESSAGES, "json")]
        left = two.bob.run("receive", queue, check=False).stdout
    assert (sorted(arrived), left) == (sorted(sent), "")
    assert queue == "orders" or arrived == sent
