"""What an extension says: text, and the headers of NServiceBus and Rebus (G503)."""

import base64
import json

import pytest

from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED
from rpcqm.codec.bodies.extensions import described_extension

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
ONE = "<HeaderInfo><Key>NServiceBus.MessageId</Key><Value>a&amp;b</Value></HeaderInfo>"
NIL = '<HeaderInfo><Key>NServiceBus.ReplyToAddress</Key><Value xsi:nil="true" /></HeaderInfo>'
EMPTY = "<HeaderInfo><Key>Empty</Key><Value /></HeaderInfo>"
WITHOUT = "<HeaderInfo><Key>Missing</Key></HeaderInfo>"
NSERVICEBUS = (
    f'<?xml version="1.0"?>\r\n<ArrayOfHeaderInfo {XSI} '
    'xmlns:xsd="http://www.w3.org/2001/XMLSchema">\r\n'
    f"  {ONE}\r\n  {NIL}\r\n  {EMPTY}\r\n  {WITHOUT}\r\n</ArrayOfHeaderInfo>"
)
NSERVICEBUS_HEADERS = {
    "NServiceBus.MessageId": "a&b",
    "NServiceBus.ReplyToAddress": None,
    "Empty": "",
    "Missing": None,
}
REBUS_HEADERS = {"rbs2-msg-id": "7", "rbs2-content-type": "application/json", "é": "ü", "x": None}
REBUS = json.dumps(REBUS_HEADERS, ensure_ascii=False)


def told(extension: bytes, longest: int = LONGEST_DECODED) -> dict[str, object]:
    found = described_extension(extension, longest, DecodeBudget(len(extension)))
    assert found.pop("extension_base64") == base64.b64encode(extension).decode()
    return found


@pytest.mark.parametrize("behind", [b"", b"\0\0"], ids=["", "nulls"])
@pytest.mark.parametrize(
    ("text", "headers"),
    [(NSERVICEBUS, NSERVICEBUS_HEADERS), (REBUS, REBUS_HEADERS)],
    ids=["NServiceBus", "Rebus"],
)
def test_headers_of_frameworks_are_decoded(
    text: str, headers: dict[str, str | None], behind: bytes
) -> None:
    assert told(text.encode() + behind) == {"extension": text, "headers": headers}


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"plain text", "plain text"),
        ("Grüße".encode(), "Grüße"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("wide".encode("utf-16-le"), "wide"),
        ("\ufeffmarked".encode("utf-16-le"), "marked"),
        (b"traceparent: 00-x", "traceparent: 00-x"),
        (b"<ArrayOfHeaderInfo><Other/></ArrayOfHeaderInfo>", None),
        (b"<HeaderInfo><Key>a</Key></HeaderInfo>", None),
        (b"<ArrayOfHeaderInfo><HeaderInfo/></ArrayOfHeaderInfo>", None),
        (b"<ArrayOfHeaderInfo", None),
        (b'<!DOCTYPE x><ArrayOfHeaderInfo xmlns="x"/>', None),
        (b'{"a": 1}', None),
        (b'{"a": "b"', None),
        (b'["a"]', None),
    ],
)
def test_other_text_is_text_alone(octets: bytes, text: str | None) -> None:
    assert told(octets) == {"extension": octets.decode() if text is None else text}


@pytest.mark.parametrize("octets", [b"\x01\x02", b"\xff\xfe\xfd", b"a\0b", bytes(range(256))])
def test_other_octets_are_octets_alone(octets: bytes) -> None:
    assert told(octets) == {}


def test_a_long_extension_is_told_by_its_octets() -> None:
    assert told(REBUS.encode(), longest=len(REBUS.encode()) - 1) == {}
    assert told(REBUS.encode(), longest=0) == {}
    assert "headers" in told(REBUS.encode(), longest=len(REBUS.encode()))


def test_what_is_made_of_headers_is_spent() -> None:
    budget = DecodeBudget(len(NSERVICEBUS))
    described_extension(NSERVICEBUS.encode(), LONGEST_DECODED, budget)
    assert budget.spent >= 3 * len(NSERVICEBUS_HEADERS)
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    assert told(deep) == {"extension": deep.decode()}


def test_headers_that_would_be_too_long_are_told_by_their_octets() -> None:
    budget = DecodeBudget(len(REBUS))
    budget.octets = len(REBUS)
    found = described_extension(REBUS.encode(), LONGEST_DECODED, budget)
    assert set(found) == {"extension_base64"}
