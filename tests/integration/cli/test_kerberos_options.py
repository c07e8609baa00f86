"""`--kerberos`: commands over the network with a ticket, and keys that are taken over."""

import asyncio
import builtins
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.client.names import format_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.rpc.kdc import HOST, SERVICE, Kdc, require_kdc

pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

Command = Callable[..., Any]

BASE = "[storage]\nreserve = 1\n"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    require_kdc()
    with Kdc(tmp_path_factory.mktemp("kdc")) as made:
        yield made


@pytest.fixture(scope="module")
def with_keys(kdc: Kdc) -> str:
    """A configuration with which Kerberos is served."""
    return f'{BASE}[security]\nkeytab = "{kdc.keytab}"\nprincipal = "{SERVICE}"\n'


@pytest.fixture(scope="module")
def queue_manager(kdc: Kdc, with_keys: str) -> Iterator[PrivateQueueManager]:
    """In place of the one of the other tests."""
    with private_queue_manager((), with_keys, kdc.environment) as queue_manager:
        added = ("user", "add", "alice", "--group", "administrators", "--password-stdin")
        queue_manager.run(*added, input="secret\n")
        queue_manager.run("queue", "create", "orders")
        yield queue_manager


@pytest.fixture
def over(
    kdc: Kdc, queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Options with which alice's ticket is used."""
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", kdc.log_on("alice"))
    host, port = queue_manager.endpoint("epm")
    return ("--server", f"{host}:{port}", "--kerberos", "--principal", f"host/{HOST}")


def test_commands_work_with_a_ticket(run: Command, over: tuple[str, ...]) -> None:
    run("send", "orders", "--body", "two apples")
    assert r"private$\orders" in run("queue", "list", *over).text
    assert run("receive", "orders", "--format", "body", *over).text == "two apples"


def test_without_a_ticket_it_says_how_to_get_one(
    refused: Command,
    over: tuple[str, ...],
    kdc: Kdc,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.directory / 'none'}")
    error = refused("queue", "list", *over).errors
    assert error.startswith("rpcqm: Cannot list the queues: Kerberos: No Kerberos credentials")
    assert error.endswith("; `kinit` gets a ticket, `klist` shows it.\n")
    gc.collect()
    assert caplog.text == ""  # of asyncio, about errors that nobody has looked at


def test_a_server_that_the_kdc_does_not_know_is_told(
    refused: Command, over: tuple[str, ...]
) -> None:
    error = refused("queue", "list", *over[:-1], "host/elsewhere").errors
    assert "host/elsewhere" in error
    assert "not found in Kerberos database" in error


def test_without_the_package_it_says_what_to_install(
    refused: Command, over: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without_kerberos(name: str, *more: Any) -> Any:
        if name == "rpcqm.rpc.security.kerberos":
            raise ImportError(name)
        return original(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_kerberos)
    assert refused("queue", "list", *over).errors == (
        "rpcqm: --kerberos needs the package gssapi, which is not installed: "
        "`pip install 'rpcqm[kerberos]'`.\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--kerberos",), "--kerberos needs --server"),
        (("--server", "h", "--principal", "host/h"), "--principal needs --kerberos."),
        (
            ("--server", "h", "--kerberos", "--user", "a"),
            "--kerberos and --user do not go together",
        ),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(
    attempt: Command, words: tuple[str, ...], why: str
) -> None:
    outcome = attempt("queue", "list", *words)
    assert outcome.status == 2
    assert why in outcome.errors


def test_keys_are_taken_over_while_a_connection_lives(
    queue_manager: PrivateQueueManager,
    run: Command,
    refused: Command,
    over: tuple[str, ...],
    with_keys: str,
    tmp_path: Path,
) -> None:
    host, port = queue_manager.endpoint("epm")
    alice = RemoteServer(host, port, NtlmCredentials("alice", "secret"))

    async def across_two_reloads() -> str | None:
        async with (
            QueueManagerClient(alice) as client,
            client.open_reader(format_name("orders", host)) as reader,
        ):
            waiting = asyncio.ensure_future(reader.receive())
            await reader.create_cursor()  # answered after the wait has begun
            await asyncio.to_thread(without_keys)
            await asyncio.to_thread(run, "send", "orders", "--body", "woken")
            async with await waiting as message:
                return message.text

    def without_keys() -> None:
        assert '"security.keytab", "security.principal"' in queue_manager.reload(BASE)
        refused("queue", "list", *over)
        said = queue_manager.reload(with_keys.replace("keytab = ", 'keytab = "/none"  # '))
        assert "not reloaded" in said
        queue_manager.reload(with_keys)
        run("queue", "list", *over)

    assert asyncio.run(across_two_reloads()) == "woken"
