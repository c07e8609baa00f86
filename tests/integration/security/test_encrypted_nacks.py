"""What came encrypted does not go back in clear ([MS-MQQB] 3.1.7.15)."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from rpcqm.base.errors import HResult, MQError
from rpcqm.binary import ciphers
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.packet.enums import MessageClass, PrivacyLevel
from rpcqm.codec.types import qmcomm2
from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import (
    ALL_ACKNOWLEDGEMENTS,
    HERE,
    Stranger,
    Victim,
    with_security_flags,
)
from tests.support.rpc.dependent_client import body_in, receiving_buffer, sending_buffer

BODY = b"nobody on the way may read this"
ENCRYPTED = 0x20


@pytest.fixture(scope="module")
def key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def victim(key: RSAPrivateKey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    path = tmp_path_factory.mktemp("keys") / "encryption.pem"
    _write(path, key)
    configuration = f'[binary]\nencryption_key = "{path}"\n[security]\nsend_insecure_nacks = true\n'
    with private_queue_manager(configuration=configuration) as queue_manager:
        yield Victim(queue_manager)


def _write(path: Path, key: RSAPrivateKey) -> None:
    path.touch(0o600)
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )


def send_encrypted(stranger: Stranger, key: RSAPrivateKey, to: str, told: str) -> None:
    level = PrivacyLevel.ADVANCED
    algorithm = ciphers.PREFERRED[level]
    symmetric, blob = ciphers.new_key(key.public_key(), level, algorithm)
    stranger.send(
        to,
        body=ciphers.encrypt(BODY, symmetric, algorithm),
        privacy_level=level,
        encryption_algorithm=algorithm,
        symmetric_key=blob,
        administration_queue_format_name=told,
        acknowledgements_requested=ALL_ACKNOWLEDGEMENTS,
    )


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--quota", "0"), MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA),
        (("--privacy", "none"), MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION),
    ],
)
def test_the_refusal_of_an_encrypted_message_has_no_body(
    victim: Victim, key: RSAPrivateKey, options: tuple[str, ...], reason: MessageClass
) -> None:
    told, refusing = victim.create("told"), victim.create("refusing", *options)
    with Stranger(victim.address) as stranger:
        send_encrypted(stranger, key, refusing, told)
        refused = victim.receive(told)
    assert (refused.message_class, refused.body) == (reason, b"")


@pytest.mark.conformance("MQQB-event-send_administration_acknowledgment")
def test_a_purge_does_not_tell_the_body_either(victim: Victim, key: RSAPrivateKey) -> None:
    told, purged = victim.create("told"), victim.create("purged")
    with Stranger(victim.address) as stranger:
        send_encrypted(stranger, key, purged, told)
        arrived = victim.receive(told)
        victim.purge(purged)
        refused = victim.receive(told)
    assert arrived.message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
    assert refused.message_class == MessageClass.MQMSG_CLASS_NACK_Q_PURGED
    assert refused.body == b""


def test_a_body_called_encrypted_without_a_level_is_not_sent_back(victim: Victim) -> None:
    told, refusing = victim.create("told"), victim.create("refusing")
    with Stranger(victim.address) as stranger:
        packet = stranger.message(
            refusing,
            body=BODY,
            symmetric_key=os.urandom(64),
            administration_queue_format_name=told,
            acknowledgements_requested=ALL_ACKNOWLEDGEMENTS,
        )
        stranger.send_packet(with_security_flags(packet, ENCRYPTED))
        refused = victim.receive(told)
    assert refused.message_class == MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION
    assert refused.body == b""


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_readers_see_how_private_a_message_was(victim: Victim, key: RSAPrivateKey) -> None:
    told, name = victim.create("told"), victim.create("private")
    with Stranger(victim.address) as stranger:
        send_encrypted(stranger, key, name, told)
        message = victim.receive(name)
    assert message.body == BODY
    assert message.privacy_level == PrivacyLevel.ADVANCED
    assert message.security_header is not None
    assert not message.security_header.flags.EB


def encrypted_for(key: RSAPrivateKey, level: PrivacyLevel) -> dict[str, object]:
    """The fields by which an application sends a body that it has encrypted itself."""
    algorithm = ciphers.PREFERRED[level]
    symmetric, blob = ciphers.new_key(key.public_key(), level, algorithm)
    return {
        "body": ciphers.encrypt(BODY, symmetric, algorithm),
        "bEncrypted": 1,
        "pulPrivLevel": int(level),
        "pulEncryptAlg": int(algorithm),
        "ppSymmKeys": blob,
        "ulSymmKeysSize": len(blob),
    }


async def send_by_rpc(client: QueueManagerClient, name: FormatName, **fields: Any) -> None:
    """rpc_ACSendMessageEx of a buffer as it is."""
    async with client.open_sender(name) as sender:
        request = qmcomm2.rpc_ACSendMessageExRequest(
            hQueue=sender._handles[None], ptb=sending_buffer(**fields), pMessageID=None
        )
        await client._connections.call(request)


async def receive_by_rpc(client: QueueManagerClient, name: FormatName) -> tuple[bytes, int | None]:
    """The body and pulPrivLevel of the next message, by rpc_ACReceiveMessageEx."""
    async with client.open_dependent(name) as queue:
        request = qmcomm2.rpc_ACReceiveMessageExRequest(
            hQMContext=queue._context,
            ptb=receiving_buffer(100, timeout=20_000, pulPrivLevel=0),
        )
        answer = await client._connections.call(request)
        return body_in(answer.ptb), answer.ptb.old.pulPrivLevel


@pytest.mark.conformance("MQMP-op-c2_2")
def test_dependent_clients_see_how_private_a_message_was(
    victim: Victim, key: RSAPrivateKey
) -> None:
    told, name = victim.create("told"), victim.create("private")
    with Stranger(victim.address) as stranger:
        send_encrypted(stranger, key, name, told)
        victim.receive(told)

    async def main() -> None:
        async with QueueManagerClient(LocalServer(victim.queue_manager.socket)) as client:
            answer = await receive_by_rpc(
                client, FormatName.parse(name.replace(HERE, "DIRECT=OS:.\\"))
            )
            assert answer == (BODY, PrivacyLevel.ADVANCED)

    asyncio.run(main())


@pytest.mark.conformance("MQMP-op-c2_1")
@pytest.mark.parametrize("level", [PrivacyLevel.BASE, PrivacyLevel.ENHANCED, PrivacyLevel.ADVANCED])
def test_a_body_that_an_application_has_encrypted_for_us_is_decrypted(
    victim: Victim, key: RSAPrivateKey, level: PrivacyLevel
) -> None:
    path = victim.create("private")
    foreign = generate_private_key(65537, 2048)

    async def main() -> None:
        async with QueueManagerClient(LocalServer(victim.queue_manager.socket)) as client:
            name = await client.queues.format_name(PathName.parse(path.replace(HERE, ".\\")))
            await send_by_rpc(client, name, **encrypted_for(key, level))
            assert await receive_by_rpc(client, name) == (BODY, level)
            with pytest.raises(MQError) as caught:
                await send_by_rpc(client, name, **encrypted_for(foreign, level))
            assert caught.value.status is HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED

    asyncio.run(main())
