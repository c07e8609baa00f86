"""A request over HTTP that is refused costs a few steps for each octet that was sent (G512)."""

from dataclasses import replace

import pytest

from tests.support.srmp.srmp_door import HERE, ORDERS, PEER, STREAM, Door
from tests.support.srmp.srmp_text import Elements, Post, durable, message
from tests.support.work import steps

FREE, PER_OCTET = 2_000, 2
"""Steps of any request, and of each octet besides."""
MESSAGE = message(ORDERS, b"content")

REFUSED: dict[str, Post] = {
    "no message": Post("/nothing", b"", {}),
    "octets": Post("/msmq/private$/orders", bytes(100_000), MESSAGE.headers),
    "no such queue": message(f"{HERE}/nothing", b"content"),
    "another host": message("http://elsewhere/msmq/private$/orders", b"content"),
    "not in a stream": message(STREAM, b"content"),
    "a long name": message(f"{HERE}/{'q' * 100_000}", b"content"),
    "many elements": message(ORDERS, b"content", Elements(services=durable("<x/>" * 5_000))),
    "many delimiters": replace(MESSAGE, body=MESSAGE.body + b"--MSMQ - SOAP boundary" * 5_000),
}


@pytest.mark.parametrize("post", REFUSED.values(), ids=REFUSED)
def test_a_refused_request_costs_few_steps(door: Door, post: Post) -> None:
    status = door.post(post, PEER)
    assert status in (400, 404)
    octets = len(post.wire())
    assert steps(lambda: door.post(post, PEER)) < FREE + PER_OCTET * octets
