"""HTTP requests and messages elsewhere: which outcome counts against a message, which does not."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rpcqm.base.clock import SystemClock
from rpcqm.base.errors import HResult, MQError
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.triggers.actions import Actions
from rpcqm.triggers.outcome import Outcome, Result
from tests.support.certificates import write_tls_files
from tests.support.triggers.fake_queue import received


async def nowhere(queue: str, message: OutgoingMessage) -> None:
    raise AssertionError("nothing is sent")


@asynccontextmanager
async def answering(octets: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that answers every connection with the same octets, and none with b""."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(octets)
        if not octets:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def posted(octets: bytes, tls: ssl.SSLContext | None = None, time_limit: int = 30) -> Outcome:
    async def post() -> Outcome:
        async with answering(octets, tls) as port:
            scheme = "http" if tls is None else "https"
            url = f"{scheme}://127.0.0.1:{port}/"
            actions = Actions(SystemClock())
            try:
                rule = TriggerRule("t", "orders", url=url, time_limit=time_limit)
                return await actions.act(rule, received(), nowhere)
            finally:
                await actions.stop()

    return asyncio.run(post())


def status(line: str) -> bytes:
    return f"HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("200 OK", Result.DONE),
        ("204 No Content", Result.DONE),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", Result.FAILED),
        ("400 Bad Request", Result.FAILED),
        ("500 Internal Server Error", Result.FAILED),
        ("429 Too Many Requests", Result.TROUBLE),
        ("503 Service Unavailable", Result.TROUBLE),
    ],
)
def test_an_answer_is_well_a_failure_or_trouble(line: str, result: Result) -> None:
    assert posted(status(line)).result is result


def test_what_is_no_answer_is_trouble() -> None:
    outcome = posted(b"what?\r\n\r\n")
    assert outcome.result is Result.TROUBLE
    assert "cannot be reached" in outcome.told


def test_an_answer_that_does_not_come_is_a_failure() -> None:
    outcome = posted(b"", time_limit=1)
    assert (outcome.result, "within 1 s" in outcome.told) == (Result.FAILED, True)


def test_a_server_that_cannot_prove_who_it_is_gets_nothing(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*write_tls_files(tmp_path))
    outcome = posted(status("200 OK"), tls)
    assert outcome.result is Result.TROUBLE
    assert "cannot be reached" in outcome.told


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (None, Result.DONE),
        (HResult.MQ_ERROR_QUEUE_NOT_FOUND, Result.TROUBLE),
        (HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, Result.TROUBLE),
        (HResult.MQ_ERROR_INVALID_PARAMETER, Result.FAILED),
    ],
)
def test_a_queue_that_does_not_take_a_message(error: HResult | None, result: Result) -> None:
    sent: list[tuple[str, bytes, str]] = []

    async def send(queue: str, message: OutgoingMessage) -> None:
        if error is not None:
            raise MQError(error)
        sent.append((queue, message.body, message.label))

    rule = TriggerRule("t", "orders", send_to="bills")
    outcome = asyncio.run(Actions(SystemClock()).act(rule, received(), send))
    assert outcome.result is result
    assert sent == ([("bills", b"forty-two", "one")] if result is Result.DONE else [])


def test_a_message_that_no_queue_has_room_for_does_not_hold_up_its_rule() -> None:
    """It has room for the headers that it came with, and a stranger has chosen its size (G724)."""

    async def send(queue: str, message: OutgoingMessage) -> None:
        raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)

    rule = TriggerRule("t", "orders", send_to="bills")
    whole = MAXIMUM_PACKET_SIZE - received(body=b"").size
    outcome = asyncio.run(Actions(SystemClock()).act(rule, received(body=bytes(whole)), send))
    assert outcome.result is Result.FAILED
