"""Signatures that Send makes for its caller ([MC-MQAC] 3.17.4.1.48, 2.2.2.16)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import authenticated
from rpcqm.codec.packet.enums import MessageAuthenticationLevel
from rpcqm.mqac.arguments import octets_variant
from rpcqm.mqac.destination import MSMQDestination
from rpcqm.mqac.message import MSMQMessage
from rpcqm.service import interfaces
from tests.support.binary.binary_network import Simulation
from tests.support.certificates import certificate_of
from tests.support.dcom.fake_com import call_of
from tests.support.queue_manager import MEMORY
from tests.support.rpc.callers import ALICE
from tests.unit.binary.test_message_security import ORDERS, SID, Pair, signing_key

CALL = call_of(authenticated("alice", SID))
HERE = r"DIRECT=OS:.\private$\orders"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        pair = Pair(simulation)
        pair.sign()
        pair.alice.create("orders")
        yield pair
        simulation.stop()


def send(pair: Pair, to: str, level: int, *, certificate: bytes = b"") -> MSMQMessage:
    machine = interfaces.machine(pair.alice.engine)
    target, message = MSMQDestination(machine), MSMQMessage(machine)
    target.put_FormatName(CALL, to)
    target.Open(CALL)
    message.put_AuthLevel(CALL, level)
    message.put_Body(CALL, octets_variant(b"content"))
    if certificate:
        message.put_SenderCertificate(CALL, octets_variant(certificate))
    sent = message.Send(CALL, target, None)
    pair.simulation.advance(5_000)
    sent.result()
    return message


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        (1, MessageAuthenticationLevel.SIG30),
        (2, MessageAuthenticationLevel.SIG10),
        (4, MessageAuthenticationLevel.SIG20),
        (8, MessageAuthenticationLevel.SIG30),
    ],
)
@pytest.mark.parametrize("to", [HERE, ORDERS])
def test_who_receives_a_signed_message_sees_how_it_was_signed(
    pair: Pair, level: int, wanted: MessageAuthenticationLevel, to: str
) -> None:
    message = send(pair, to, level)
    node = pair.alice if to == HERE else pair.bob
    queue = node.find("orders")
    (key,) = queue.message_position_list.page(None, 10)
    received = node.engine.positions.message_at(queue, key)
    assert received.attributes.authentication_level == wanted
    assert received.attributes.sender_certificate == certificate_of(signing_key())
    shown = MSMQMessage.of_received(interfaces.machine(node.engine), received)
    assert (shown.get_IsAuthenticated(CALL), shown.get_IsAuthenticated2(CALL)) == (1, True)
    assert shown.get_ReceivedAuthenticationLevel(CALL) == wanted
    assert shown.get_Signature(CALL) == message.get_Signature(CALL)


def test_an_unsigned_message_is_not_authenticated(pair: Pair) -> None:
    message = send(pair, HERE, 0)
    assert message.get_ReceivedAuthenticationLevel(CALL) == 0
    assert message.get_Signature(CALL) == octets_variant(b"")


def test_what_has_no_certificate_or_no_key_is_not_sent(pair: Pair) -> None:
    with pytest.raises(MQError) as refused:
        send(pair, HERE, 4, certificate=b"another")
    assert refused.value.status is HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX
    machine = interfaces.machine(pair.alice.engine)
    message, target, stranger = MSMQMessage(machine), MSMQDestination(machine), call_of(ALICE)
    target.put_FormatName(stranger, HERE)
    target.Open(stranger)
    message.put_AuthLevel(stranger, 4)
    with pytest.raises(MQError) as refused:
        message.Send(stranger, target, None).result()
    assert refused.value.status is HResult.MQ_ERROR_NO_INTERNAL_USER_CERT
    assert pair.alice.bodies("orders") == []


def test_what_was_attached_is_used_by_the_same_caller(pair: Pair) -> None:
    machine = interfaces.machine(pair.alice.engine)
    message = MSMQMessage(machine)
    message.AttachCurrentSecurityContext2(CALL)
    assert message.sender_certificate_cache == certificate_of(signing_key())
    assert message.get_SenderCertificate(CALL) == octets_variant(b"")
