"""The doors for messages over HTTP of a running queue manager."""

import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError
from tests.support.certificates import write_tls_files
from tests.support.rpc.listeners import listening
from tests.support.waiting import until

ENVELOPE = b"<Envelope/>"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tls_files(tmp_path_factory.mktemp("tls"))


def configured(files: tuple[Path, Path], more: str = "") -> str:
    certificate, key = files
    return f"""\
https_port = 0
[security]
hardened_security = true
[srmp]
certificate = "{certificate}"
key = "{key}"
{more}"""


@pytest.fixture(scope="module")
def queue_manager(files: tuple[Path, Path]) -> Iterator[PrivateQueueManager]:
    options = ("--http-port", "0")
    with private_queue_manager(configuration=configured(files), options=options) as running:
        yield running


def status(asking: http.client.HTTPConnection, method: str = "POST") -> int:
    asking.request(method, "/msmq/private$/q", ENVELOPE, {"Content-Type": "text/xml"})
    answer = asking.getresponse()
    answer.read()
    asking.close()
    return answer.status


def plain(running: PrivateQueueManager) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(*running.endpoint("http"), timeout=20)


def protected(running: PrivateQueueManager, certificate: Path) -> http.client.HTTPConnection:
    context = ssl.create_default_context(cafile=certificate)
    port = running.endpoint("https")[1]
    return http.client.HTTPSConnection("localhost", port, timeout=20, context=context)


