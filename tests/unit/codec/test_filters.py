"""Filters of messages: how they are written, and which messages match."""

import builtins
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.bodies.described import LONGEST_DECODED
from rpcqm.codec.bodies.formatters import DOTNET_BINARY, encode_body
from rpcqm.codec.bodies.xml_writing import encode_xml
from rpcqm.codec.filters.body_text import beginning
from rpcqm.codec.filters.matching import LONGEST_EXPRESSED, Matcher, Verdict, matches
from rpcqm.codec.filters.message_filter import MessageFilter
from rpcqm.codec.filters.patterns import pattern_of_glob
from rpcqm.codec.filters.written import (
    CONDITIONS,
    LONGEST_CONDITION,
    Surroundings,
    no_names,
    read_filter,
    written_filter,
)
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.enums import BodyType, MessageClass
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import Sid
from tests.support.codec import dotnet

ALICE = Sid(5, (21, 1, 2, 3, 1001))
ANSWER = MessageIdentifier(UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"), 7)
NOW = 1_800_000_000_000
HERE = Surroundings(NOW, {"alice": ALICE}.get)
QUEUE = format_name("DIRECT=OS:.\\private$\\orders")
PLAIN = MessageAttributes(QUEUE, ANSWER, body=b"forty-two", label="Order 17")
SOUGHT = "Müller & Söhne"


def read(texts: Mapping[str, str]) -> MessageFilter:
    return read_filter(texts, HERE)


def message(**attributes: Any) -> PacketMessage:
    return PacketMessage(build_user_message(replace(PLAIN, **attributes)))


def verdict(texts: Mapping[str, str], **attributes: Any) -> Verdict:
    return Matcher(read(texts)).verdict(message(**attributes))


WRITTEN: list[tuple[dict[str, str], dict[str, object]]] = [
    ({"label": "order*"}, {"label": "order*"}),
    ({"correlation_id": str(ANSWER)}, {"correlation_id": ANSWER}),
    ({"sender": "alice"}, {"sender": ALICE}),
    ({"sender": "s-1-5-18"}, {"sender": Sid(5, (18,))}),
    ({"since": "2h"}, {"since": NOW - 7_200_000}),
    ({"since": "1970-01-02", "until": "1970-01-02T01:00+01:00"}, {"since": 86_400_000}),
    ({"class": "ack_receive,0x8004"}, {"classes": frozenset({0x4000, 0x8004})}),
    ({"class": "MQMSG_CLASS_ACK_*"}, {"classes": frozenset({2, 0x4000})}),
    ({"size_min": "10KB", "size_max": "20000"}, {"size_min": 10_240, "size_max": 20_000}),
    ({"priority": "0,5-7"}, {"priorities": frozenset({0, 5, 6, 7})}),
    ({"transactional": "yes", "ignore_case": "no"}, {"transactional": True}),
    ({"body": "x", "regex": "a+"}, {"body": "x", "regex": "a+"}),
]


@pytest.mark.parametrize(("texts", "conditions"), WRITTEN)
def test_conditions_are_read_and_written(
    texts: dict[str, str], conditions: dict[str, object]
) -> None:
    wanted = read(texts)
    assert {name: getattr(wanted, name) for name in conditions} == conditions
    assert not wanted.is_empty
    again = read_filter(written_filter(wanted), Surroundings(0, no_names))
    assert again == wanted


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"colour": "red"}, "colour is no condition; there are label, body"),
        ({"label": "a[b"}, "label: there is a [ without its ]; write [[] for the character"),
        ({"label": "[a--b]"}, "label: a set in brackets is wrong: write it like [a-z] or [!0-9]"),
        ({"label": "[z-a]"}, "label: a set in brackets is wrong: write it like [a-z] or [!0-9]"),
        ({"body": ""}, "body: a text is wanted"),
        ({"correlation_id": "7"}, "correlation_id: `7` is neither a message identifier"),
        ({"sender": "bob"}, "sender: `bob` is neither an account here nor a SID"),
        ({"since": "yesterday"}, "since: `yesterday` is neither a time like 2026-11-28T10:30"),
        ({"since": "9999-12-31T23:59-23:59"}, "since: "),
        ({"since": "1h", "until": "2h"}, "since is beyond until"),
        ({"size_min": "2", "size_max": "1"}, "size_min is beyond size_max"),
        ({"size_min": "ten"}, "size_min: `ten` is no number with a unit"),
        ({"size_max": "5TB"}, "size_max: no message has 5,497,558,138,880 bytes"),
        ({"class": "LETTER"}, "class: `LETTER` is no class; there are NORMAL"),
        ({"class": "99999"}, "class: `99999` is no class"),
        ({"priority": "8"}, "priority: `8` is no priority; they are 0 to 7"),
        ({"priority": "5-3"}, "priority: `5-3` is no priority"),
        ({"transactional": "maybe"}, "transactional: `maybe` is neither yes nor no"),
    ],
)
def test_a_wrong_condition_has_one_sentence(texts: dict[str, str], sentence: str) -> None:
    with pytest.raises(MQError) as refused:
        read(texts)
    assert refused.value.status is HResult.MQ_ERROR_INVALID_PARAMETER
    assert refused.value.detail.startswith(sentence)


