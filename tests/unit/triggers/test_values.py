"""Values of messages as arguments: one argument each, and never an option."""

import pytest

from rpcqm.codec.packet.enums import BodyType
from rpcqm.codec.trigger_rule import PLACEHOLDERS
from rpcqm.triggers.values import LONGEST_VALUE, UnsafeValueError, arguments, octets_of, value_of
from tests.support.triggers.fake_queue import received


def test_each_value_is_one_argument_whatever_is_in_it() -> None:
    label = "a b; $(reboot) `x` 'y' \" \\ \n * --z"
    words = ["/bin/echo", "{label}", "{priority}", "x{label}"]
    assert arguments(words, received(label=label, priority=5), "orders") == [
        "/bin/echo",
        label,
        "5",
        "x{label}",
    ]


def test_a_value_that_names_another_value_is_left_alone() -> None:
    found = arguments(["/bin/echo", "{label}"], received(label="{text}"), "orders")
    assert found == ["/bin/echo", "{text}"]


@pytest.mark.parametrize("label", ["-", "-rf", "--output=/etc/passwd"])
def test_a_value_is_never_an_option(label: str) -> None:
    with pytest.raises(UnsafeValueError, match="begins with `-`"):
        arguments(["/bin/rm", "{label}"], received(label=label), "orders")
    behind = ["/bin/rm", "-f", "--", "{label}"]
    assert arguments(behind, received(label=label), "orders")[-1] == label


def test_a_label_of_two_dashes_ends_no_options() -> None:
    words = ["/bin/echo", "{text}", "{label}"]
    with pytest.raises(UnsafeValueError):
        arguments(words, received(label="-x", body=b"--"), "orders")


def test_a_null_character_is_refused() -> None:
    with pytest.raises(UnsafeValueError, match="null character"):
        arguments(["/bin/echo", "--", "{text}"], received(body=b"a\0b"), "orders")


@pytest.mark.bound("triggers.longest_value")
def test_a_value_that_is_too_long_is_refused() -> None:
    words = ["/bin/echo", "{text}"]
    assert arguments(words, received(body=b"x" * LONGEST_VALUE), "orders")
    with pytest.raises(UnsafeValueError, match="longer than 65,536"):
        arguments(words, received(body=b"x" * (LONGEST_VALUE + 1)), "orders")


def test_each_name_has_a_value() -> None:
    message = received(3)
    values = {each: value_of(each, message, "orders") for each in PLACEHOLDERS}
    assert values["{lookup-id}"] == str(message.lookup_identifier)
    assert (values["{queue}"], values["{text}"]) == ("orders", "forty-two")
    assert values["{source}"].count("-") == 4
    assert values["{sender}"] == ""


def test_text_comes_in_utf_8_and_other_bodies_as_they_are() -> None:
    wide = received(body="Größe".encode("utf-16-le"), body_type=int(BodyType.VT_LPWSTR))
    assert octets_of(wide) == "Größe".encode()
    assert octets_of(received(body=b"\xff\0")) == b"\xff\0"
