"""Values of messages as arguments of programs (G643), and bodies as programs get them."""

from collections.abc import Sequence

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import whole
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.kinds import kind_and_value
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.trigger_rule import END_OF_OPTIONS, PLACEHOLDERS

LONGEST_VALUE = 65_536
"""Octets of a value of a message as an argument of a program.

The system takes 128 KiB for each argument.

Bound `triggers.longest_value` [octets]: the program is not run, which counts as a failure.
"""


class UnsafeValueError(Exception):
    """A value that no program gets; the text is a clause."""


def sender_of(message: ReceivedMessage) -> str:
    """The SID that a message says to be its sender's; "" if it says none."""
    if message.sender_identifier_type != SenderIdentifierType.SID:
        return ""
    try:
        return str(Sid.decode(message.sender_identifier))
    except DecodeError:
        return ""


def octets_of(message: ReceivedMessage) -> bytes:
    """The body: text in UTF-8, of others its octets."""
    if message.body_type:
        _, value = kind_and_value(message.body, message.body_type)
        if isinstance(value, str):
            return whole(value).encode()
    return message.body


def value_of(placeholder: str, message: ReceivedMessage, queue: str) -> str:
    """The value that an argument stands for."""
    if placeholder == "{text}":
        return octets_of(message).decode("utf-8", "replace")
    values: dict[str, object] = {
        "{label}": message.label,
        "{queue}": queue,
        "{lookup-id}": message.lookup_identifier,
        "{id}": message.identifier,
        "{correlation-id}": message.correlation_identifier,
        "{priority}": message.priority,
        "{class}": message.message_class,
        "{size}": message.body_size,
        "{application-tag}": message.application_tag,
        "{sender}": sender_of(message),
        "{source}": message.source_machine_identifier,
    }
    return whole(str(values[placeholder]))


def arguments(words: Sequence[str], message: ReceivedMessage, queue: str) -> list[str]:
    """The arguments of a program, with the values of a message in the place of their names.

    Raises UnsafeValueError for a value that the program could take for an option, and for one that
    no argument can be.
    """
    found: list[str] = []
    for word in words:
        if word in PLACEHOLDERS:
            value = value_of(word, message, queue)
            _check(word, value, END_OF_OPTIONS in found)
            found.append(value)
        else:
            found.append(word)
    return found


def _check(name: str, value: str, is_operand: bool) -> None:
    if "\0" in value:
        raise UnsafeValueError(f"{name} has a null character")
    if value.startswith("-") and not is_operand:
        raise UnsafeValueError(f"{name} begins with `-`; put `--` before it in the rule")
    if len(value.encode("utf-8", "replace")) > LONGEST_VALUE:
        raise UnsafeValueError(f"{name} is longer than {LONGEST_VALUE:,} octets")