@pytest.mark.conformance("MQSRM-rule-2.1.1")
def test_both_doors_take_messages_and_nothing_else(
    queue_manager: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    assert status(plain(queue_manager)) == 400
    assert status(protected(queue_manager, files[0])) == 400
    assert status(plain(queue_manager), "GET") == 405
    for door in ("http", "https"):
        assert f":{queue_manager.endpoint(door)[1]}" in queue_manager.log


def test_hardened_security_leaves_http_alone_open(queue_manager: PrivateQueueManager) -> None:
    endpoints = queue_manager.ready.endpoints
    assert "binary" not in endpoints
    assert {"http", "https"} <= set(endpoints)


def test_the_doctor_asks_its_own_doors(queue_manager: PrivateQueueManager) -> None:
    found = json.loads(queue_manager.run("doctor", "--json", check=False).stdout)
    told = {each["subject"]: (each["level"], each["text"]) for each in found}
    port = queue_manager.endpoint("http")[1]
    assert told["http door"] == ("ok", f"Port {port} takes messages, and nothing else.")
    assert told["https door"] == ("ok", "The certificate is valid until 2124-12-08.")
    assert "could not be taken over" not in queue_manager.log


def test_the_doctor_knows_a_certificate_that_is_not_valid_yet(
    queue_manager: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    write_tls_files(files[0].parent, start=datetime(2100, 1, 1, tzinfo=UTC))
    assert "reloaded" in queue_manager.reload(configured(files))
    found = json.loads(queue_manager.run("doctor", "--json", check=False).stdout)
    (told,) = [each for each in found if each["subject"] == "https door"]
    assert told["level"] == "problem"
    assert told["text"] == "The certificate is not valid before 2100-01-01."
    write_tls_files(files[0].parent)
    assert "reloaded" in queue_manager.reload(configured(files))


def test_a_new_certificate_holds_for_new_connections(
    queue_manager: PrivateQueueManager, files: tuple[Path, Path]
) -> None:
    old = ssl.create_default_context(cafile=files[0])
    port = queue_manager.endpoint("https")[1]
    write_tls_files(files[0].parent)
    assert "reloaded" in queue_manager.reload(configured(files))
    with pytest.raises(ssl.SSLCertVerificationError):
        http.client.HTTPSConnection("localhost", port, timeout=20, context=old).connect()
    assert status(protected(queue_manager, files[0])) == 400
    good = ssl.create_default_context(cafile=files[0])
    files[0].write_text("this is none")
    assert "has no certificate in PEM form" in queue_manager.reload(configured(files))
    kept = http.client.HTTPSConnection("localhost", port, timeout=20, context=good)
    assert status(kept) == 400
    write_tls_files(files[0].parent)
    assert "reloaded" in queue_manager.reload(configured(files))


def test_a_file_that_cannot_be_used_keeps_the_queue_manager_from_starting(
    tmp_path: Path,
) -> None:
    certificate, _ = write_tls_files(tmp_path)
    other = write_tls_files(tmp_path, "other")[1]
    with pytest.raises(
        StartFailedError, match=f"{other} is not the key of {certificate}\\."
    ) as told:
        PrivateQueueManager(tmp_path / "d", configuration=configured((certificate, other))).start()
    assert "Traceback" not in str(told.value)


def test_without_a_port_nothing_of_it_is_loaded(queue_manager: PrivateQueueManager) -> None:
    assert "_http_parser" in loaded(queue_manager)
    with private_queue_manager() as other:
        assert not {"http", "https"} & set(other.ready.endpoints)
        assert "_http_parser" not in loaded(other)
        assert "lxml" not in loaded(other)


def loaded(running: PrivateQueueManager) -> str:
    assert running.process is not None
    return Path(f"/proc/{running.process.pid}/maps").read_text()


def test_the_port_is_free_again_at_once(tmp_path: Path) -> None:
    with private_queue_manager(data_dir=tmp_path / "data", options=("--http-port", "0")) as running:
        port = running.endpoint("http")[1]
        kept = plain(running)
        kept.request("POST", "/", ENVELOPE)
        assert kept.getresponse().read() == b""
        running.kill()
        again = PrivateQueueManager(tmp_path / "data", ("--http-port", str(port)))
        again.start()
        assert status(plain(again)) == 400
        again.stop()
        kept.close()


def test_the_maps_of_a_good_file_are_told_in_words(tmp_path: Path) -> None:
    config = tmp_path / "rpcqm.toml"
    config.write_text("""\
[srmp]
proxy = "http://proxy:3128"
default_stream_receipt_url = "http://gateway.example/msmq/private$/order_queue$"
outbound_exceptions = ["http://inside/*", "http://near/q"]
[[srmp.inbound]]
from = "http://public/msmq/*"
to = "http://127.0.0.1:8080/msmq/*"
[[srmp.inbound]]
from = "http://public/*"
to = "http://127.0.0.1:8080/msmq/lost"
[[srmp.outbound]]
from = "http://far/*"
to = "http://relay/"
[[srmp.stream_receipt]]
from = "http://other/q"
to = "http://elsewhere/msmq/private$/order_queue$"
""")
    words = [sys.executable, "-m", "rpcqm", "config", "check", str(config)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [
        f"{config} is good.",
        "What arrives for http://public/msmq/ and whatever follows is taken as sent to "
        "http://127.0.0.1:8080/msmq/ and the same rest.",
        "What arrives for http://public/ and whatever follows is taken as sent to "
        "http://127.0.0.1:8080/msmq/lost.",
        "What is sent to http://inside/ and whatever follows goes there directly.",
        "What is sent to http://near/q goes there directly.",
        "What is sent to http://far/ and whatever follows goes through http://relay/.",
        "What is sent elsewhere goes through the proxy http://proxy:3128.",
        "Receipts for streams to http://other/q are wanted at "
        "http://elsewhere/msmq/private$/order_queue$.",
        "Receipts for other streams are wanted at "
        "http://gateway.example/msmq/private$/order_queue$.",
    ]


def test_the_proxy_is_not_asked_for_an_exception_whose_letters_no_request_can_have(
    tmp_path: Path,
) -> None:
    with listening() as near, listening() as proxy:
        url = f"{near.url}msmq/private$/gr\u00fcn"
        configuration = f"""\
[srmp]
proxy = "{proxy.url}"
outbound_exceptions = ["{url}"]
"""
        options = ("--http-port", "0")
        with private_queue_manager(
            configuration=configuration, data_dir=tmp_path / "data", options=options
        ) as running:
            running.run("send", f"DIRECT={url}", "--body", "x")
            until(lambda: near.heard or proxy.heard)
        assert near.heard.startswith(b"POST /msmq/private$/gr%C3%BCn HTTP/1.1")
        assert proxy.heard == b""
