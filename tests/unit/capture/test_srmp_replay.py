"""Messages over HTTP are posted again: by somebody new, at another place, later."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.http import HttpConversation, HttpMessage
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.replay.fixture import infer
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.capture.replay.outcome import Result, Server
from rpcqm.capture.replay.player import Replay
from rpcqm.capture.replay.policy import Comparison, packet_parts
from rpcqm.capture.replay.srmp_rewriting import SrmpRewriter
from rpcqm.codec.packet.message import build_user_message
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.elements import Envelope, SrmpRequest
from rpcqm.srmp.incoming import attributes_of, destination_of
from rpcqm.srmp.reading import read_request
from tests.support.capture.analysed import calls_of
from tests.support.srmp.srmp_capture import TARGET

EXCHANGES, _ = calls_of(TARGET)
POSTS = [each for each in EXCHANGES if isinstance(each, SrmpExchange)]
DAY = 86_400

Decide = Callable[[HttpMessage], bytes]


def answered(status: int, *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status} Reason", "Content-Length: 0", *headers, "", "")
    return "\r\n".join(lines).encode()


class _Door(asyncio.Protocol):
    """Answers each request, once it is whole, as it is told to; closes behind b''."""

    def __init__(self, decide: Decide, heard: list[HttpMessage]) -> None:
        self._http = HttpConversation(lambda _: True, self._told, lambda offset, reason: None)
        self._decide, self._heard = decide, heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._http.from_client.take(data, time.time_ns(), 0)
        for pair in list(self._http._pending):
            if pair.asked and pair.answer is None:
                octets = self._decide(pair.request)
                self._transport.write(octets)
                if not octets:
                    self._transport.close()
                    return
                self._http.from_server.take(octets, time.time_ns(), 0)

    def _told(self, request: HttpMessage, answer: HttpMessage | None) -> None:
        self._heard.append(request)


def replayed(decide: Decide, exchanges: Sequence[SrmpExchange] = POSTS) -> tuple[Result, list[str]]:
    """What a replay finds, and the bodies that were posted."""
    heard: list[HttpMessage] = []

    async def work() -> Result:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: _Door(decide, heard), "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            return await Replay(exchanges, Server("127.0.0.1", http_port=port)).run()

    result = asyncio.run(asyncio.wait_for(work(), 60))
    return result, [bytes(each.body).decode("latin-1") for each in heard]


def as_captured(request: HttpMessage) -> bytes:
    return answered(400 if b"</se:Neader>" in request.body else 200)


def read(octets: bytes) -> SrmpRequest:
    made: list[HttpMessage] = []
    http = HttpConversation(lambda _: True, lambda one, _: made.append(one), lambda *_: None)
    http.from_client.take(octets, 0, 0)
    http.finish()
    method, target, _ = made[0].first
    assert made[0].values("host") == ["127.0.0.1:8123"]
    return read_request(HttpRequest(method, target, made[0].headers, bytes(made[0].body)))


def rewritten(exchange: SrmpExchange, seconds: int = DAY) -> tuple[Envelope, Envelope]:
    """The envelope as it was captured, and as it is sent again."""
    assert exchange.envelope is not None
    made = SrmpRewriter(Mapping(), "127.0.0.1", 8123).request(exchange, seconds)
    return exchange.envelope, read(made).envelope


# What is posted.


def test_a_message_is_that_of_a_new_client_at_another_place() -> None:
    captured, live = rewritten(POSTS[1])
    assert live.to == "http://127.0.0.1:8123/msmq/private$/simpleQ"
    assert captured.msmq is not None
    assert live.msmq is not None
    assert live.msmq.source_qm_guid == live.id.guid != captured.id.guid
    assert live.id.ordinal == captured.id.ordinal


def test_a_message_has_as_long_as_it_had() -> None:
    captured, live = rewritten(POSTS[4])
    assert live.expires_at == captured.expires_at + DAY
    assert captured.sent_at is not None
    assert live.sent_at == captured.sent_at + DAY
    assert captured.msmq is not None
    assert live.msmq is not None
    assert captured.msmq.ttrq is not None
    assert live.msmq.ttrq == captured.msmq.ttrq + DAY


def test_a_message_that_does_not_expire_does_not_expire() -> None:
    captured, live = rewritten(POSTS[1])
    assert captured.expires_at == live.expires_at


def test_messages_of_one_stream_stay_in_it() -> None:
    rewriter = SrmpRewriter(Mapping(), "127.0.0.1", 8123)
    streams = [read(rewriter.request(each, 0)).envelope.stream for each in POSTS[4:7]]
    identifiers = {each.stream_id for each in streams if each is not None}
    captured = POSTS[4].envelope
    assert captured is not None
    assert captured.stream is not None
    assert len(identifiers) == 1
    assert captured.stream.stream_id not in identifiers
    assert [each.current for each in streams if each] == [1, 2, 3]


def test_what_is_attached_stays_as_it_is() -> None:
    captured = POSTS[1].decoded_request()
    assert captured is not None
    live = read(SrmpRewriter(Mapping(), "127.0.0.1", 8123).request(POSTS[1], DAY))
    assert live.body == captured.body


def test_names_of_other_hosts_stay_as_they_are() -> None:
    captured, live = rewritten(POSTS[2])
    assert live.services == captured.services
    assert live.via == captured.via == "http://machine1/MSMQ/private$/Q1"


def test_what_is_no_message_is_posted_as_it_was() -> None:
    wrong = next(each for each in POSTS if each.status == 400)
    made = SrmpRewriter(Mapping(), "127.0.0.1", 8123).request(wrong, DAY)
    assert made.endswith(bytes(wrong.asked.body))
    with pytest.raises(DecodeError):
        read(made)


# What is found.


def verdicts(result: Result) -> list[str]:
    return [each.verdict for each in result.outcomes]


def test_answers_with_the_same_status_are_the_same() -> None:
    result, bodies = replayed(as_captured)
    assert verdicts(result) == ["same"] * 7 + ["skipped"] * 5 + ["same"]
    assert len(bodies) == 8
    assert result.clean
    assert {each.reason for each in result.outcomes[7:12]} == {"it was posted to another server"}
    assert all(each.duration_ms is not None for each in result.outcomes[:7])


def test_an_answer_with_another_status_differs() -> None:
    result, _ = replayed(lambda request: answered(503))
    assert verdicts(result).count("different") == 8
    (found,) = result.outcomes[0].differences
    assert (found.field, found.captured, found.live) == (
        "UserMessage.status",
        "200 OK",
        "503 Reason",
    )


def test_a_connection_that_is_closed_without_an_answer_differs_and_the_next_is_opened() -> None:
    def decide(request: HttpMessage) -> bytes:
        return b"" if b"simpleQ" in request.body else as_captured(request)

    result, _ = replayed(decide)
    assert [number for number, each in enumerate(verdicts(result)) if each == "different"] == [1]
    assert result.outcomes[1].differences[0].live == "no answer"


def test_requests_go_in_their_order_and_wait_for_the_answers_that_were_there() -> None:
    result, bodies = replayed(as_captured)
    posted = [each for each in bodies if "tsimpleq" in each]
    currents = [found[1] for each in posted if (found := re.search("<current>([0-9])", each))]
    assert currents == ["1", "2", "3"]
    assert result.count("same") == 8


def test_a_request_that_is_not_whole_is_skipped() -> None:
    cut = SrmpExchange(POSTS[0].conversation, _cut(POSTS[0].asked), POSTS[0].answer)
    result, _ = replayed(as_captured, [cut, *POSTS[1:2]])
    assert verdicts(result) == ["skipped", "same"]
    assert result.outcomes[0].reason == "the connection ended within it"


def _cut(message: HttpMessage) -> HttpMessage:
    found = HttpMessage(message.first, message.headers, message.head, message.began, 0)
    found.damaged("the connection ended within it")
    return found


def test_queues_of_messages_that_were_taken_are_presupposed() -> None:
    found = infer(POSTS)
    assert {name.lower() for name in found.queues} == {"simpleq", "tsimpleq", "receipts"}
    assert found.queues["tsimpleq"]
    assert not found.queues["simpleq"]
    assert not found.messages


# What is read of it is compared.


def packet(request: SrmpRequest) -> dict[str, object]:
    destination = destination_of(request.envelope.to)
    octets = build_user_message(attributes_of(request, 1_181_320_000, destination))
    return dict(packet_parts(bytes(octets), "answer"))


def differing(one: SrmpRequest, other: SrmpRequest) -> set[str]:
    found = Comparison(Mapping()).compare_fields(packet(one), packet(other))
    return {each.field.removeprefix("answer.") for each in found}


def test_a_message_that_was_posted_again_is_read_as_the_captured_one() -> None:
    for each in POSTS[1], POSTS[4]:
        captured = each.decoded_request()
        assert captured is not None
        live = read(SrmpRewriter(Mapping(), "127.0.0.1", 8123).request(each, DAY))
        assert differing(captured, live) == set()


def test_another_body_path_or_priority_is_a_difference_of_what_is_read() -> None:
    request = POSTS[1].http_request
    captured = POSTS[1].decoded_request()
    assert captured is not None
    for old, new, field in (
        (b"<orderId>3<", b"<orderId>4<", "CompoundMessageHeader.body"),
        (b"private$/simpleQ<", b"private$/simplex<", "SRMPEnvelopeHeader.to.path"),
        (b"<Priority>3<", b"<Priority>4<", "SRMPEnvelopeHeader.msmq.priority"),
    ):
        assert old in request.body
        changed = replace(request, body=request.body.replace(old, new))
        assert field in differing(captured, read_request(changed))
