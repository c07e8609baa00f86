"""The ways in which a person may name a queue."""

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.names import format_name, is_format_name, path_name


@pytest.mark.parametrize(
    ("text", "host", "expected"),
    [
        ("orders", ".", r"DIRECT=OS:.\private$\orders"),
        ("orders", "mail.example.com", r"DIRECT=OS:mail.example.com\private$\orders"),
        ("orders", "10.0.0.1", r"DIRECT=TCP:10.0.0.1\private$\orders"),
        ("orders;late", ".", r"DIRECT=OS:.\private$\orders;late"),
        ("orders;JOURNAL", ".", r"DIRECT=OS:.\private$\orders;JOURNAL"),
        (r".\private$\orders", ".", r"DIRECT=OS:.\private$\orders"),
        (r".\private$\orders", "there", r"DIRECT=OS:there\private$\orders"),
        (r"private$\orders", "there", r"DIRECT=OS:there\private$\orders"),
        (r"elsewhere\private$\orders", "there", r"DIRECT=OS:elsewhere\private$\orders"),
        (r"elsewhere\public", "there", r"DIRECT=OS:elsewhere\public"),
        (r"private$\orders\journal$", ".", r"DIRECT=OS:.\private$\orders;JOURNAL"),
        ("Journal$", ".", "DIRECT=OS:.\\system$;JOURNAL"),
        (r".\DeadLetter$", "there", "DIRECT=OS:there\\system$;DEADLETTER"),
        ("XACTDEADLETTER$", ".", "DIRECT=OS:.\\system$;DEADXACT"),
        ("system$;DEADXACT", ".", "DIRECT=OS:.\\system$;DEADXACT"),
        (r"DIRECT=OS:a\private$\b", ".", r"DIRECT=OS:a\private$\b"),
        (r"FormatName:DIRECT=OS:a\private$\b", ".", r"DIRECT=OS:a\private$\b"),
        (r"FORMATNAME:direct=os:a\private$\b", ".", r"DIRECT=OS:a\private$\b"),
        ("new orders;spät", ".", r"DIRECT=OS:.\private$\new orders;spät"),
        ("größe=5", ".", r"DIRECT=OS:.\private$\größe=5"),
        (
            "MACHINE=5e0e0b51-8a43-4a2a-a30c-5aa2f0b0d5b5;DEADLETTER",
            ".",
            "MACHINE=5e0e0b51-8a43-4a2a-a30c-5aa2f0b0d5b5;DEADLETTER",
        ),
    ],
)
def test_what_a_person_types_becomes_a_format_name(text: str, host: str, expected: str) -> None:
    assert str(format_name(text, host)).casefold() == expected.casefold()


@pytest.mark.parametrize("text", ["", "a,b", 'a"b', "a\nb", "x" * 125, "a;" + "x" * 32, "a\\b\\c"])
def test_a_wrong_path_name_is_refused(text: str) -> None:
    with pytest.raises(MQError) as caught:
        format_name(text)
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME


@pytest.mark.parametrize("text", ["DIRECT=", "DIRECT=OS:", "PRIVATE=1", "NO=1", "FormatName:a"])
def test_a_wrong_format_name_is_refused(text: str) -> None:
    with pytest.raises(MQError) as caught:
        format_name(text)
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


def test_path_names_keep_the_computer_that_was_named() -> None:
    assert str(path_name("orders")) == r".\private$\orders"
    assert str(path_name(r"there\private$\orders")) == r"there\private$\orders"


def test_a_direct_format_name_says_a_path_name() -> None:
    assert str(path_name(r"FormatName:DIRECT=OS:there\private$\orders")) == r"there\private$\orders"
    assert str(path_name(r"DIRECT=OS:.\private$\orders", "here")) == r"here\private$\orders"


def test_a_path_name_is_not_taken_for_a_format_name() -> None:
    assert is_format_name("direct=os:x")
    assert not is_format_name(r".\private$\a=b")
