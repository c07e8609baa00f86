"""`traceparent` of W3C, in headers and in extensions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.packet.trace_context import (
    EXTENSION_SIZE,
    LONGEST_HEADER,
    TraceContext,
    context_in,
    extension_of,
    parse_traceparent,
)

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


@given(st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1), st.integers(0, 255))
def test_a_context_is_read_as_it_was_written(trace: int, span: int, flags: int) -> None:
    context = TraceContext(trace, span, flags)
    assert parse_traceparent(str(context)) == context
    assert context_in(extension_of(context)) == context


@pytest.mark.parametrize(
    "text",
    [
        "",
        GIVEN.upper(),
        GIVEN + "\n",
        " " + GIVEN,
        GIVEN + "-x",
        GIVEN[:-1],
        "ff" + GIVEN[2:],
        GIVEN.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        GIVEN.replace("b7ad6b7169203331", "0" * 16),
        GIVEN.replace("0af", "\u0660af"),
    ],
)
def test_what_is_no_context_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_later_version_is_read_as_far_as_this_one_goes() -> None:
    assert parse_traceparent("cc" + GIVEN[2:] + "-what-comes-then") == (TRACE, SPAN, 1)


@pytest.mark.bound("traces.traceparent")
def test_a_header_is_looked_at_up_to_its_bound() -> None:
    longest = "cc" + GIVEN[2:] + "-"
    longest += "x" * (LONGEST_HEADER - len(longest))
    assert parse_traceparent(longest) is not None
    assert parse_traceparent(longest + "x") is None


@given(st.binary(max_size=2 * EXTENSION_SIZE))
def test_other_extensions_carry_no_context(extension: bytes) -> None:
    assert context_in(extension) is None


@pytest.mark.parametrize(
    "extension",
    [
        b"traceparent: " + GIVEN.encode() + b"\0",
        b"traceparent: cc" + GIVEN[2:].encode(),
        b"Traceparent: " + GIVEN.encode(),
        b"traceparent: " + b"\xff" * 55,
        b"traceparent: " + GIVEN.encode() * 20_000,
    ],
)
def test_an_extension_is_a_context_and_nothing_else(extension: bytes) -> None:
    assert context_in(extension) is None


def test_an_extension_of_a_program_is_never_written_over() -> None:
    assert OutgoingMessage(extension=b"mine", traceparent=GIVEN).sent_extension == b"mine"
    assert OutgoingMessage(traceparent="nonsense").sent_extension == b""
    assert OutgoingMessage(traceparent=GIVEN).sent_extension == b"traceparent: " + GIVEN.encode()


def test_a_message_that_is_made_of_another_has_its_own_context() -> None:
    other = GIVEN.replace("b7ad", "c8be")
    first = OutgoingMessage(b"x", traceparent=GIVEN)
    second = replace(first, traceparent=other)
    assert second.sent_extension == b"traceparent: " + other.encode()
    assert replace(second, traceparent="").sent_extension == b""
    buffer = transfer_buffer_of(second, 0).old
    assert buffer.ppMsgExtension == second.sent_extension
