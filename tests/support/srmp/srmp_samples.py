"""The samples of [MC-MQSRM] section 4, and other requests like them."""

from pathlib import Path
from uuid import UUID

from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.elements import (
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    Envelope,
    Eod,
    MessageId,
    Msmq,
    Provider,
    Services,
    Stream,
    StreamId,
    StreamReceipt,
)
from rpcqm.srmp.multipart import write_request
from rpcqm.srmp.writing import write_envelope

DIRECTORY = Path(__file__).parents[2] / "vectors" / "srmp"
NAMES = sorted(path.stem for path in DIRECTORY.glob("*.http"))
OWN_GUID = UUID("ff3af301-3196-497a-a918-72147c871a13")
BOUNDARY = b"MSMQ - SOAP boundary, 1"


def sample(name: str) -> HttpRequest:
    """A sample by the name of its file, as a server hands it on."""
    return parse(DIRECTORY.joinpath(f"{name}.http").read_bytes())


def parse(octets: bytes) -> HttpRequest:
    """A request whose octets agree with its Content-Length."""
    head, _, content = octets.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    headers = tuple((name, value) for name, _, value in (each.partition(": ") for each in fields))
    assert dict(headers)["Content-Length"] == str(len(content))
    return HttpRequest(method, target, headers, content)


def posted(
    envelope: Envelope | bytes, body: bytes | None = None, extension: bytes | None = None
) -> HttpRequest:
    """A request with an envelope and what is attached to it."""
    octets = envelope if isinstance(envelope, bytes) else write_envelope(envelope)
    headers, content = write_request(octets, body, extension, OWN_GUID, 1)
    return HttpRequest("POST", "/msmq/private$/q", headers, content)


def multipart(*parts: bytes, end: bytes = b"--\r\n") -> HttpRequest:
    """A request of parts that bring their headers along."""
    delimiter = b"--" + BOUNDARY
    content = b"".join(delimiter + b"\r\n" + part for part in parts) + delimiter + end
    kind = f'multipart/related; boundary="{BOUNDARY.decode()}"; type=text/xml'
    return HttpRequest("POST", "/msmq/private$/q", (("Content-Type", kind),), content)


def part(kind: str, content: bytes, content_id: str = "", length: int | None = None) -> bytes:
    """A part; its Content-Length is true unless it is given."""
    fields = [f"Content-Type: {kind}"]
    fields.append(f"Content-Length: {len(content) if length is None else length}")
    fields += [f"Content-Id: {content_id}"] if content_id else []
    return "\r\n".join((*fields, "", "")).encode() + content


def minimal(header: str = "", path: str = "", properties: str = "") -> bytes:
    """The smallest envelope, with more in its header, its <path> or its <properties>."""
    return (
        '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"'
        ' xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
        '<path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
        "<action>MSMQ:label</action><to>http://machine/msmq/private$/q</to>"
        f"<id>uuid:7@00000000-0000-0000-0000-000000000008</id>{path}</path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        f"{properties}</properties>{header}</se:Header><se:Body></se:Body></se:Envelope>"
    ).encode()


def msmq(more: str = "", message_class: int = 0) -> str:
    """The element <Msmq> with what it must have, and more."""
    return (
        f'<Msmq xmlns="msmq.namespace.xml"><Class>{message_class}</Class><Priority>3</Priority>'
        "<BodyType>8</BodyType><SourceQmGuid>32221eda-9376-46df-b6ed-783091123831</SourceQmGuid>"
        f"{more}<TTrq>20070612T023719</TTrq></Msmq>"
    )


def full_envelope() -> Envelope:
    """One with a value in every field but the signature."""
    guid, other = UUID(int=8), UUID("32221eda-9376-46df-b6ed-783091123831")
    url = "http://machine/msmq/private$"
    stream = StreamId(guid, 4839986701558349830)
    return Envelope(
        "MSMQ:label & <more> \u00e4\U0001f600",
        f"{url}/q",
        MessageId(other, 26626),
        2147483647,
        1182200814,
        f"{url}/answers?a=b&c=d",
        Services(True, f"{url}/arrived", CommitmentReceiptRequest(f"{url}/taken", True, True)),
        Stream(stream, 42, 40, f"{url}/order_queue$"),
        DeliveryReceipt(1182200815, MessageId(guid, 7)),
        CommitmentReceipt(1182200816, False, MessageId(guid, 8)),
        StreamReceipt(stream, 41),
        Msmq(
            *(0x8001, 7, True, True, bytes(range(20)), True, other, 36, 8, 32772),
            Eod(True, True, guid),
            Provider(24, "A <provider>"),
            other,
            (f"{url}/one", f"{url}/two"),
            (f"{url}/admin",),
            ("MSMQ:DIRECT=OS:machine\\private$\\three",),
            1182546414,
        ),
    )
