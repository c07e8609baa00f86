"""How large a message may be that comes by HTTP (G235)."""

import pytest

from rpcqm.codec.packet.binary_form import binary_form
from rpcqm.codec.packet.user_message import UserMessage
from tests.support.srmp.srmp_door import ORDERS, Door
from tests.support.srmp.srmp_text import Elements, attaching

LARGEST = 0x400000


@pytest.mark.bound("srmp.message")
@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1")
@pytest.mark.conformance("MQSRM-rule-3.1.5.1.2")
def test_a_message_of_4_mib_fits_with_its_request_around_it(door: Door) -> None:
    body = bytes(LARGEST)
    assert door.send(body=body, ordinal=1, label="l" * 249) == 200
    assert door.contents() == [body]
    assert door.send(body=body + b"x", ordinal=2) == 400
    parts = attaching(ORDERS, Elements(ordinal=3), body[1:], extension=b"xx")
    assert door.post(parts) == 400
    assert len(door.contents()) == 1


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1")
def test_a_message_of_4_mib_is_there_after_a_restart_and_in_its_binary_form(door: Door) -> None:
    body = bytes(LARGEST - 1) + b"x"
    assert door.send(body=body, services="<durable/>") == 200
    door.restart()
    (message,) = door.messages()
    message.validate()
    form = UserMessage(binary_form(message.buffer))
    form.validate()
    assert form.body == body
