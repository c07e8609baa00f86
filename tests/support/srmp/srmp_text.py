"""Requests of [MC-MQSRM] as its text shapes them, written without the product."""

from dataclasses import dataclass, field, replace
from pathlib import Path

NULL = "00000000-0000-0000-0000-000000000000"
SOURCE = "ff3af301-3196-497a-a918-72147c871a13"
LATER = "20370101T000000"
_BOUNDARY = "MSMQ - SOAP boundary, 53287"
_SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


@dataclass(frozen=True)
class Post:
    """A request without what every HTTP client writes by itself: Host and Content-Length."""

    target: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def wire(self, host: str = "machine2") -> bytes:
        """The request as it is sent."""
        headers = {"Host": host, **self.headers, "Content-Length": str(len(self.body))}
        lines = [f"POST {self.target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class Elements:
    """What an envelope says besides the destination; `services` and so on are written as given."""

    label: str = ""
    ordinal: int = 1
    guid: str = SOURCE
    via: str = ""
    expires: str = LATER
    services: str = ""
    stream: str = ""
    receipt: str = ""
    msmq: str = ""


def durable(*more: str) -> str:
    """The content of <services> for a recoverable message."""
    return "<durable/>" + "".join(more)


def in_stream(
    guid: str, current: int, receipts_to: str = "", previous: int | None = None, stream: int = 7
) -> str:
    """The content of <stream>."""
    start = f"<start><sendReceiptsTo>{receipts_to}</sendReceiptsTo></start>" if receipts_to else ""
    before = "" if previous is None else f"<previous>{previous}</previous>"
    return f"<streamId>uid:{guid}\\{stream}</streamId><current>{current}</current>{before}{start}"


def envelope(to: str, elements: Elements) -> str:
    """An envelope ([MC-MQSRM] 2.2.4), on one line."""
    via = f"<rev><via>{elements.via}</via></rev>" if elements.via else ""
    understood = 'se:mustUnderstand="1"'
    services, stream = (
        f"<{name} {understood}>{content}</{name}>" if content else ""
        for name, content in (("services", elements.services), ("stream", elements.stream))
    )
    msmq = f'<Msmq xmlns="msmq.namespace.xml">{elements.msmq}</Msmq>' if elements.msmq else ""
    return (
        f'<se:Envelope xmlns:se="{_SOAP}" xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        f'<path xmlns="http://schemas.xmlsoap.org/rp/" {understood}>'
        f"<action>MSMQ:{elements.label}</action><to>{to}</to>"
        f"<id>uuid:{elements.ordinal}@{elements.guid}</id>{via}</path>"
        f"<properties {understood}><expiresAt>{elements.expires}</expiresAt>"
        f"<sentAt>20260101T000000</sentAt></properties>{services}{stream}{elements.receipt}{msmq}"
        "</se:Header><se:Body></se:Body></se:Envelope>"
    )


def multipart(text: str, body: bytes | None, **more: bytes) -> tuple[str, bytes]:
    """A Content-Type and the parts: each ends by its own length, and a delimiter follows."""
    parts = [("text/xml; charset=UTF-8", "", text.encode())]
    attached = more if body is None else {"body": body, **more}
    for name, octets in attached.items():
        identifier = f"Content-Id: {name}@{SOURCE}\r\n"
        parts.append(("application/octet-stream", identifier, octets))
    written = b"".join(
        f"--{_BOUNDARY}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(part)}\r\n{more}\r\n".encode()
        + part
        for kind, more, part in parts
    )
    kind = f'multipart/related; boundary="{_BOUNDARY}"; type=text/xml'
    return kind, written + f"--{_BOUNDARY}--\r\n".encode()


def message(to: str, body: bytes, elements: Elements | None = None) -> Post:
    """A user message to a URL."""
    return attaching(to, elements or Elements(), body)


def attaching(to: str, elements: Elements, body: bytes | None, **more: bytes) -> Post:
    """A user message with other attachments: body, extension."""
    return _post(to, *multipart(envelope(to, elements), body, **more))


def receipt(to: str, elements: Elements) -> Post:
    """A receipt, which has no attachment."""
    return _post(to, "text/xml", envelope(to, elements).encode())


def _post(to: str, kind: str, content: bytes) -> Post:
    headers = {
        "Content-Type": kind,
        "SOAPAction": '"MSMQMessage"',
        "Proxy-Accept": "NonInteractiveClient",
    }
    target = "/" + "".join(to.split("/", 3)[3:])
    return Post(target, content, headers)


def posts_in(directory: Path, posts: list[Post]) -> Path:
    """Write requests for programs that post them: N.headers (target, headers) and N.body."""
    directory.mkdir()
    for number, post in enumerate(posts):
        lines = [post.target, *(f"{name}: {value}" for name, value in post.headers.items())]
        (directory / f"{number:04}.headers").write_text("\n".join(lines) + "\n", "ascii")
        (directory / f"{number:04}.body").write_bytes(post.body)
    return directory


def read(wire: bytes) -> Post:
    """A request as it is on the wire; a header may go on in the next line."""
    head, _, body = wire.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").replace("\r\n ", " ").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    kept = {name: value for name, value in headers.items() if name not in _BY_THE_CLIENT}
    return Post(first.split(" ")[1], body, kept)


_BY_THE_CLIENT = ("Host", "Content-Length")


def changed(post: Post, old: bytes, new: bytes) -> Post:
    """The same with other octets of the same length."""
    assert len(old) == len(new)
    return replace(post, body=post.body.replace(old, new))
