"""Captured messages of [MC-MQSRM] as they are sent again, to another server and later."""

import re
from urllib.parse import urlsplit
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.codec.layout import NULL_GUID
from rpcqm.srmp.dates import LAST_SECOND, format_date, parse_date
from rpcqm.srmp.elements import Envelope, SrmpRequest

_DATES = re.compile(
    r"(<(?:[\w.-]+:)?(?:expiresAt|sentAt|receivedAt|decidedAt|TTrq)\s*>\s*)([^<\s]+)", re.IGNORECASE
)
_FOREVER = "20380119T031407"
"""What senders write for a message that does not expire (sample 4.2)."""
_LENGTH = re.compile(rb"(?i)(content-length[ \t]*:[ \t]*)[0-9]+")
_URL = re.compile(r"(?i)(https?)://([^/\s<\"]+)")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect"})
"""Headers that belong to the connection: they are made anew."""


class SrmpRewriter:
    """Makes requests of a captured client those of a client that is there now."""

    def __init__(self, mapping: Mapping, host: str, port: int) -> None:
        self._mapping = mapping
        self._authority = host if port == 80 else f"{host}:{port}"

    def request(self, captured: SrmpExchange, seconds_later: int) -> bytes:
        """The octets to send.

        The host that the client asked for is the live one, queue managers that send are new ones,
        so that nothing is a duplicate, and times are as much later. What cannot be read is sent as
        it was.
        """
        asked = captured.asked
        host = _host_of(captured)
        body = bytes(asked.body)
        request = captured.decoded_request()
        if request is not None:
            body = self._body(body, request, host, seconds_later)
        target = self._at_live_host(asked.first[1], host)
        lines = [f"{asked.first[0]} {target} {asked.first[2]}", f"Host: {self._authority}"]
        lines += [f"{name}: {text}" for name, text in asked.headers if name.lower() not in _OURS]
        lines += [f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def _body(self, body: bytes, request: SrmpRequest, host: str, later: int) -> bytes:
        """A body with another envelope, whose part tells its new length."""
        envelope = request.envelope_text.encode()
        start = body.find(envelope)
        if start < 0:
            return body
        made = self._envelope(request.envelope_text, request.envelope, host, later).encode()
        head = _LENGTH.sub(rb"\g<1>%d" % len(made), body[:start])
        return head + made + body[start + len(envelope) :]

    def _envelope(self, text: str, envelope: Envelope, host: str, later: int) -> str:
        for each in _senders(envelope):
            live = str(self._mapping.client(each))
            text = re.sub(re.escape(str(each)), live, text, flags=re.IGNORECASE)
        text = _DATES.sub(lambda found: found[1] + _postponed(found[2], later), text)
        return self._at_live_host(text, host)

    def _at_live_host(self, text: str, host: str) -> str:
        """URLs of the captured server are those of the live one; others stay."""

        def changed(found: re.Match[str]) -> str:
            same = _host(found[2]) == host
            return f"{found[1]}://{self._authority}" if same else found[0]

        return _URL.sub(changed, text)


def _senders(envelope: Envelope) -> set[UUID]:
    """The queue managers and streams of its sender, by which duplicates are known."""
    found = {envelope.id.guid}
    if envelope.msmq is not None:
        found.add(envelope.msmq.source_qm_guid)
    if envelope.stream is not None:
        found.add(envelope.stream.stream_id.guid)
    return found - {NULL_GUID}


def _postponed(date: str, seconds: int) -> str:
    try:
        due = parse_date(date)
    except DecodeError:
        # A date that is none is sent as it was.
        return date
    return date if date == _FOREVER else format_date(min(max(due + seconds, 0), LAST_SECOND))


def _host_of(captured: SrmpExchange) -> str:
    """The name by which the client knew the server."""
    told = captured.asked.values("host")
    return _host(told[0] if told else captured.conversation.server)


def _host(authority: str) -> str:
    try:
        return (urlsplit(f"//{authority}").hostname or "").lower()
    except ValueError:
        # An address in brackets that is none is nobody's.
        return ""
