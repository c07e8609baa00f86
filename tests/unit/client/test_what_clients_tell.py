"""What a client tells a server of itself, of its reads and of its messages."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client import identity
from rpcqm.client.dependent import DependentQueue
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.qm2qm_session import open_remote_queue
from rpcqm.client.remote_queue import RemoteQueue
from rpcqm.client.remote_read import QueueReader, RemoteReadSession
from rpcqm.client.sending import QueueSender
from rpcqm.client.target import RemoteServer
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import EncryptionAlgorithm, PrivacyLevel
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from tests.support.rpc.scripted import Scripted

NAME = FormatName.parse(r"DIRECT=OS:mail\private$\orders")
QUEUE, DESCRIPTOR, CURSOR = 11, 22, 33


def told(work: Callable[[Scripted], Coroutine[Any, Any, object]], **answers: Any) -> list[Any]:
    """The requests that some work sends to a server."""
    connections = Scripted(**answers)
    asyncio.run(work(connections))
    return [request for _, request in connections.calls]


@pytest.mark.conformance("MQMP-client-3.2.4.7", "MQRR-client-3.2.4.1")
def test_every_way_of_opening_names_the_same_computer() -> None:
    opened = SimpleNamespace(
        result=0, phQueue=b"1", pdwQMContext=1, lplpRemoteQueueName=None, pphContext=b"1"
    )

    async def open_all(connections: Scripted) -> None:
        await QueueSender(connections, NAME).__aenter__()
        await DependentQueue(connections, NAME, lambda _: connections).__aenter__()
        await open_remote_queue(connections, NAME, 1, 0, identity.licence_guid())
        await RemoteReadSession(connections, NAME).open(1, False)

    numbers = SimpleNamespace(**vars(opened), pdwContext=1, dwpQueue=1)
    sending, dependent, remote, reading = told(
        open_all,
        rpc_QMOpenQueueInternal=opened,
        R_QMOpenRemoteQueue=numbers,
        R_OpenQueue=opened,
    )
    named = {sending.pLicGuid, dependent.pLicGuid, remote.pLicGuid, reading.pClientId}
    assert named == {identity.licence_guid()}
    assert identity.licence_guid() != UUID(int=0)


def test_every_process_of_a_computer_names_it_alike(tmp_path: Path) -> None:
    file = tmp_path / "machine-id"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    program = (
        "import pathlib, sys; from rpcqm.client import identity; "
        "identity._MACHINE_IDENTIFIER = pathlib.Path(sys.argv[1]); print(identity.licence_guid())"
    )
    command = [sys.executable, "-c", program, str(file)]
    said = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert said[0] == said[1]


def test_the_machine_identifier_itself_is_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "machine-id"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(identity, "_MACHINE_IDENTIFIER", file)
    derived = identity.licence_guid.__wrapped__()
    assert derived.hex != "0123456789abcdef0123456789abcdef"
    assert derived == identity.licence_guid.__wrapped__()
    file.write_text("nonsense")
    assert identity.licence_guid.__wrapped__() != identity.licence_guid.__wrapped__()


@pytest.mark.conformance("MQRR-client-3.2.4.1")
def test_who_logs_on_by_kerberos_is_a_member_of_a_domain() -> None:
    kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos")
    by_password, by_ticket = NtlmCredentials("kim", "secret"), kerberos.KerberosCredentials()
    negotiated = SpnegoCredentials((by_ticket, by_password))
    assert identity.in_workgroup(RemoteServer("mail"))
    assert identity.in_workgroup(RemoteServer("mail", credentials=by_password))
    assert not identity.in_workgroup(RemoteServer("mail", credentials=by_ticket))
    assert not identity.in_workgroup(RemoteServer("mail", credentials=negotiated))


@pytest.mark.conformance("MQRR-client-3.2.4.3", "MQRR-client-3.2.4.4")
def test_no_two_reads_of_a_process_have_one_number() -> None:
    async def read(connections: Scripted) -> None:
        for reader in [QueueReader(connections, NAME) for _ in range(3)]:
            async with reader:
                for _ in range(100):
                    with pytest.raises(MQError):
                        await reader.peek(0)

    requests = told(
        read,
        R_OpenQueue=SimpleNamespace(result=0, pphContext=b"1"),
        R_StartReceive=MQError(HResult.MQ_ERROR_IO_TIMEOUT),
    )
    numbers = [each.dwRequestId for each in requests if hasattr(each, "dwRequestId")]
    assert len(numbers) == len(set(numbers)) == 300


@pytest.mark.conformance(
    "MQQP-client-3.2.4.2", "MQQP-client-3.2.4.5", "MQQP-client-3.2.4.7", "MQQP-client-3.2.4.1"
)
def test_a_server_is_told_both_numbers_that_it_gave_a_queue() -> None:
    """phQueue and dwpQueue are one number at rpcqm, and may be two at others."""
    version = SimpleNamespace(result=0, pMajor=6, pMinor=1, pBuildNumber=7601)

    async def use(connections: Scripted) -> None:
        queue = RemoteQueue(connections, QUEUE, DESCRIPTOR)
        await queue.open(1, identity.licence_guid(), False)
        with pytest.raises(AttributeError):  # the table has no message to answer with
            await queue.read(0, 7)
        with pytest.raises(AttributeError):
            await queue.read_by_lookup_identifier(0x40000010, 8, 1)
        await queue.cancel(7)

    _, opening, _, read, looked_up, cancel = told(
        use,
        RemoteQMOpenQueue=SimpleNamespace(result=0, phContext=b"1"),
        RemoteQmGetVersion=version,
    )
    assert (opening.hQueue, opening.pQueue) == (QUEUE, DESCRIPTOR)
    assert (cancel.hQueue, cancel.pQueue) == (QUEUE, DESCRIPTOR)
    for request in (read, looked_up):
        description = request.lpRemoteReadDesc2.pRemoteReadDesc
        assert (description.hRemoteQueue, description.dwQueue) == (QUEUE, DESCRIPTOR)


# Messages


@pytest.mark.conformance("MQMP-client-3.2.4.10")
def test_a_label_that_a_server_would_cut_is_refused() -> None:
    fits = transfer_buffer_of(OutgoingMessage(label="x" * 247 + "\U0001f34e"), 0).old
    assert fits.ulTitleBufferSizeInWCHARs == 249
    with pytest.raises(MQError) as refused:
        transfer_buffer_of(OutgoingMessage(label="x" * 250), 0)
    assert refused.value.status is HResult.MQ_ERROR_LABEL_TOO_LONG


@pytest.mark.conformance("MQMP-client-3.2.4.10")
@pytest.mark.parametrize(
    ("privacy", "algorithm"),
    [
        (PrivacyLevel.NONE, None),
        (PrivacyLevel.BASE, EncryptionAlgorithm.RC4),
        (PrivacyLevel.ENHANCED, EncryptionAlgorithm.RC4),
        (PrivacyLevel.ADVANCED, EncryptionAlgorithm.AES256),
    ],
)
def test_a_level_of_privacy_comes_with_its_algorithm(
    privacy: PrivacyLevel, algorithm: EncryptionAlgorithm | None
) -> None:
    old = transfer_buffer_of(OutgoingMessage(privacy=privacy), 0).old
    assert (old.pulPrivLevel, old.pulEncryptAlg) == (privacy, algorithm)
