"""The console asked without TLS, from an address that is really elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.network.namespace import Namespace, NamespaceError
from tests.support.served import ServedQueueManager

ELSEWHERE = "192.0.2.1"
PORT = 15680
FORM = ("--header", "Origin: {home}", "--data", "account=boss&password=secret")


@pytest.fixture(scope="module")
def network() -> Iterator[Namespace]:
    """A machine with an address that is not loopback's."""
    try:
        with Namespace() as namespace:
            words = ("ip", "address", "add", f"{ELSEWHERE}/32", "dev", "lo")
            assert namespace.run(words).returncode == 0
            yield namespace
    except NamespaceError as error:
        pytest.skip(f"no private network namespace can be made here: {error}")


def answer(network: Namespace, home: str, path: str, *options: str) -> tuple[str, str]:
    """The status and all that is answered."""
    words = ["curl", "--silent", "--include", *options, f"{home}{path}"]
    told = network.run([each.format(home=home) for each in words]).stdout
    return told.partition(" ")[2][:3], told


def test_nobody_logs_on_from_elsewhere_without_tls(network: Namespace, tmp_path: Path) -> None:
    settings = '[console]\nhost = "0.0.0.0"\n'
    home = f"http://{ELSEWHERE}:{PORT}"
    options = ("--console-port", str(PORT))
    with ServedQueueManager(network, tmp_path / "served", settings, options) as running:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        running.command(*words, stdin="secret\n")
        told = [
            answer(network, home, "/api/v1/queues", "--user", "boss:secret"),
            answer(network, home, "/console/logon"),
            answer(network, home, "/console/logon", *FORM),
        ]
    assert [status for status, _ in told] == ["403"] * 3
    assert all("needs TLS" in text or "need TLS" in text for _, text in told)
    assert not any("WWW-Authenticate" in text or "Set-Cookie" in text for _, text in told)