def test_times_without_a_zone_are_local_where_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        local = Surroundings(NOW, no_names, local=True)
        assert read_filter({"since": "1970-01-02T09:00"}, local).since == 86_400_000
        assert read({"since": "1970-01-02"}).since == 86_400_000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.bound("search.condition")
@pytest.mark.parametrize("name", list(CONDITIONS))
def test_a_condition_has_a_greatest_length(name: str) -> None:
    if CONDITIONS[name].field in ("label", "body", "regex"):
        read({name: "x" * LONGEST_CONDITION})
    with pytest.raises(MQError, match=r"a condition has at most 1,000$"):
        read({name: "x" * (LONGEST_CONDITION + 1)})
    with pytest.raises(MQError, match="has 10,000,000 characters"):
        read({name: "1" * 10_000_000})


@pytest.mark.parametrize(
    ("pattern", "label", "found"),
    [
        ("order*", "order 17", True),
        ("order*", "Order 17", False),
        ("*17", "order 17", True),
        ("*r*1?", "order 17", True),
        ("*r*1", "order 17", False),
        ("[no]rder ??", "order 17", True),
        ("[!o]*", "order 17", False),
        ("a[[]b[]]c[\\]", "a[b]c\\", True),
        ("a[+--]b", "a,b", True),
        ("a[!a&&b]", "a&", False),
        ("", "", True),
        ("", "x", False),
        ("a.c", "abc", False),
        ("*\n*", "a\nb", True),
        ("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "a" * 249, False),
    ],
)
def test_patterns_of_labels(pattern: str, label: str, found: bool) -> None:
    assert (pattern_of_glob(pattern).fullmatch(label) is not None) is found
    assert Matcher(read({"label": pattern})).verdict(message(label=label)) is (
        Verdict.YES if found else Verdict.NO
    )


@pytest.mark.parametrize(
    ("texts", "attributes"),
    [
        ({"label": "Order*"}, {"label": "Bill 17"}),
        ({"label": "order*", "ignore_case": "yes"}, {"label": "Bill 17"}),
        ({"body": "two"}, {"body": b"three"}),
        ({"regex": "Order [0-9]+"}, {"label": "Order", "body": b"Order x"}),
        ({"regex": "FORTY.two", "ignore_case": "yes"}, {"body": b"forty"}),
        ({"correlation_id": "1a" * 20}, {"body": b"\x1a" * 20}),
        ({"class": "NORMAL"}, {"message_class": MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED}),
        ({"size_min": "9"}, {"body": b"12345678"}),
        ({"size_max": "9"}, {"body": b"1234567890"}),
        ({"priority": "3"}, {"priority": 4}),
        ({"transactional": "no"}, {"transaction_identifier": 5}),
    ],
)
def test_each_condition_decides(texts: dict[str, str], attributes: dict[str, Any]) -> None:
    fitting = {"correlation_identifier": MessageIdentifier.read("1a" * 20)}
    assert verdict(texts, **fitting) is Verdict.YES
    assert verdict(texts, **attributes) is Verdict.NO
    assert verdict({**texts, "label": "nothing"}, **fitting) is Verdict.NO


def test_a_sender_is_that_of_the_packet_or_that_which_is_kept_beside_it() -> None:
    matcher = Matcher(read({"sender": "alice"}))
    assert matcher.verdict(message(sender_identifier=ALICE.encode())) is Verdict.YES
    assert matcher.verdict(message(sender_identifier=Sid(5, (18,)).encode())) is Verdict.NO
    nameless = message(sender_identifier_type=0)
    assert matcher.verdict(nameless, str(ALICE)) is Verdict.YES
    assert matcher.verdict(nameless) is Verdict.NO


def test_an_index_decides_before_the_packet_is_read() -> None:
    matcher = Matcher(read({"since": "1h", "until": "1min", "transactional": "no"}))
    assert matcher.may_match(NOW - 3_600_000, 1, False, 3)
    assert matcher.may_match(NOW - 60_000, 1, False, 3)
    assert not matcher.may_match(NOW - 3_600_001, 1, False, 3)
    assert not matcher.may_match(NOW - 59_999, 1, False, 3)
    assert not matcher.may_match(NOW - 60_000, 1, True, 3)
    assert not Matcher(read({"size_min": "10"})).may_match(NOW, 9, False, 3)
    assert not Matcher(read({"priority": "4-7"})).may_match(NOW, 9, False, 3)
    assert Matcher(read({"priority": "4-7"})).may_match(NOW, 9, False, 4)


ENCODINGS: dict[str, tuple[bytes, int]] = {
    "UTF-8": (f"an {SOUGHT}!".encode(), 0),
    "UTF-16": (f"an {SOUGHT}!".encode("utf-16-le"), 0),
    "UTF-16 with a mark": (f"an {SOUGHT}!".encode("utf-16"), 0),
    "UTF-16, big end first": (b"\xfe\xff" + f"an {SOUGHT}!".encode("utf-16-be"), 0),
    "Windows-1252": (f"an {SOUGHT}!".encode("cp1252"), 0),
    "ActiveX": encode_body(f"an {SOUGHT}!"),
    "ActiveX, octets": (f"an {SOUGHT}!".encode("latin-1"), BodyType.VT_LPSTR),
    "XmlMessageFormatter": (encode_xml(f"an {SOUGHT}!"), 0),
    "XML by reference": (b"<a b='M&#252;ller &amp; S&#xF6;hne'/>", 0),
    "XML in Windows-1252": (
        '<?xml version="1.0" encoding="windows-1252"?><a>Müller &amp; Söhne</a>'.encode("cp1252"),
        0,
    ),
    "XML in UTF-16": ("<a>Müller &amp; Söhne</a>".encode("utf-16"), 0),
    "XML in UTF-32": ("<a>Müller &amp; Söhne</a>".encode("utf-32"), 0),
    "JSON": (b'{"a": "M\\u00fcller & S\\u00f6hne"}', 0),
    "BinaryFormatter": (
        dotnet.body(b"\x06" + dotnet.number(1) + bytes([20]) + f"an {SOUGHT}!".encode()),
        DOTNET_BINARY,
    ),
}


@pytest.mark.parametrize("name", list(ENCODINGS))
def test_a_text_is_found_whatever_the_encoding_of_the_body(name: str) -> None:
    body, body_type = ENCODINGS[name]
    told = {"body": body, "body_type": body_type}
    assert verdict({"body": SOUGHT}, **told) is Verdict.YES
    assert verdict({"body": "ller"}, **told) is Verdict.YES
    assert verdict({"body": SOUGHT.upper(), "ignore_case": "yes"}, **told) is Verdict.YES
    assert verdict({"regex": "M.ller . S.hne"}, **told) is Verdict.YES
    assert verdict({"body": SOUGHT.upper()}, **told) is Verdict.NO
    assert verdict({"body": "Muller"}, **told) is Verdict.NO


@pytest.mark.parametrize(
    ("value", "text"),
    [(42, "42"), (True, "true"), (2.5, "2.5"), (ANSWER.queue_manager_guid, "4dd-7")],
)
def test_values_are_found_as_they_are_told(value: object, text: str) -> None:
    body, body_type = encode_body(value)
    assert verdict({"body": text}, body=body, body_type=body_type) is Verdict.YES
    assert verdict({"body": "43"}, body=body, body_type=body_type) is Verdict.NO


@pytest.mark.parametrize(
    ("body", "body_type", "found"),
    [
        ("<a>&#77;</a>", 0, Verdict.UNREAD),
        ('{"a": "\\u004d"}', 0, Verdict.UNREAD),
        ("<a>M</a>", 0, Verdict.YES),
        ("<a>&amp; M</a>", 0, Verdict.YES),
        ("<a></a>", 0, Verdict.NO),
        ("plain & text", 0, Verdict.NO),
        ("no stream of values", DOTNET_BINARY, Verdict.UNREAD),
    ],
)
def test_a_body_that_is_too_long_to_be_read_whole_is_never_left_out_silently(
    body: str, body_type: int, found: Verdict
) -> None:
    long = body.encode() + b" " * LONGEST_DECODED
    assert verdict({"body": "M"}, body=long, body_type=body_type) is found
    assert verdict({"body": "M"}, body=body.encode(), body_type=body_type) is not Verdict.UNREAD


@pytest.mark.bound("search.longest_expressed")
def test_expressions_are_looked_for_in_bodies_up_to_a_length() -> None:
    at_most = b"x" * (LONGEST_EXPRESSED - 1) + b"y"
    assert verdict({"regex": "xy"}, body=at_most) is Verdict.YES
    assert verdict({"regex": "xy"}, body=b"x" + at_most) is Verdict.UNREAD
    assert verdict({"regex": "Order"}, body=b"x" + at_most) is Verdict.YES
    assert verdict({"regex": "xy", "body": "z"}, body=b"x" + at_most) is Verdict.NO


@pytest.mark.parametrize(
    ("expression", "reason"),
    [("(", "missing"), ("a{1001}", "invalid repetition size"), ("(?=a)", "invalid perl operator")],
)
def test_a_wrong_expression_has_one_sentence(expression: str, reason: str) -> None:
    with pytest.raises(MQError, match=f"regex: that is no regular expression of RE2: {reason}"):
        Matcher(read({"regex": expression}))


def test_an_expression_that_is_too_large_has_one_sentence() -> None:
    with pytest.raises(MQError, match="too large"):
        Matcher(read({"regex": "(" + "[^x]" * 200 + "){1000}"}))


def test_without_the_library_expressions_are_refused_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert verdict({"body": "two", "label": "*17"}) is Verdict.YES
    with pytest.raises(MQError, match=r"need google-re2, .*`pip install 'rpcqm\[search\]'`"):
        Matcher(read({"regex": "x"}))


def test_nothing_loads_the_library_before_there_is_an_expression() -> None:
    program = (
        "import sys, rpcqm.operations.operations, rpcqm.api.routes, rpcqm.console.pages, "
        "rpcqm.cli.find; sys.exit('re2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_cannot_be_read_does_not_match() -> None:
    damaged = PacketMessage(message().buffer[:120])
    assert not matches(Matcher(read({"label": "*"})), damaged)
    assert matches(Matcher(MessageFilter()), message())


@pytest.mark.parametrize(
    ("body", "body_type", "said"),
    [
        (b"  two\n lines ", 0, "two lines"),
        ("Müller".encode("utf-16"), 0, "Müller"),
        *((*encode_body(value), text) for value, text in ((7, "7"), ("Müller", "Müller"))),
        (b"\xff\x00\x01\x02\x03\x04", 0, ""),
        (b"", BodyType.VT_I4, ""),
        (("ü" * 300).encode(), 0, "ü" * 20),
        (b"\0\1\0\0\0", DOTNET_BINARY, ""),
    ],
)
def test_the_beginning_of_a_body_is_a_line(body: bytes, body_type: int, said: str) -> None:
    assert beginning(body, body_type, 20) == said


def test_an_empty_filter_says_so() -> None:
    assert MessageFilter(ignore_case=True).is_empty
    assert not MessageFilter(size_min=0).is_empty
