r"""Names that people type: which one was meant, and which are taken as they are (G475)."""

import pytest

from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.meant import meant
from rpcqm.codec.names.written import format_name, hint_of

B = r"DIRECT=OS:b\private$\orders"
TCP = r"DIRECT=TCP:10.0.0.3\private$\orders"
WEB = "DIRECT=http://b/msmq/private$/orders"

REFUSED = {
    r"OS:b\private$\orders": B,
    r"TCP:10.0.0.3\private$\orders": TCP,
    r"TCP:b\private$\orders": B,
    r"os:b\private$\orders": B,
    r"OS=b\private$\orders": B,
    r"b:1801\private$\orders": B,
    r"orders@FormatName:Direct=TCP:10.0.0.3\private$\orders": TCP,
    r"orders@FormatName:DIRECT=OS:b\private$\orders": B,
    r"orders@DIRECT=OS:b\private$\orders": B,
    r"msmq.formatname:DIRECT=OS:b\private$\orders": B,
    r"msmq.FormatName:DIRECT=TCP:10.0.0.3\private$\orders": TCP,
    r"FormatName=DIRECT=OS:b\private$\orders": B,
    r"FormatName:OS:b\private$\orders": B,
    r"FormatName:b\private$\orders": B,
    r"DIRECT=OS:b:1801\private$\orders": B,
    r"DIRECT=TCP:10.0.0.3:1801\private$\orders": TCP,
    r"DIRECT=TCP:b\private$\orders": B,
    r"DIRECT=OS:TCP:10.0.0.3\private$\orders": TCP,
    r"DIRECT=OS:OS:b\private$\orders": B,
    r"DIRECT=b\private$\orders": B,
    r"DIRECT:OS:b\private$\orders": B,
    r"DIRECT=OS=b\private$\orders": B,
    r"DIRECT=OS: b\private$\orders": B,
    r"DIRECT = OS:b\private$\orders": B,
    r"DIRECT=OS:b/private$/orders": B,
    r"DIRECT=OS:b\private\orders": B,
    r"DIRECT=OS:\\b\private$\orders": B,
    r"DIRECT=OS:FormatName:DIRECT=OS:b\private$\orders": B,
    r"DIRECT=OS:http://b\msmq\private$\orders": WEB,
    r"DIRECT=OS:http://b\private$\orders": WEB,
    "DIRECT=OS:http://b/msmq/private$/orders": WEB,
    "DIRECT=http:b/msmq/private$/orders": WEB,
    "DIRECT=http://b/private$/orders": WEB,
    "http://b/msmq/private$/orders": WEB,
    "http://b/private$/orders": WEB,
    "https://b/msmq/private$/orders": "DIRECT=https://b/msmq/private$/orders",
    "net.msmq://b/private/orders": B,
    "net.msmq://b/private$/orders": B,
    "net.msmq://b/orders": r"DIRECT=OS:b\orders",
    "net.msmq://localhost/private/orders": "orders",
    "net.msmq://10.0.0.3/private/orders": TCP,
    "msmq://b/orders": B,
    "msmq://b/private$/orders": B,
    "msmq://localhost/orders": "orders",
    "msmq://orders@b": B,
    "queue://orders": "orders",
    "queue:///orders": "orders",
    "queue://b/orders": B,
    r"\\b\private$\orders": B,
    r"b\\private$\\orders": B,
    r"b\private\orders": B,
    r".\private$\orders" + "\\": "orders",
    r"b/private$\orders": B,
    r'"b\private$\orders"': B,
}
"""Texts that name no queue, or a computer that nobody has, and what was meant."""

NOT_THERE = {
    "orders@b": B,
    "orders@10.0.0.3": TCP,
    "orders@localhost": "orders",
    "b/private$/orders": B,
    "10.0.0.3/private$/orders": TCP,
    "./private$/orders": "orders",
    "private$/orders": "orders",
    "private/orders": "orders",
    "orders ": "orders",
    " orders": "orders",
    "'orders'": "orders",
    "dead letter queue": "DeadLetter$",
    "DeadLetter": "DeadLetter$",
    "deadletters": "DeadLetter$",
    "XactDeadLetter": "XactDeadLetter$",
    "deadxact": "XactDeadLetter$",
    "Journal": "Journal$",
}
"""Names that a queue may have: of one that is not there, another was probably meant."""

NO_ADDRESS = (r"DIRECT=OS:10.0.0.300\private$\orders", r"10.0.0.300\private$\orders")

TAKEN = (
    "orders",
    "orders;late",
    r".\private$\orders",
    r"b\orders",
    r"b.example.com\private$\orders",
    r"10.0.0.3\private$\orders",
    r"fe80::1\private$\orders",
    B,
    TCP,
    r"DIRECT=TCP:fe80::1\private$\orders",
    r"DIRECT=OS:10.0.0.3\private$\orders",
    r"DIRECT=SPX:00000012:00a0234f7500\private$\orders",
    r"FormatName:DIRECT=OS:b\private$\orders",
    r"DIRECT=OS:b\private$\orders@b",
    r".\private$\http://b/orders",
    WEB,
    "DIRECT=HTTP://b:8080/msmq/private$/orders",
    "MULTICAST=234.1.1.1:8001",
    "DeadLetter$",
    r"b\Journal$",
    r"orders\journal$",
)


def refusal(text: str) -> str:
    with pytest.raises(MQError) as caught:
        format_name(text)
    return caught.value.detail


@pytest.mark.parametrize("text", REFUSED)
def test_a_name_that_nobody_can_mean_is_refused_with_the_one_that_was_meant(text: str) -> None:
    assert refusal(text) == f"`{text}` names no queue; did you mean `{REFUSED[text]}`?"
    assert format_name(REFUSED[text])


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_four_numbers_that_are_no_address_are_refused(text: str) -> None:
    reason = "`10.0.0.300` is no address, in which each number is at most 255"
    assert refusal(text) == f"`{text}` names no queue: {reason}"


@pytest.mark.parametrize("text", NOT_THERE)
def test_an_odd_name_is_taken_and_has_a_hint_for_when_it_is_not_there(text: str) -> None:
    assert hint_of(format_name(text)) == f"; did you mean `{NOT_THERE[text]}`?"
    assert format_name(NOT_THERE[text])


@pytest.mark.parametrize("text", TAKEN)
def test_a_name_that_is_right_is_taken(text: str) -> None:
    assert format_name(text)


@pytest.mark.parametrize("text", [r"DIRECT=OS:OS:b\private$\orders", r"DIRECT=OS:b:1\private$\q"])
def test_the_grammar_takes_what_people_are_asked_about(text: str) -> None:
    assert str(FormatName.parse(text)) == text


def test_the_search_for_what_was_meant_ends() -> None:
    for text in ("FormatName:" * 50 + "a", "DIRECT=" * 50 + "a", "x" * 1_001 + "/", "@" * 900):
        assert len(meant(text)) <= len(text)
